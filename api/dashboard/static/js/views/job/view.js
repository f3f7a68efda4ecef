/** One job: where it is, who has it, what went wrong, and its runs. */

import { createBarRates } from "../../bar_rates.js";
import { h } from "../../frame/element.js";
import { createResource } from "../../frame/resource.js";
import { linkButton } from "../../parts/button.js";
import { icon } from "../../parts/icon.js";
import { jobActions } from "../../parts/job_actions.js";
import { jobProgress } from "../../parts/job_progress.js";
import { pill } from "../../parts/pill.js";
import { sentence, shown } from "../../parts/shown.js";
import { STATES, placeOf, stateOf, subject, typeWords } from "../../words/jobs.js";
import { jobFacts } from "./facts.js";
import { runTable } from "./runs.js";

const RUNS = 20;
const RUNS_AGAIN_MS = 2_000;

export function open(app, place) {
  const { id } = place.params;
  const rates = createBarRates();
  let runsTimer = 0;
  const job = createResource((signal) => app.api.get(`/jobs/${id}`, {}, signal), app.refresh);
  const runs = createResource((signal) => readRuns(app.api, id, runs, signal), app.refresh);
  runs.most = RUNS;

  function put(given) {
    rates.note(given);
    const hasRun = given.stats.runs !== job.data?.stats.runs;
    job.put(given);
    if (hasRun && !runsTimer) {
      runsTimer = setTimeout(() => {
        runsTimer = 0;
        runs.reload();
      }, RUNS_AGAIN_MS);
    }
  }

  const reload = () => {
    job.reload();
    runs.reload();
  };
  reload();
  return {
    title: () => (job.data ? subject(job.data) : "Job"),
    take: (name, data) => name === "job" && data.id === id && put(data),
    fresh: reload,
    close: () => {
      clearTimeout(runsTimer);
      job.close();
      runs.close();
    },
    render: () =>
      shown(job, { lines: 8, content: (data) => render(app, data, { rates, runs, put }) }),
  };
}

async function readRuns(api, id, runs, signal) {
  return api.get(`/jobs/${id}/runs`, { limit: runs.most }, signal);
}

function render(app, job, { rates, runs, put }) {
  const state = stateOf(job);
  const isGone = job.status === "deleted";
  return [
    h(
      "div",
      { key: "head" },
      h("p", { class: "crumbs" }, h("a", { href: "/jobs" }, "Jobs")),
      h(
        "div",
        { class: "page-head" },
        h("h1", null, subject(job)),
        isGone ? pill("quiet", "Deleted") : pill(STATES[state].tone, STATES[state].words),
        h("p", { class: "facts" }, `${placeOf(job)} · ${typeWords(job.type)}`),
        h(
          "div",
          { class: "row", key: "actions" },
          job.symbol &&
            job.timeframe &&
            job.exchange_id &&
            linkButton("Chart", chartOf(job), { icon: "chart", key: "chart" }),
          !isGone && jobActions(app, job, put, { words: true }),
        ),
      ),
    ),
    trouble(job, state),
    h(
      "section",
      { key: "progress", "aria-labelledby": "progress" },
      h("h2", { id: "progress" }, "How far"),
      h("div", { class: "box wide-progress" }, jobProgress(job, rates.of(job))),
    ),
    jobFacts(job),
    h(
      "section",
      { key: "runs", "aria-labelledby": "runs" },
      h("h2", { id: "runs" }, "Runs"),
      shown(runs, {
        lines: 5,
        content: (data) => runTable(app, data, runs),
      }),
    ),
  ];
}

function trouble(job, state) {
  if (!job.reason) return null;
  const isBad = state === "failed" || job.attempt > 0;
  return h(
    "div",
    { class: `panel ${isBad ? "bad" : ""}`, key: "trouble", role: isBad ? "alert" : null },
    icon(isBad ? "bad" : "wait"),
    h(
      "div",
      { class: "grow" },
      h("p", { class: "strong reason" }, sentence(job.reason)),
      job.advice && h("p", null, h("strong", null, "What to do: "), job.advice),
    ),
    job.stats.last_error_code && h("code", null, job.stats.last_error_code),
  );
}

function chartOf(job) {
  const query = new URLSearchParams({
    exchange_id: job.exchange_id,
    symbol: job.symbol,
    timeframe: job.timeframe,
  });
  return `/chart?${query}`;
}
