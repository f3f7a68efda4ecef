/** The heatmap: a row a series, a cell a day. */

import { h } from "../../frame/element.js";
import { createResource } from "../../frame/resource.js";
import { withQuery } from "../../frame/router.js";
import { linkButton } from "../../parts/button.js";
import { choices } from "../../parts/field.js";
import { pill } from "../../parts/pill.js";
import { nothing, shown } from "../../parts/shown.js";
import { count, percent } from "../../words/numbers.js";
import { DAY, utcDate } from "../../words/time.js";
import { betweenDays, monthMarks, runsOf, summaryOf, wordsOf } from "./days.js";
import { chartOf, filtersOf } from "./filters.js";

const PAGE = 50;
const RANGES = [30, 90, 365];

export function openCoverage(app, first) {
  let query = first;
  const state = { pointed: null };
  const days = createResource((signal) => {
    const range = rangeOf(query);
    const end = Math.ceil(Date.now() / DAY) * DAY;
    const asked = { ...filtersOf(query), limit: PAGE, cursor: query.get("cursor") };
    return app.api.get("/coverage/days", { ...asked, start: end - range * DAY, end }, signal);
  }, app.refresh);
  days.reload();
  return {
    arrive(next) {
      query = next;
      days.reload();
    },
    reload: () => days.reload(),
    close: () => days.close(),
    render: () => render(app, days, query, state),
  };
}

function rangeOf(query) {
  const asked = Number(query.get("days"));
  return RANGES.includes(asked) ? asked : 90;
}

function render(app, days, query, state) {
  const ranges = RANGES.map((each) => ({
    words: `${each} days`,
    value: each,
    href: withQuery({ days: each === 90 ? null : each }, query),
  }));
  return [
    h("div", { class: "heat-head", key: "head" }, choices("Range", ranges, rangeOf(query)), key()),
    shown(days, {
      lines: 10,
      empty: (data) =>
        data.items.length
          ? null
          : nothing("No stored series fits", "Series appear here when their first page is stored."),
      content: (data) => [
        heatmap(app, data, state),
        h(
          "p",
          { class: "heat-pointed", key: "pointed", "aria-hidden": "true" },
          state.pointed ?? "Point at a day to read it; click to see it in the chart.",
        ),
        pager(data, query),
      ],
    }),
  ];
}

function key() {
  return h(
    "p",
    { class: "facts heat-key", key: "key" },
    h("span", null, h("span", { class: "heat-sample whole" }), "whole"),
    h("span", null, h("span", { class: "heat-sample unconfirmed" }), "some unconfirmed"),
    h("span", null, h("span", { class: "heat-sample some" }), "some missing"),
    h("span", null, h("span", { class: "heat-sample most" }), "most missing"),
    h("span", null, h("span", { class: "heat-sample none" }), "not expected"),
  );
}

function heatmap(app, data, state) {
  const marks = monthMarks(data.start, data.end);
  return h(
    "div",
    { class: "table-wrap heat-wrap", key: "heat" },
    h(
      "table",
      { class: "table heat" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", { scope: "col" }, "Series"),
          h(
            "th",
            { scope: "col", class: "heat-days" },
            h("span", { class: "unseen" }, "Days"),
            h(
              "span",
              { class: "heat-months", "aria-hidden": "true" },
              marks.map(({ share, words }) =>
                h("span", { key: share, style: { "--at": `${share * 100}%` } }, words),
              ),
            ),
          ),
          h("th", { scope: "col", class: "number" }, "Missing"),
        ),
      ),
      h(
        "tbody",
        null,
        data.items.map((each) => row(app, each, data, state)),
      ),
    ),
  );
}

function row(app, series, { start }, state) {
  const name = `${series.symbol} ${series.timeframe}`;
  const summary = summaryOf(series);
  const point = (event) => {
    const at = dayAt(event, series.expected.length);
    state.pointed = wordsOf(series, at, start);
    app.refresh();
  };
  const go = (event) => {
    const at = dayAt(event, series.expected.length);
    app.router.go(chartOf(series, start + at * DAY + DAY / 2));
  };
  return h(
    "tr",
    { key: `${series.exchange_id}|${name}` },
    h(
      "th",
      { scope: "row" },
      h("a", { href: chartOf(series) }, name),
      h("small", null, series.exchange_id),
    ),
    h(
      "td",
      { class: "heat-days", "data-label": "Days" },
      series.damaged
        ? pill("bad", "A file is damaged: collector repair")
        : strip(series, { point, go, label: labelOf(series, start) }),
    ),
    h("td", { class: "number", "data-label": "Missing" }, lacking(summary)),
  );
}

/** What is missing, and what the exchange reported as empty and is asked about again. */
function lacking({ expected, missing, unconfirmed }) {
  const waits = unconfirmed > 0 && pill("wait", `${count(unconfirmed)} unconfirmed`);
  if (missing === 0) return waits || pill("good", "whole");
  return [
    h("span", { class: "tone bad" }, count(missing), h("small", null, percent(missing / expected))),
    waits,
  ];
}

function strip(series, { point, go, label }) {
  const days = series.expected.length;
  return h(
    "svg",
    {
      class: "strip",
      viewBox: `0 0 ${days} 10`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
      on: { mousemove: point, click: go },
    },
    runsOf(series).map(({ from, length, level, height }) =>
      h("rect", { key: from, class: level, x: from, y: 10 - height, width: length, height }),
    ),
    h("path", { key: "days", class: "between", d: betweenDays(days) }),
  );
}

function labelOf(series, start) {
  const words = [
    daysWith("Missing", series.missing, start),
    daysWith("Unconfirmed", series.unconfirmed, start),
  ].filter(Boolean);
  return words.length ? words.join("; ") : "Every expected day is whole";
}

function daysWith(word, bars, start) {
  const days = bars
    .map((each, at) => [each, at])
    .filter(([each]) => each > 0)
    .slice(-5)
    .map(([each, at]) => `${utcDate(start + at * DAY)}: ${count(each)}`);
  return days.length ? `${word} on ${days.join(", ")}` : "";
}

function dayAt(event, days) {
  const box = event.currentTarget.getBoundingClientRect();
  const at = Math.floor(((event.clientX - box.left) / box.width) * days);
  return Math.min(days - 1, Math.max(0, at));
}

function pager(data, query) {
  const first = query.has("cursor");
  return h(
    "nav",
    { class: "pager", "aria-label": "Pages", key: "pager" },
    first && linkButton("First page", withQuery({ cursor: null }, query), { small: true }),
    data.next_cursor &&
      linkButton("Next", withQuery({ cursor: data.next_cursor }, query), { small: true }),
  );
}
