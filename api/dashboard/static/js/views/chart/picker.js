/** Finds a stored series or pair by letters: a list that narrows as one types. */

import { h } from "../../frame/element.js";
import { createResource } from "../../frame/resource.js";
import { search } from "../../parts/field.js";
import { sentence } from "../../parts/shown.js";

const TYPING_MS = 200;
const MOST = 40;

export function createPicker(app, choose) {
  const picker = { text: "", isOpen: false };
  let timer = 0;
  const found = createResource((signal) => look(app.api, picker.text, signal), app.refresh);

  function type(text) {
    picker.text = text;
    picker.isOpen = true;
    clearTimeout(timer);
    timer = setTimeout(() => found.reload(), TYPING_MS);
    app.refresh();
  }

  function open() {
    picker.isOpen = true;
    found.reload();
  }

  function close() {
    picker.isOpen = false;
    app.refresh();
  }

  function take(href) {
    picker.text = "";
    close();
    choose(href);
  }

  picker.close = () => {
    clearTimeout(timer);
    found.close();
  };
  picker.render = () => render(picker, found, { type, open, close, take });
  return picker;
}

async function look(api, text, signal) {
  const [stored, pairs] = await Promise.all([
    api.get("/series", { search: text, limit: MOST }, signal),
    api.get("/history/pairs", {}, signal),
  ]);
  const letters = text.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
  const fitting = pairs.items.filter((each) =>
    `${each.base}${each.quote}`
      .toLowerCase()
      .replaceAll(/[^a-z0-9]/g, "")
      .includes(letters),
  );
  return { markets: stored.items, hasMore: stored.next_cursor !== null, pairs: fitting };
}

function render(picker, found, actions) {
  const onKey = (event) => {
    if (event.key === "Escape") actions.close();
    if (event.key === "ArrowDown") {
      event.preventDefault();
      event.stopPropagation();
      document.querySelector(".picker-list a")?.focus();
    }
  };
  return h(
    "div",
    {
      class: "picker",
      key: "picker",
      on: {
        focusout: (event) => {
          if (!event.currentTarget.contains(event.relatedTarget)) actions.close();
        },
        keydown: moveInList,
      },
    },
    search("Find a series", "series", picker.text, actions.type, {
      placeholder: "Another series",
      on: { focus: actions.open, keydown: onKey },
    }),
    picker.isOpen && h("div", { class: "picker-list" }, list(found, actions)),
  );
}

function list(found, { take }) {
  if (found.error && !found.data) return h("p", { class: "hint" }, sentence(found.error.message));
  if (!found.data) return h("p", { class: "hint" }, "Looking");
  const { markets, pairs, hasMore } = found.data;
  if (!markets.length && !pairs.length)
    return h("p", { class: "hint" }, "Nothing is stored by that name.");
  const entry = (href, name, where) =>
    h(
      "li",
      { key: href },
      h(
        "a",
        {
          href,
          on: {
            click: (event) => {
              if (event.metaKey || event.ctrlKey || event.shiftKey) return;
              event.preventDefault();
              take(href);
            },
          },
        },
        h("span", null, name),
        h("small", null, where),
      ),
    );
  return [
    h(
      "ul",
      { key: "list", "aria-label": "Stored series" },
      markets.map((each) => entry(seriesHref(each), each.symbol, each.exchange_id)),
      pairs.map((each) => entry(pairHref(each), `${each.base} / ${each.quote}`, each.network)),
    ),
    hasMore && h("p", { class: "hint", key: "more" }, "There are more: type some letters."),
  ];
}

export function seriesHref({ exchange_id: exchange, symbol, timeframes }) {
  const query = new URLSearchParams({ exchange_id: exchange, symbol, timeframe: timeframes[0] });
  return `/chart?${query}`;
}

export function pairHref({ network, base, quote }) {
  return `/chart?${new URLSearchParams({ network, base, quote })}`;
}

/** Up and down move from entry to entry. */
function moveInList(event) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const links = [...event.currentTarget.querySelectorAll(".picker-list a")];
  const at = links.indexOf(document.activeElement);
  if (at < 0) return;
  event.preventDefault();
  const next = links[at + (event.key === "ArrowDown" ? 1 : -1)];
  (next ?? event.currentTarget.querySelector("input")).focus();
}
