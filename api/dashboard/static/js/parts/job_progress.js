/** How far a job is: a bar with the date it has reached, or how old its newest bar is. */

import { h } from "../frame/element.js";
import { now } from "../link/clock.js";
import { progressOf, unconfirmedUntil } from "../words/jobs.js";
import { count, percent, rate } from "../words/numbers.js";
import { duration, timeframeMs } from "../words/time.js";
import { at, away, on } from "./moment.js";

/** @param {number|null} perSecond bars a second, when that is known */
export function jobProgress(job, perSecond) {
  const progress = progressOf(job);
  if (progress !== null) return backfill(job, progress, perSecond);
  if (job.type === "ohlcv_incremental") return newBars(job);
  return h(
    "span",
    { class: "facts" },
    job.stats.last_run_at
      ? h("span", null, "ran ", away(job.stats.last_run_at))
      : "has not run yet",
  );
}

function backfill(job, { share, reached, left }, perSecond) {
  const words = [];
  if (share < 1 && perSecond !== null && left !== null) {
    words.push(`${rate(perSecond)} bars/s`);
    if (perSecond > 0) words.push(`${duration((left / perSecond) * 1000)} left`);
  } else if (left) {
    words.push(`${count(left)} bars left`);
  }
  return h(
    "div",
    { class: "progress" },
    h(
      "div",
      {
        class: `progress-bar ${share >= 1 ? "whole" : ""}`,
        style: { "--share": share },
        "aria-hidden": "true",
      },
      h("div", { class: "progress-fill" }),
    ),
    h("span", { class: "progress-share" }, share >= 1 ? "100 %" : percent(share)),
    h(
      "span",
      { class: "facts" },
      reached ? h("span", null, "to ", on(reached)) : h("span", null, "has not begun"),
      words.map((each) => h("span", null, each)),
    ),
  );
}

function newBars(job) {
  const until = job.cursor.since_ms;
  if (!until) return h("span", { class: "facts" }, "has not begun");
  const step = timeframeMs(job.timeframe);
  const silent = unconfirmedUntil(job, now());
  const behind = step ? Math.max(0, Math.floor((now() - (silent ?? until)) / step)) : 0;
  const tone = behind <= 1 ? "good" : behind <= 5 ? "warn" : "bad";
  return h(
    "span",
    { class: "facts" },
    h("span", null, "stored to ", at(until)),
    silent !== null && h("span", { class: "tone warn" }, "unconfirmed since then"),
    behind > 1 && h("span", { class: `tone ${tone}` }, `${count(behind)} bars behind`),
  );
}
