/** One change to many jobs: those that are chosen, or all that the filters name. */

import { h } from "../../frame/element.js";
import { button } from "../../parts/button.js";
import { count, plural } from "../../words/numbers.js";
import { runFailed } from "../overview/remedies.js";

const VERBS = [
  { name: "run", words: "Run now", icon: "run", role: "operator", done: "queued" },
  { name: "pause", words: "Pause", icon: "pause", role: "operator", done: "paused" },
  { name: "resume", words: "Resume", icon: "run", role: "operator", done: "resumed" },
  { name: "remove", words: "Delete", icon: "trash", role: "admin", done: "deleted", danger: true },
];

export function bulkBar(app, { view, chosen, filters, page, actions }) {
  if (!app.session.may("operator")) return null;
  if (!chosen.length) return failedBar(app, filters);
  const isAll = view.all;
  const hasMore = page !== null && (page.hasNext || page.hasBefore);
  return h(
    "div",
    { class: "bulk", key: "bulk", role: "group", "aria-label": "Chosen jobs" },
    h(
      "p",
      { class: "grow", role: "status" },
      isAll ? "All jobs that fit the filters" : `${plural(chosen.length, "job")} chosen`,
    ),
    !isAll &&
      hasMore &&
      chosen.length === page.items.length &&
      button(
        "Choose all that fit",
        () => {
          view.all = true;
          app.refresh();
        },
        { small: true, kind: "quiet" },
      ),
    VERBS.filter((verb) => app.session.may(verb.role)).map((verb) =>
      button(verb.words, () => change(app, verb, isAll ? filters : idsOf(chosen), actions), {
        small: true,
        icon: verb.icon,
        key: verb.name,
      }),
    ),
    button(
      "Choose none",
      () => {
        actions.clear();
        app.refresh();
      },
      { small: true, kind: "quiet" },
    ),
  );
}

function failedBar(app, filters) {
  if (!filters.state?.includes("failed")) return null;
  const { state: _, ...others } = filters;
  return h(
    "div",
    { class: "bulk", key: "failed" },
    h("p", { class: "grow" }, "These jobs wait for you: mend the cause, then run them."),
    button("Run all failed again", () => runFailed(app, others), { small: true, icon: "again" }),
  );
}

const idsOf = (jobs) => ({ id: jobs.map((job) => job.id) });

async function change(app, verb, filters, actions) {
  const path = `/jobs/${verb.name}`;
  const filter = Object.keys(filters).length ? filters : { all: true };
  let counted = null;
  await app.act(async () => {
    counted = await app.api.post(path, { filter, dry_run: true });
  });
  if (counted === null) return;
  const yes = await app.dialogs.ask({
    title: `${verb.words}: ${plural(counted.changed, "job")}?`,
    body: h(
      "div",
      null,
      h(
        "p",
        null,
        h("strong", null, count(counted.changed)),
        ` of ${count(counted.matched)} will change.`,
      ),
      h("p", null, "Finished jobs are never among them."),
      verb.danger && h("p", null, "What they have collected stays."),
    ),
    action: verb.words,
    danger: verb.danger === true,
  });
  if (!yes) return;
  await app.act(
    () => app.api.post(path, { filter }),
    (answer) => [`${plural(answer.changed, "job")} ${verb.done}.`, ...answer.refused].join(" "),
  );
  actions.clear();
  actions.reload();
  app.fleet.reload();
}
