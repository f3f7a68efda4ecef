/** The theme's colours as a canvas takes them. */

const NAMES = {
  ink: "--ink-2",
  line: "--line",
  surface: "--surface",
  accent: "--accent",
  up: "--up",
  down: "--down",
  flat: "--quiet-fill",
  live: "--accent",
  bad: "--bad-fill",
};

export function palette() {
  const probe = document.createElement("span");
  document.body.append(probe);
  const found = {};
  for (const [name, property] of Object.entries(NAMES)) {
    probe.style.setProperty("color", `var(${property})`);
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return {
    ...found,
    upSoft: faded(found.up, 0.35),
    downSoft: faded(found.down, 0.35),
    missing: faded(found.bad, 0.16),
  };
}

function faded(colour, alpha) {
  const [red, green, blue] = colour.match(/[\d.]+/g);
  return `rgba(${red}, ${green}, ${blue}, ${alpha})`;
}
