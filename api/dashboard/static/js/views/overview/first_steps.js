/** What to do first, on a system that collects nothing yet. */

import { h } from "../../frame/element.js";
import { command, linkButton } from "../../parts/button.js";

export function firstSteps(app) {
  const copied = () => app.notices.say("Copied.");
  return h(
    "div",
    { class: "first-steps", key: "first" },
    h("h3", null, "Nothing is collected yet"),
    h(
      "p",
      null,
      "Choose an exchange and the series you want. Collector makes the jobs: one for the history of each series, one for its new bars.",
    ),
    app.session.may("operator") &&
      linkButton("Add a series", "/add", { kind: "main", icon: "add" }),
    h("p", { class: "or" }, "or on the command line"),
    command("collector add binance BTC/USDT --timeframes 1m --since 2025-01-01", copied),
    h("p", { class: "or" }, "or look at it working, with made-up bars"),
    command("collector up --demo", copied),
  );
}
