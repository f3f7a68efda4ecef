/** The budget for history calls of an exchange that has one, such as FXCM's. */

import { h } from "../../frame/element.js";
import { gauge } from "../../parts/gauge.js";
import { pill } from "../../parts/pill.js";
import { count } from "../../words/numbers.js";

const TONES = { ok: "good", warn: "warn", critical: "bad" };

export function budgetCards(connectors) {
  const found = connectors.filter((each) => each.history_budget);
  if (!found.length) return null;
  return h(
    "section",
    { key: "budget", "aria-labelledby": "budget" },
    h("h2", { id: "budget" }, "History budget"),
    h(
      "ul",
      { class: "cards" },
      found.map((each) => h("li", { key: each.exchange_id }, card(each))),
    ),
  );
}

function card({ exchange_id: name, history_budget: budget }) {
  return h(
    "article",
    { class: "card", "aria-labelledby": `budget-${name}` },
    h(
      "header",
      { class: "card-head" },
      h("h3", { id: `budget-${name}` }, name),
      pill(TONES[budget.throttle_state] ?? "quiet", budget.throttle_state),
    ),
    window("a minute", budget.calls_60s, budget.limit_60s, budget.priority.reserve_per_min),
    window("an hour", budget.calls_3600s, budget.limit_3600s, budget.priority.reserve_per_hour),
    h(
      "dl",
      { class: "fact-list" },
      fact(
        "Next slot",
        budget.next_slot_seconds ? `in ${budget.next_slot_seconds.toFixed(1)} s` : "now",
      ),
      fact("Last denied for", budget.last_denied_reason ?? "–"),
      fact("Go first", budget.priority.targets.join(", ") || "–"),
    ),
    budget.skipped_polls.length > 0 && skipped(budget.skipped_polls),
  );
}

function window(words, used, limit, reserve) {
  return h(
    "div",
    { key: words },
    h(
      "p",
      { class: "budget-line" },
      h("span", { class: "strong" }, `${count(used)} of ${count(limit)}`),
      h(
        "span",
        { class: "facts" },
        `calls in ${words}${reserve ? `, ${count(reserve)} kept` : ""}`,
      ),
    ),
    gauge(used, limit),
  );
}

const fact = (words, value) => h("div", { key: words }, h("dt", null, words), h("dd", null, value));

function skipped(polls) {
  return h(
    "details",
    { key: "skipped" },
    h("summary", null, `Skipped polls of ${polls.length} series`),
    h(
      "ul",
      null,
      polls.map((each) =>
        h(
          "li",
          { key: `${each.symbol}${each.tf}` },
          `${each.symbol} ${each.tf}: ${count(each.count)}, ${each.last_reason}`,
        ),
      ),
    ),
  );
}
