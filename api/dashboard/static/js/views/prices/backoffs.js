/** Pauses after failures, and the queues between the collecting and Redis. */

import { h } from "../../frame/element.js";
import { pill } from "../../parts/pill.js";
import { count } from "../../words/numbers.js";

export function backoffs(beats) {
  const pauses = beats.flatMap(({ exchange_id: exchange, payload }) =>
    Object.entries(payload.context?.diag?.backoff ?? {}).map(([name, state]) => ({
      exchange,
      name,
      ...state,
    })),
  );
  if (!pauses.length) return null;
  return h(
    "section",
    { key: "backoff", "aria-labelledby": "backoff" },
    h("h2", { id: "backoff" }, "Back-off"),
    h(
      "div",
      { class: "table-wrap" },
      h(
        "table",
        { class: "table" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            ["What", "State", "Pause", "Failures", "Last error"].map((words) =>
              h("th", { scope: "col", key: words }, words),
            ),
          ),
        ),
        h("tbody", null, pauses.map(row)),
      ),
    ),
  );
}

function row(pause) {
  return h(
    "tr",
    { key: `${pause.exchange}|${pause.name}` },
    h("th", { scope: "row" }, pause.name, h("small", null, pause.exchange)),
    h(
      "td",
      { "data-label": "State" },
      pause.active ? pill("bad", "pausing") : pill("good", "not needed"),
    ),
    h("td", { "data-label": "Pause" }, pause.active ? `${pause.sleep_seconds} s` : "–"),
    h("td", { "data-label": "Failures" }, count(pause.fail_count ?? 0)),
    h("td", { "data-label": "Last error" }, pause.last_error_type ?? "–"),
  );
}
