/** Keys that do something everywhere but where one types. They can be switched off. */

const NAME = "collector.shortcuts";
const CHORD_MS = 1_500;

export function createShortcuts(table) {
  let first = null;
  let timer = 0;
  let enabled = stored() !== "off";

  function onKey(event) {
    if (!enabled || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target))
      return;
    if (document.querySelector("dialog[open]") !== null) return;
    const keys = first === null ? event.key : `${first} ${event.key}`;
    clearTimeout(timer);
    first = null;
    const found = table.find((each) => each.keys === keys);
    if (found) {
      event.preventDefault();
      found.run();
    } else if (table.some((each) => each.keys.startsWith(`${event.key} `))) {
      first = event.key;
      timer = setTimeout(() => (first = null), CHORD_MS);
    }
  }

  document.addEventListener("keydown", onKey);
  return {
    table,
    get enabled() {
      return enabled;
    },
    enable(on) {
      enabled = on;
      try {
        localStorage.setItem(NAME, on ? "on" : "off");
      } catch {
        // It lasts as long as the page.
      }
    },
  };
}

function stored() {
  try {
    return localStorage.getItem(NAME);
  } catch {
    return null;
  }
}

function isTyping(target) {
  return target.closest?.("input, textarea, select, [contenteditable]") !== null;
}
