/** The longest missing and unconfirmed ranges, who fetches each, and a button where nobody does. */

import { h } from "../../frame/element.js";
import { createResource } from "../../frame/resource.js";
import { button } from "../../parts/button.js";
import { at, away } from "../../parts/moment.js";
import { pill } from "../../parts/pill.js";
import { nothing, shown } from "../../parts/shown.js";
import { STATES, stateOf, typeWords } from "../../words/jobs.js";
import { count, plural } from "../../words/numbers.js";
import { duration } from "../../words/time.js";
import { chartOf, filtersOf } from "./filters.js";

const MOST = 100;
const AGAIN_MS = 1_500;

export function openMissing(app, first) {
  let query = first;
  let timer = 0;
  const ranges = createResource(
    (signal) => app.api.get("/reports/gaps", { ...filtersOf(query), limit: MOST }, signal),
    app.refresh,
  );
  ranges.reload();
  return {
    arrive(next) {
      query = next;
      ranges.reload();
    },
    reload: () => ranges.reload(),
    /** A gap job that has moved has filled something. */
    take(name, data) {
      if (name !== "job" || data.type !== "gap_backfill") return;
      timer ||= setTimeout(() => {
        timer = 0;
        ranges.reload();
      }, AGAIN_MS);
    },
    close() {
      clearTimeout(timer);
      ranges.close();
    },
    render: () =>
      shown(ranges, {
        lines: 8,
        empty: (data) =>
          data.items.length
            ? null
            : nothing(
                data.series ? "Nothing is missing" : "No stored series fits",
                data.series && `${plural(data.series, "series", "series")} looked at.`,
              ),
        content: (data) => [summary(data), table(app, data.items, () => ranges.reload())],
      }),
  };
}

function summary(data) {
  return h(
    "p",
    { class: "facts", key: "summary" },
    h("span", null, `${plural(data.bars, "bar")} missing`),
    data.unconfirmed > 0 && h("span", null, `${plural(data.unconfirmed, "bar")} unconfirmed`),
    h("span", null, `in ${plural(data.ranges, "range")}`),
    h("span", null, `of ${plural(data.series, "series", "series")}`),
    data.ranges > MOST && h("span", null, `the longest ${MOST} are shown`),
  );
}

function table(app, ranges, changed) {
  const mayMend = app.session.may("operator");
  return h(
    "div",
    { class: "table-wrap", key: "table" },
    h(
      "table",
      { class: "table" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", { scope: "col" }, "Series"),
          h("th", { scope: "col" }, "From"),
          h("th", { scope: "col" }, "To"),
          h("th", { scope: "col", class: "number" }, "Bars"),
          h("th", { scope: "col" }, "Fetched by"),
          mayMend && h("th", { scope: "col" }, h("span", { class: "unseen" }, "Actions")),
        ),
      ),
      h(
        "tbody",
        null,
        ranges.map((each) => row(app, each, mayMend, changed)),
      ),
    ),
  );
}

function row(app, range, mayMend, changed) {
  const name = `${range.symbol} ${range.timeframe}`;
  return h(
    "tr",
    { key: `${range.exchange_id}|${name}|${range.start}` },
    h(
      "th",
      { scope: "row" },
      h("a", { href: chartOf(range, range.start) }, name),
      h("small", null, range.exchange_id),
    ),
    h("td", { "data-label": "From" }, at(range.start)),
    h("td", { "data-label": "To" }, at(range.end)),
    h(
      "td",
      { class: "number", "data-label": "Bars" },
      count(range.bars),
      h("small", null, duration(range.end - range.start)),
    ),
    h("td", { "data-label": "Fetched by" }, owner(range.owner), askedAgain(range)),
    mayMend && h("td", { class: "row-actions" }, remedy(app, range, changed)),
  );
}

/** The exchange reported the range as empty, which is not believed yet. */
function askedAgain({ unconfirmed, asked_again: again }) {
  if (!unconfirmed) return null;
  return h(
    "span",
    { class: "row" },
    pill("wait", "unconfirmed"),
    again !== null && h("small", null, "asked again ", away(again)),
  );
}

function owner(job) {
  if (!job) return pill("warn", "no job");
  const state = STATES[stateOf(job)];
  return h(
    "span",
    { class: "row" },
    h("a", { href: `/jobs/${job.id}` }, typeWords(job.type)),
    pill(state.tone, state.words),
  );
}

function remedy(app, range, changed) {
  const { owner: job } = range;
  if (job && job.status === "active") return null;
  const name = `${range.symbol} ${range.timeframe}`;
  const mend = () => (job ? runOwner(app, job, name, changed) : repair(app, range, name, changed));
  return button("Repair", mend, { small: true, icon: "mend", "aria-label": `Repair ${name}` });
}

async function runOwner(app, job, name, changed) {
  const verb = job.state === "failed" ? "run" : "resume";
  await app.act(() => app.api.act(`/jobs/${job.id}/${verb}`), `The job of ${name} goes on.`);
  changed();
}

async function repair(app, range, name, changed) {
  const wanted = {
    exchange_id: range.exchange_id,
    type: "gap_backfill",
    symbol: range.symbol,
    timeframe: range.timeframe,
    since: range.start,
    until: range.end,
  };
  await app.act(
    () => app.api.post("/jobs", wanted),
    `${name}: ${plural(range.bars, "bar")} will be fetched.`,
  );
  changed();
}
