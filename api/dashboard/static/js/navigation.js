/** The links of the navigation, with the second key of their shortcut. */
export const NAVIGATION = [
  { name: "overview", words: "Overview", href: "/", icon: "overview", key: "o" },
  { name: "jobs", words: "Jobs", href: "/jobs", icon: "jobs", key: "j" },
  { name: "chart", words: "Chart", href: "/chart", icon: "chart", key: "c" },
  { name: "quality", words: "Quality", href: "/quality", icon: "quality", key: "q" },
  { name: "prices", words: "Prices", href: "/prices", icon: "prices", key: "p" },
  { name: "add", words: "Add", href: "/add", icon: "add", key: "a", role: "operator" },
];
