/** Checks: every bar of the chosen series now, and the last comparisons with the exchange. */

import { h } from "../../frame/element.js";
import { createResource } from "../../frame/resource.js";
import { button } from "../../parts/button.js";
import { at } from "../../parts/moment.js";
import { pill } from "../../parts/pill.js";
import { nothing, shown, skeleton } from "../../parts/shown.js";
import { count, percent, plural } from "../../words/numbers.js";
import { chartOf, filtersOf } from "./filters.js";

const AT_ONCE = 3;

export function openValidation(app, first) {
  let query = first;
  const checks = createResource((signal) => {
    const asked = { ...filtersOf(query), limit: AT_ONCE, cursor: checks.cursor };
    return app.api.getSlowly("/reports/validation", asked, signal);
  }, app.refresh);
  const source = createResource(
    (signal) => app.api.get("/reports/source", { exchange_id: query.get("exchange_id") }, signal),
    app.refresh,
  );
  source.reload();
  const check = (cursor) => {
    checks.cursor = cursor;
    checks.reload();
  };
  return {
    arrive(next) {
      query = next;
      checks.clear();
      source.reload();
    },
    reload: () => source.reload(),
    close() {
      checks.close();
      source.close();
    },
    render: () => [files(checks, check), comparisons(source)],
  };
}

function files(checks, check) {
  const isIdle = checks.data === null && !checks.loading && !checks.error;
  return h(
    "section",
    { key: "files", "aria-labelledby": "files" },
    h(
      "div",
      { class: "section-head" },
      h("h2", { id: "files" }, "Stored bars"),
      h("p", { class: "facts grow" }, `Reads whole files, ${AT_ONCE} series at a time.`),
      button("Check now", () => check(null), {
        small: true,
        disabled: checks.loading,
        icon: "run",
      }),
    ),
    isIdle &&
      nothing("Not checked yet", "A check reads every bar of a series, and asks no exchange."),
    checks.loading && skeleton(3),
    !isIdle &&
      !checks.loading &&
      shown(checks, {
        empty: (data) => (data.items.length ? null : nothing("No stored series fits")),
        content: (data) => [
          h(
            "p",
            { class: "facts", key: "at" },
            h("span", null, "Checked ", at(Date.parse(data.generated_at))),
            h(
              "span",
              null,
              `${plural(data.summary.series_ok, "series", "series")} of ${data.items.length} sound`,
            ),
          ),
          checkTable(data.items),
          data.next_cursor &&
            button("Check the next", () => check(data.next_cursor), { small: true, key: "next" }),
        ],
      }),
  );
}

function checkTable(series) {
  return h(
    "div",
    { class: "table-wrap", key: "checks" },
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
          h("th", { scope: "col" }, "Result"),
          h("th", { scope: "col", class: "number" }, "Rows"),
          h("th", { scope: "col", class: "number" }, "Missing"),
          h("th", { scope: "col", class: "number" }, "Unconfirmed"),
        ),
      ),
      h("tbody", null, series.map(checkRow)),
    ),
  );
}

function checkRow(each) {
  const failed = Object.entries(each.checks).filter(([, check]) => !check.ok);
  return h(
    "tr",
    { key: `${each.exchange}|${each.symbol}|${each.tf}` },
    h(
      "th",
      { scope: "row" },
      h("a", { href: chartOf(each) }, `${each.symbol} ${each.tf}`),
      h("small", null, each.exchange),
    ),
    h(
      "td",
      { "data-label": "Result" },
      failed.length
        ? failed.map(([name, check]) =>
            pill("bad", `${name}: ${count(check.count)}`, { key: name }),
          )
        : pill("good", "sound"),
    ),
    h("td", { class: "number", "data-label": "Rows" }, count(each.rows)),
    h("td", { class: "number", "data-label": "Missing" }, percent(each.gaps_pct)),
    h("td", { class: "number", "data-label": "Unconfirmed" }, count(each.unconfirmed)),
  );
}

function comparisons(source) {
  return h(
    "section",
    { key: "source", "aria-labelledby": "source" },
    h("h2", { id: "source" }, "Compared with the exchange"),
    shown(source, {
      lines: 2,
      empty: (data) =>
        data.items.length
          ? null
          : nothing(
              "No comparison is known",
              "A job verify_source compares random bars with what the exchange serves.",
            ),
      content: (data) => sourceTable(data.items),
    }),
  );
}

function sourceTable(items) {
  return h(
    "div",
    { class: "table-wrap", key: "source" },
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
          h("th", { scope: "col" }, "Result"),
          h("th", { scope: "col", class: "number" }, "Compared"),
          h("th", { scope: "col" }, "When"),
        ),
      ),
      h("tbody", null, items.map(sourceRow)),
    ),
  );
}

function sourceRow(each) {
  return h(
    "tr",
    { key: `${each.exchange_id}|${each.symbol}|${each.timeframe}` },
    h(
      "th",
      { scope: "row" },
      h("a", { href: chartOf(each) }, `${each.symbol} ${each.timeframe}`),
      h("small", null, each.exchange_id),
    ),
    h(
      "td",
      { "data-label": "Result" },
      each.ok ? pill("good", "the same") : pill("bad", `${count(each.count)} differ`),
    ),
    h("td", { class: "number", "data-label": "Compared" }, count(each.compared)),
    h("td", { "data-label": "When" }, at(each.checked_at)),
  );
}
