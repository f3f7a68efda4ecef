/** What is wrong, the most urgent first, each with what helps. */

import { h } from "../../frame/element.js";
import { button, command, linkButton } from "../../parts/button.js";
import { icon } from "../../parts/icon.js";
import { lasting } from "../../parts/moment.js";
import { sentence } from "../../parts/shown.js";
import { plural } from "../../words/numbers.js";
import { commandsIn, jobsOf, keyOf, titleOf, toneOf } from "../../words/troubles.js";
import { liftBlock, runFailed } from "./remedies.js";

export function headline(fleet) {
  const { data, error } = fleet.troubles;
  if (data === null) return null;
  const found = data.items.length;
  const urgent = data.items.some((each) => toneOf(each) === "bad");
  const tone = found === 0 ? "good" : urgent ? "bad" : "warn";
  const words = found === 0 ? "All is well" : plural(found, "thing needs", "things need") + " you";
  return h(
    "h2",
    { class: `headline ${error ? "quiet" : tone}`, key: "headline", "aria-live": "polite" },
    icon(error ? "quiet" : tone),
    h("span", null, error ? "What is wrong is not known now" : words),
  );
}

export function troubleList(app, troubles) {
  if (!troubles.length) return null;
  return h(
    "ul",
    { class: "troubles", key: "list", "aria-label": "Troubles" },
    troubles.map((each) => h("li", { key: keyOf(each) }, trouble(app, each))),
  );
}

function trouble(app, each) {
  const where = each.exchange_id ?? each.network;
  return h(
    "article",
    { class: `trouble ${toneOf(each)}` },
    icon(toneOf(each)),
    h(
      "div",
      { class: "grow" },
      h(
        "h3",
        null,
        where && [h("span", { class: "where" }, where), " "],
        titleOf(each),
        h("span", { class: "unseen" }, toneOf(each) === "bad" ? " (urgent)" : " (warning)"),
      ),
      h("p", { class: "reason" }, sentence(each.reason)),
      h(
        "p",
        { class: "facts" },
        each.since && h("span", null, "for ", lasting(each.since)),
        each.jobs > 0 && h("span", null, plural(each.jobs, "job")),
      ),
    ),
    h("div", { class: "remedy" }, remedies(app, each)),
  );
}

function remedies(app, each) {
  const found = [];
  if (each.kind === "blocked" && app.session.may("operator")) {
    found.push(button("Lift the block", () => liftBlock(app, each.exchange_id), { small: true }));
  }
  if (each.kind === "failed" && each.exchange_id && app.session.may("operator")) {
    found.push(
      button("Run all failed again", () => runFailed(app, { exchange_id: each.exchange_id }), {
        small: true,
        icon: "again",
      }),
    );
  }
  const jobs = jobsOf(each);
  if (jobs) found.push(linkButton("Show jobs", jobs, { small: true }));
  const commands = commandsIn(each.help);
  if (commands.length) {
    const copied = () => app.notices.say("Copied.");
    found.push(commands.map((words) => h("div", { key: words }, command(words, copied))));
  } else {
    found.push(h("p", { class: "help" }, sentence(each.help)));
  }
  return found;
}
