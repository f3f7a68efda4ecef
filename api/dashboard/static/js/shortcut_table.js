/** Every shortcut, with its words for the list. */

import { h } from "./frame/element.js";
import { checkbox } from "./parts/field.js";

export function shortcutTable(app, navigation) {
  const views = navigation.map((each) => ({
    keys: `g ${each.key}`,
    words: `Go to ${each.words}`,
    run: () => app.router.go(each.href),
  }));
  const table = [
    ...views,
    { keys: "/", words: "Search in this view", run: focusSearch },
    { keys: "r", words: "Read everything again", run: () => readAgain(app) },
    { keys: "t", words: "Change the theme", run: () => app.theme.next() },
    { keys: "?", words: "Show this list", run: () => showShortcuts(app) },
  ];
  return table;
}

function focusSearch() {
  const field = document.querySelector("[data-search]");
  field?.focus();
  field?.select();
}

function readAgain(app) {
  app.fleet.reload();
  app.view?.fresh?.();
}

export function showShortcuts(app) {
  const rows = app.shortcuts.table.map(({ keys, words }) =>
    h(
      "tr",
      { key: keys },
      h(
        "th",
        { scope: "row" },
        keys.split(" ").map((key) => h("kbd", null, key)),
      ),
      h("td", null, words),
    ),
  );
  app.dialogs.show({
    title: "Keyboard shortcuts",
    body: [
      h("table", { class: "keys" }, h("tbody", null, rows)),
      checkbox("Shortcuts are on", app.shortcuts.enabled, (on) => app.shortcuts.enable(on)),
    ],
  });
}
