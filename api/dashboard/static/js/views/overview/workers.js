/** Who is working. */

import { h } from "../../frame/element.js";
import { away, lasting } from "../../parts/moment.js";
import { nothing } from "../../parts/shown.js";

export function workerTable(workers) {
  if (!workers.length) {
    return nothing("No worker is alive", "Start one with collector up, or collector worker.");
  }
  return h(
    "div",
    { class: "table-wrap", key: "workers" },
    h(
      "table",
      { class: "table" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["Worker", "Host", "Process", "Jobs at once", "Up for", "Seen"].map((words) =>
            h("th", { scope: "col", key: words }, words),
          ),
        ),
      ),
      h(
        "tbody",
        null,
        workers.map((each) =>
          h(
            "tr",
            { key: each.id },
            h("th", { scope: "row", class: "mono" }, each.id),
            h("td", { "data-label": "Host" }, each.host),
            h("td", { "data-label": "Process" }, each.pid),
            h("td", { "data-label": "Jobs at once" }, each.concurrency),
            h("td", { "data-label": "Up for" }, lasting(Date.parse(each.started_at))),
            h("td", { "data-label": "Seen" }, away(Date.parse(each.seen_at))),
          ),
        ),
      ),
    ),
  );
}
