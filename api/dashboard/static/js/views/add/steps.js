/** Which timeframes, and since when. */

import { h } from "../../frame/element.js";
import { checkbox, input, select } from "../../parts/field.js";
import { BEGINNINGS } from "./chosen.js";

export function timeframeStep(chosen, changed) {
  const toggle = (name, on) => {
    if (on) chosen.timeframes.add(name);
    else chosen.timeframes.delete(name);
    changed();
  };
  return h(
    "section",
    { class: "box add-step", key: "timeframes", "aria-labelledby": "step-timeframes" },
    h("h2", { id: "step-timeframes" }, h("span", { class: "step-number" }, "2"), "Timeframes"),
    h(
      "div",
      { class: "row", role: "group", "aria-labelledby": "step-timeframes" },
      chosen.offered.map((name) =>
        checkbox(name, chosen.timeframes.has(name), (on) => toggle(name, on), { key: name }),
      ),
    ),
    h(
      "p",
      { class: "hint" },
      "Longer bars are made of shorter ones on reading: 1m is enough for most.",
    ),
  );
}

export function sinceStep(chosen, changed) {
  const options = Object.entries(BEGINNINGS).map(([name, { words }]) => [name, words]);
  const begin = (name) => {
    chosen.beginning = name;
    changed();
  };
  const choose = (text) => {
    chosen.date = text;
    changed();
  };
  return h(
    "section",
    { class: "box add-step", key: "since", "aria-labelledby": "step-since" },
    h("h2", { id: "step-since" }, h("span", { class: "step-number" }, "3"), "Beginning"),
    h(
      "div",
      { class: "row" },
      select("History since", "since", options, chosen.beginning, begin),
      chosen.beginning === "date" &&
        input("Date", "since-date", chosen.date, choose, { type: "date" }),
    ),
  );
}
