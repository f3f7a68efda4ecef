/** A job's own fields, in groups. */

import { h } from "../../frame/element.js";
import { at, away, left } from "../../parts/moment.js";
import { count } from "../../words/numbers.js";
import { duration } from "../../words/time.js";

export function jobFacts(job) {
  return h(
    "div",
    { class: "fact-groups", key: "facts" },
    group("Cursor", cursorFacts(job)),
    group("Lease", leaseFacts(job)),
    group("Schedule", scheduleFacts(job)),
    group("Counts", countFacts(job)),
  );
}

function group(title, facts) {
  const id = `facts-${title.toLowerCase()}`;
  return h(
    "section",
    { key: title, "aria-labelledby": id, class: "box" },
    h("h2", { id }, title),
    h(
      "dl",
      { class: "fact-list" },
      facts.map(([words, value]) =>
        h("div", { key: words }, h("dt", null, words), h("dd", null, value)),
      ),
    ),
  );
}

function cursorFacts({ cursor, requested_since: since }) {
  if (cursor.since_ms === undefined) {
    return Object.entries(cursor).map(([name, value]) => [name, String(value)]);
  }
  const facts = [["Reached", at(cursor.since_ms)]];
  if (cursor.until_ms) facts.push(["Up to", at(cursor.until_ms)]);
  if (since !== null) facts.push(["Asked since", since ? at(since) : "its first bar"]);
  facts.push(["Newest bar", at(cursor.last_ts)], ["Pages", count(cursor.page)]);
  return facts;
}

function leaseFacts({ lock, fence, attempt }) {
  return [
    ["Held by", lock.locked_by ? h("span", { class: "mono" }, lock.locked_by) : "no worker"],
    ["Ends in", lock.locked_by ? left(lock.lock_until, "over") : "–"],
    ["Fence", count(fence)],
    ["Attempts in a row", count(attempt)],
  ];
}

function scheduleFacts({ schedule, next_run_at: next, priority, status, created_at: made, id }) {
  return [
    ["Runs", scheduleWords(schedule)],
    ["Next", status === "active" ? away(next) : "not while it is stopped"],
    ["Priority", count(priority)],
    ["Made", at(Date.parse(made))],
    ["Id", h("span", { class: "mono" }, id)],
  ];
}

function countFacts({ stats, params }) {
  const facts = [
    ["Runs", count(stats.runs)],
    ["Of these failed", count(stats.fail)],
    ["Last success", away(stats.last_success_at)],
  ];
  if (stats.failing_since) facts.push(["Failing since", at(stats.failing_since)]);
  for (const [name, value] of Object.entries(params)) facts.push([name, JSON.stringify(value)]);
  return facts;
}

function scheduleWords(schedule) {
  if (schedule.mode === "interval") return `every ${duration(schedule.interval_ms)}`;
  if (schedule.mode === "once") return "until it is done";
  if (schedule.mode === "cron") return `${schedule.expression} (UTC)`;
  if (schedule.mode === "poll") return "as often as prices move";
  return "when a bar has closed";
}
