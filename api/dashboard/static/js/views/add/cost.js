/** What it would take, before it is confirmed. */

import { h } from "../../frame/element.js";
import { button } from "../../parts/button.js";
import { sentence } from "../../parts/shown.js";
import { count, percent, plural } from "../../words/numbers.js";
import { duration } from "../../words/time.js";

export function costPanel(app, { chosen, cost, make, isMaking }) {
  const isReady = chosen.bodies().length > 0;
  return h(
    "aside",
    { class: "box cost", key: "cost", "aria-labelledby": "cost-title" },
    h("h2", { id: "cost-title" }, "What it takes"),
    h(
      "div",
      { role: "status" },
      isReady ? estimate(cost) : h("p", { class: "hint" }, missing(chosen)),
    ),
    button(
      chosen.series ? `Collect ${plural(chosen.series, "series", "series")}` : "Collect",
      make,
      { kind: "main", disabled: !isReady || isMaking || cost.error !== null || !cost.data?.length },
    ),
  );
}

function missing(chosen) {
  if (!chosen.markets.size) return "Choose at least one market.";
  if (!chosen.wantedTimeframes.length) return "Choose at least one timeframe.";
  return "Choose a date.";
}

function estimate(cost) {
  if (cost.error) return h("p", { class: "field-error" }, sentence(cost.error.message));
  if (!cost.data?.length) return h("p", { class: "hint" }, "Working it out");
  const sum = (name) => cost.data.reduce((total, each) => total + each[name], 0);
  const most = (name) => Math.max(...cost.data.map((each) => each[name]));
  const facts = [
    ["Requests", count(sum("requests"))],
    ["Bars of history", count(sum("bars"))],
    [
      "Before that, in the queue",
      most("seconds_ahead") ? duration(most("seconds_ahead") * 1000) : "nothing",
    ],
    ["From then on", `${count(sum("requests_per_day"))} requests a day`],
    ["Of the budget", percent(most("share_per_day"))],
  ];
  return [
    h("p", { class: "cost-big", key: "time" }, timeWords(most("seconds"), sum("requests"))),
    h("p", { class: "hint", key: "budget" }, "at this budget"),
    h(
      "dl",
      { class: "fact-list", key: "facts" },
      facts.map(([words, value]) =>
        h("div", { key: words }, h("dt", null, words), h("dd", null, value)),
      ),
    ),
    sum("existing") > 0 &&
      h(
        "p",
        { class: "hint", key: "existing" },
        `${plural(sum("existing"), "series exists", "series exist")} already.`,
      ),
    sum("unknown") > 0 &&
      h(
        "p",
        { class: "hint", key: "unknown" },
        `The first bar of ${plural(sum("unknown"), "series", "series")} is not known: that history is not counted.`,
      ),
  ];
}

function timeWords(seconds, requests) {
  if (!requests) return "No history to fetch";
  return seconds < 1 ? "Less than a second" : `About ${duration(seconds * 1000)}`;
}
