/** Light, dark, or as the system has it. */

const NAME = "collector.theme";
const ORDER = ["auto", "light", "dark"];
export const WORDS = { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };
export const ICONS = { auto: "auto", light: "sun", dark: "moon" };

export function createTheme(changed) {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", () => changed());

  const theme = {
    get chosen() {
      return root.dataset.theme ?? "auto";
    },
    get isDark() {
      return theme.chosen === "dark" || (theme.chosen === "auto" && system.matches);
    },
    next() {
      const chosen = ORDER[(ORDER.indexOf(theme.chosen) + 1) % ORDER.length];
      if (chosen === "auto") delete root.dataset.theme;
      else root.dataset.theme = chosen;
      try {
        localStorage.setItem(NAME, chosen);
      } catch {
        // It lasts as long as the page.
      }
      changed();
    },
  };
  return theme;
}
