/** The table of jobs. */

import { h } from "../../frame/element.js";
import { checkbox } from "../../parts/field.js";
import { jobActions } from "../../parts/job_actions.js";
import { jobProgress } from "../../parts/job_progress.js";
import { away } from "../../parts/moment.js";
import { pill } from "../../parts/pill.js";
import { STATES, placeOf, stateOf, subject, typeWords } from "../../words/jobs.js";

export function jobTable(app, jobs, { view, rates, actions }) {
  const mayChange = app.session.may("operator");
  const all = jobs.every((job) => view.chosen.has(job.id));
  const chooseAll = (on) => {
    view.all = false;
    view.chosen = new Set(on ? jobs.map((job) => job.id) : []);
    app.refresh();
  };
  return h(
    "div",
    { class: "table-wrap", key: "table" },
    h(
      "table",
      { class: "table jobs" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          mayChange &&
            h(
              "th",
              { scope: "col", class: "choose", key: "choose" },
              checkbox("Choose all jobs of this page", all && jobs.length > 0, chooseAll, {
                hidden: true,
                indeterminate: !all && jobs.some((job) => view.chosen.has(job.id)),
              }),
            ),
          ["Job", "State", "How far", "What now"].map((words) =>
            h("th", { scope: "col", key: words }, words),
          ),
          mayChange &&
            h("th", { scope: "col", key: "do" }, h("span", { class: "unseen" }, "Actions")),
        ),
      ),
      h(
        "tbody",
        null,
        jobs.map((job) => row(app, job, { view, rates, actions, mayChange })),
      ),
    ),
  );
}

function row(app, job, { view, rates, actions, mayChange }) {
  const state = stateOf(job);
  const isGone = job.status === "deleted";
  const choose = (on) => {
    view.all = false;
    if (on) view.chosen.add(job.id);
    else view.chosen.delete(job.id);
    app.refresh();
  };
  return h(
    "tr",
    { key: job.id, class: isGone ? "gone" : null, "data-job": job.id },
    mayChange &&
      h(
        "td",
        { class: "choose", key: "choose" },
        checkbox(
          `Choose ${subject(job)}, ${typeWords(job.type)}`,
          view.chosen.has(job.id),
          choose,
          {
            hidden: true,
            disabled: isGone,
          },
        ),
      ),
    h(
      "th",
      { scope: "row", key: "job" },
      h("a", { href: `/jobs/${job.id}` }, subject(job)),
      h("small", null, job.symbol ? `${placeOf(job)} · ${typeWords(job.type)}` : placeOf(job)),
    ),
    h(
      "td",
      { key: "state" },
      isGone ? pill("quiet", "Deleted") : pill(STATES[state].tone, STATES[state].words),
    ),
    h("td", { key: "far", "data-label": "How far" }, jobProgress(job, rates.of(job))),
    h("td", { key: "now", "data-label": "What now", class: "what-now" }, whatNow(job, state)),
    mayChange &&
      h(
        "td",
        { class: "row-actions", key: "do" },
        !isGone && h("div", { class: "row-slots" }, jobActions(app, job, actions.put)),
      ),
  );
}

/** Its error, what it waits for, or when it runs next. */
function whatNow(job, state) {
  if (job.reason) {
    const isBad = state === "failed" || job.attempt > 0;
    return h("span", { class: isBad ? "tone bad clip" : "clip", title: job.reason }, job.reason);
  }
  if (state === "running") {
    return h("span", { class: "facts" }, job.lock.locked_by ? `on ${job.lock.locked_by}` : "");
  }
  if (["idle", "queued", "waiting_rate_limit"].includes(state) && job.next_run_at) {
    return h("span", { class: "facts" }, h("span", null, "next ", away(job.next_run_at)));
  }
  return null;
}
