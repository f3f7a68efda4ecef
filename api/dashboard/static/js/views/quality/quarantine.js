/** Rows that were refused, and why. */

import { h } from "../../frame/element.js";
import { createResource } from "../../frame/resource.js";
import { withQuery } from "../../frame/router.js";
import { linkButton } from "../../parts/button.js";
import { at } from "../../parts/moment.js";
import { nothing, shown } from "../../parts/shown.js";

const PAGE = 50;

export function openQuarantine(app, first) {
  let query = first;
  const rows = createResource((signal) => {
    const asked = {
      exchange_id: query.get("exchange_id"),
      timeframe: query.get("timeframe"),
      symbol: query.get("symbol"),
      cursor: query.get("cursor"),
      limit: PAGE,
    };
    return app.api.get("/quarantine", asked, signal);
  }, app.refresh);
  rows.reload();
  return {
    arrive(next) {
      query = next;
      rows.reload();
    },
    reload: () => rows.reload(),
    close: () => rows.close(),
    render: () =>
      shown(rows, {
        lines: 6,
        empty: (data) =>
          data.items.length
            ? null
            : nothing("No row was refused", "What exchanges send that is no bar is kept here."),
        content: (data) => [table(data.items), pager(data, query)],
      }),
  };
}

function table(rows) {
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
          ["Series", "Bar of", "Why", "Row as it came", "Received"].map((words) =>
            h("th", { scope: "col", key: words }, words),
          ),
        ),
      ),
      h("tbody", null, rows.map(row)),
    ),
  );
}

function row(each, place) {
  return h(
    "tr",
    { key: `${each.symbol}|${each.timeframe}|${each.ts}|${each.known_at}|${place}` },
    h(
      "th",
      { scope: "row" },
      `${each.symbol} ${each.timeframe}`,
      h("small", null, each.exchange_id),
    ),
    h("td", { "data-label": "Bar of" }, each.ts === null ? "cannot be read" : at(each.ts)),
    h("td", { "data-label": "Why" }, each.reason),
    h("td", { "data-label": "Row as it came", class: "mono clip" }, JSON.stringify(each.row)),
    h("td", { "data-label": "Received" }, at(each.known_at)),
  );
}

function pager(data, query) {
  return h(
    "nav",
    { class: "pager", "aria-label": "Pages", key: "pager" },
    query.has("cursor") &&
      linkButton("First page", withQuery({ cursor: null }, query), { small: true }),
    data.next_cursor &&
      linkButton("Next", withQuery({ cursor: data.next_cursor }, query), { small: true }),
  );
}
