/** Quality: what each day of a series lacks, who fetches it, what was refused, and checks. */

import { h } from "../../frame/element.js";
import { withQuery } from "../../frame/router.js";
import { choices, search, select } from "../../parts/field.js";
import { openCoverage } from "./coverage.js";
import { openMissing } from "./missing.js";
import { openQuarantine } from "./quarantine.js";
import { openValidation } from "./validation.js";

const TYPING_MS = 250;
const PARTS = {
  coverage: { words: "Coverage", open: openCoverage },
  missing: { words: "Missing ranges", open: openMissing },
  quarantine: { words: "Quarantine", open: openQuarantine },
  validation: { words: "Checks", open: openValidation },
};
const TIMEFRAMES = ["1m", "5m", "15m", "1h", "4h", "1d"];

export function open(app, first) {
  const view = { text: first.query.get("search") ?? "", name: null, part: null };
  let place = first;
  let typing = 0;

  function arrive(next) {
    place = next;
    const asked = next.query.get("show") ?? "coverage";
    const name = asked in PARTS ? asked : "coverage";
    if (document.activeElement?.name !== "search") view.text = next.query.get("search") ?? "";
    if (view.name !== name) {
      view.part?.close();
      view.name = name;
      view.part = PARTS[name].open(app, next.query);
    } else {
      view.part.arrive(next.query);
    }
  }

  function type(text) {
    view.text = text;
    clearTimeout(typing);
    typing = setTimeout(() => {
      app.router.set({ search: text.trim(), cursor: null }, { replace: true });
    }, TYPING_MS);
    app.refresh();
  }

  arrive(first);
  return {
    title: () => "Quality",
    arrive,
    fresh: () => view.part.reload?.(),
    take: (name, data) => view.part.take?.(name, data),
    close: () => {
      clearTimeout(typing);
      view.part.close();
    },
    render: () => render(app, view, place.query, type),
  };
}

function render(app, view, query, type) {
  const parts = Object.entries(PARTS).map(([value, { words }]) => ({
    words,
    value,
    href: withQuery({ show: value === "coverage" ? null : value, cursor: null }, query),
  }));
  return [
    h("div", { class: "page-head", key: "head" }, h("h1", null, "Quality")),
    h(
      "div",
      { class: "list-head", key: "filters" },
      choices("Parts of quality", parts, view.name),
      filterBar(app, query, view.text, type),
    ),
    h("section", { key: view.name, "aria-label": PARTS[view.name].words }, view.part.render()),
  ];
}

function filterBar(app, query, text, type) {
  const set = (name) => (value) => app.router.set({ [name]: value, cursor: null });
  const exchanges = (app.fleet.connectors.data?.items ?? []).map((each) => each.exchange_id);
  return h(
    "form",
    { class: "filter-bar", role: "search", on: { submit: (event) => event.preventDefault() } },
    search("Search for a symbol", "search", text, type),
    select(
      "Exchange",
      "exchange_id",
      [["", "Every exchange"], ...exchanges.map((each) => [each, each])],
      query.get("exchange_id") ?? "",
      set("exchange_id"),
      { hidden: true },
    ),
    select(
      "Timeframe",
      "timeframe",
      [["", "Every timeframe"], ...TIMEFRAMES.map((each) => [each, each])],
      query.get("timeframe") ?? "",
      set("timeframe"),
      { hidden: true },
    ),
  );
}
