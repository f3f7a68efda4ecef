/** Line icons, drawn for this page: 20 by 20, in the colour of the text around them. */

import { h } from "../frame/element.js";

const PATHS = {
  overview: "M3 9.5 10 4l7 5.5M5 8.5V16h10V8.5M8.5 16v-4h3v4",
  jobs: "M4 5.5h12M4 10h12M4 14.5h7M14 13l2 1.5-2 1.5",
  chart: "M5 3v14M5 6h0M3.5 6.5h3v6h-3zM10 5v11M8.5 8h3v5h-3zM15 3v12M13.5 5h3v6h-3z",
  quality:
    "M3.5 4.5h3v3h-3zM8.5 4.5h3v3h-3zM13.5 4.5h3v3h-3zM3.5 9.5h3v3h-3zM13.5 9.5h3v3h-3zM8.5 14.5h3",
  prices: "M3 13.5 7 9l3 3 6.5-7M12.5 5h4v4",
  add: "M10 4.5v11M4.5 10h11",
  good: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M7 10.2l2.2 2.2L13.2 8",
  warn: "M10 3.5 17.5 16.5h-15zM10 8.5v3.6M10 14.3v.1",
  bad: "M7 3h6l4 4v6l-4 4H7l-4-4V7zM10 6.8v4M10 13.4v.1",
  info: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M10 9.2v4.2M10 6.6v.1",
  quiet: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M7 10h6",
  wait: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M10 6.4V10l2.4 1.8",
  run: "M6.5 4.5v11l9-5.5z",
  busy: "M10 3a7 7 0 0 1 7 7M10 17a7 7 0 0 1-7-7",
  pause: "M7 5v10M13 5v10",
  trash: "M4.5 6h11M8 6V4.2h4V6M6 6l.7 10h6.6L14 6M8.6 8.6v4.8M11.4 8.6v4.8",
  search: "M9 4a5 5 0 1 0 0 10A5 5 0 0 0 9 4M12.8 12.8 16.5 16.5",
  sun: "M10 6.8a3.2 3.2 0 1 0 0 6.4 3.2 3.2 0 0 0 0-6.4M10 2.6v1.6M10 15.8v1.6M2.6 10h1.6M15.8 10h1.6M4.8 4.8l1.1 1.1M14.1 14.1l1.1 1.1M15.2 4.8l-1.1 1.1M5.9 14.1l-1.1 1.1",
  moon: "M15.8 12.2A6.4 6.4 0 0 1 7.8 4.2a6.4 6.4 0 1 0 8 8z",
  auto: "M10 3a7 7 0 1 0 0 14 7 7 0 0 0 0-14M10 3v14M10 6.5h3.2M10 10h4.6M10 13.5h3.2",
  key: "M12.5 4a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7M9.8 9.7 4 15.5V17h2.2v-1.8H8v-1.8l1.6-1.6",
  leave: "M11.5 6V4H4v12h7.5v-2M8.5 10h8M13.8 7.2 16.6 10l-2.8 2.8",
  copy: "M7.5 7.5h8v8h-8zM4.5 12.5v-8h8",
  left: "M12 5l-5 5 5 5",
  right: "M8 5l5 5-5 5",
  close: "M5.5 5.5l9 9M14.5 5.5l-9 9",
  again: "M15.5 8A6 6 0 1 0 16 11.5M16 4.2V8h-3.8",
  dots: "M4.6 10h.1M10 10h.1M15.4 10h.1",
  mend: "M12.6 4a3.6 3.6 0 0 0-4.4 4.6L3.8 13l3.2 3.2 4.4-4.4A3.6 3.6 0 0 0 16 7.4l-2.4 2.4-2.4-.4-.4-2.4z",
};

export function icon(name, props = {}) {
  return h(
    "svg",
    {
      viewBox: "0 0 20 20",
      width: 20,
      height: 20,
      "aria-hidden": "true",
      focusable: "false",
      ...props,
      class: `icon ${props.class ?? ""}`,
    },
    h("path", { d: PATHS[name] }),
  );
}
