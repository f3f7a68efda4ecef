/** The bar under the pointer, or the last one, in figures; and what the marks mean. */

import { h } from "../../frame/element.js";
import { at } from "../../parts/moment.js";
import { count, percent, price, short } from "../../words/numbers.js";
import { utc } from "../../words/time.js";
import { countKinds } from "./bars.js";

const KINDS = {
  missing: "missing: no answer covers it",
  no_trade: "no trade",
  partial: "some of its minutes are missing",
  live: "live, not closed yet",
};

export function legend(bar) {
  if (!bar) return h("p", { class: "legend", key: "legend" }, "–");
  const rises = bar.c >= bar.o;
  const values =
    bar.kind === "missing"
      ? []
      : [
          ["O", bar.o],
          ["H", bar.h],
          ["L", bar.l],
          ["C", bar.c],
        ];
  const change = bar.o ? (bar.c - bar.o) / bar.o : 0;
  return h(
    "p",
    { class: "legend", key: "legend" },
    h("span", { class: "legend-time" }, at(bar.ts), h("small", null, utc(bar.ts).slice(11))),
    values.map(([name, value]) =>
      h("span", { key: name }, h("small", null, name), " ", price(value)),
    ),
    values.length > 0 &&
      h(
        "span",
        { class: rises ? "rises" : "falls" },
        `${rises ? "▲" : "▼"} ${percent(Math.abs(change))}`,
      ),
    bar.v !== null &&
      bar.v !== undefined &&
      bar.kind === "bar" &&
      h("span", null, h("small", null, "V"), " ", short(Number(bar.v.toPrecision(6)))),
    KINDS[bar.kind] && h("strong", null, KINDS[bar.kind]),
  );
}

/** What is loaded, in one line. */
export function marks(bars) {
  const counts = countKinds(bars);
  return h(
    "p",
    { class: "facts marks", key: "marks" },
    h("span", null, `${count(bars.length)} slots`),
    mark("no_trade", `${count(counts.no_trade)} without a trade`),
    mark("missing", `${count(counts.missing)} missing`),
    counts.partial > 0 && h("span", null, `${count(counts.partial)} partial`),
  );
}

const mark = (kind, words) =>
  h("span", { key: kind }, h("span", { class: `mark-${kind}`, "aria-hidden": "true" }), words);

/** The last bars as a table, for who does not see the chart. */
export function barTable(bars) {
  const rows = bars.slice(-30).toReversed();
  return h(
    "details",
    { key: "table" },
    h("summary", null, "The last bars as a table"),
    h(
      "div",
      { class: "table-wrap", tabindex: "0", role: "region", "aria-label": "The last bars" },
      h(
        "table",
        { class: "table plain" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", { scope: "col" }, "Opens"),
            ["Open", "High", "Low", "Close", "Volume"].map((words) =>
              h("th", { scope: "col", class: "number", key: words }, words),
            ),
            h("th", { scope: "col" }, "Note"),
          ),
        ),
        h("tbody", null, rows.map(tableRow)),
      ),
    ),
  );
}

function tableRow(bar) {
  const isBar = bar.kind !== "missing";
  const values = [bar.o, bar.h, bar.l, bar.c];
  return h(
    "tr",
    { key: bar.ts },
    h("th", { scope: "row" }, at(bar.ts)),
    values.map((value, place) =>
      h("td", { class: "number", key: place }, isBar ? price(value) : "–"),
    ),
    h("td", { class: "number", key: "v" }, isBar && bar.v !== null ? price(bar.v) : "–"),
    h("td", { key: "note" }, KINDS[bar.kind] ?? ""),
  );
}
