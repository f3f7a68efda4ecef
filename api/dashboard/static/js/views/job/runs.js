/** The runs of a job, newest first. */

import { h } from "../../frame/element.js";
import { button } from "../../parts/button.js";
import { at } from "../../parts/moment.js";
import { nothing } from "../../parts/shown.js";
import { count } from "../../words/numbers.js";
import { duration } from "../../words/time.js";

const COLUMNS = ["Began", "Took", "Outcome", "Pages", "Bars", "Tokens", "Worker"];
const NUMBERS = new Set(["Took", "Pages", "Bars", "Tokens"]);

export function runTable(app, page, runs) {
  if (!page.items.length)
    return nothing("No runs are known", "Uneventful ones are kept for a day.");
  const more = () => {
    runs.most = Math.min(1000, runs.most * 4);
    runs.reload();
  };
  return [
    h(
      "div",
      { class: "table-wrap", key: "runs" },
      h(
        "table",
        { class: "table" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            COLUMNS.map((words) =>
              h(
                "th",
                { scope: "col", key: words, class: NUMBERS.has(words) ? "number" : null },
                words,
              ),
            ),
          ),
        ),
        h("tbody", null, page.items.map(row)),
      ),
    ),
    page.next_cursor &&
      button("Show more", more, { small: true, key: "more", disabled: runs.loading }),
  ];
}

function row(run) {
  return h(
    "tr",
    { key: run.id, same: run.id },
    h("th", { scope: "row", key: "began" }, at(run.started_at)),
    number("Took", took(run.duration_ms)),
    h(
      "td",
      { key: "outcome", "data-label": "Outcome" },
      run.outcome,
      run.error && h("small", { class: "tone bad" }, run.error),
    ),
    number("Pages", count(run.pages)),
    number("Bars", count(run.bars)),
    number("Tokens", count(run.tokens)),
    h("td", { class: "mono", key: "worker", "data-label": "Worker" }, run.worker_id),
  );
}

const took = (ms) => (ms < 1_000 ? `${ms} ms` : duration(ms));

const number = (words, value) =>
  h("td", { class: "number", key: words, "data-label": words }, value);
