/** Jobs in words: their states, what they do, and how far they are. */

import { DAY, timeframeMs } from "./time.js";

/** Every state as filters name it, with its tone and word. */
export const STATES = {
  running: { tone: "busy", words: "Running" },
  queued: { tone: "info", words: "Queued" },
  waiting_rate_limit: { tone: "wait", words: "Waits for budget" },
  idle: { tone: "quiet", words: "Idle" },
  failed: { tone: "bad", words: "Failed" },
  paused: { tone: "warn", words: "Paused" },
  done: { tone: "good", words: "Done" },
};
export const STATE_ORDER = [
  "failed",
  "running",
  "queued",
  "waiting_rate_limit",
  "idle",
  "paused",
  "done",
];

const TYPES = {
  ohlcv_incremental: "New bars",
  ohlcv_backfill: "History",
  ohlcv_from_trades: "History from trades",
  gap_backfill: "Gap",
  markets_refresh: "Markets",
  compact: "Compaction",
  tail_refresh: "Tails",
  gap_scan: "Gap scan",
  full_scan: "Full scan",
  verify_source: "Source check",
  price_stream: "Live prices",
  tickers_snapshot: "Tickers",
  trades_incremental: "Trades",
  history_apply: "Trade history",
};

export const typeWords = (type) => TYPES[type] ?? type;
export const TYPE_NAMES = Object.keys(TYPES);

/** One word for status and state, as the API's filters mean it. */
export function stateOf(job) {
  if (job.state === "success") return job.status === "paused" ? "done" : "idle";
  if (job.status === "paused" && job.state !== "failed") return "paused";
  return job.state;
}

/** `BTC/USDT 1m`, or what the job is about when it has no series. */
export function subject(job) {
  if (job.symbol) return job.timeframe ? `${job.symbol} ${job.timeframe}` : job.symbol;
  return typeWords(job.type);
}

export const placeOf = (job) => job.exchange_id ?? job.network ?? "";

/**
 * How far a job is that has a beginning and an end: its share, the moment it has reached and the
 * bars that are left. Null for others.
 */
export function progressOf(job) {
  const { cursor, progress } = job;
  const until = cursor?.until_ms;
  if (!until) return null;
  const reached = cursor.since_ms;
  if (cursor.done) return { share: 1, reached: until, left: 0 };
  const from = progress?.from_ms;
  if (from === undefined || until <= from) return { share: 0, reached: null, left: null };
  const step = timeframeMs(job.timeframe) || 1;
  return {
    share: Math.min(1, Math.max(0, (reached - from) / (until - from))),
    reached: Math.max(reached, from),
    left: Math.max(0, Math.round((until - Math.max(reached, from)) / step)),
  };
}

const YOUNG_SLOTS = 3;

/**
 * Up to where a live series is stored or reported as empty by its exchange, which is asked again;
 * null when it is not silent, or has been for more than three days.
 */
export function unconfirmedUntil(job, now) {
  const silences = job.progress?.silences ?? [];
  if (!silences.length) return null;
  const first = Math.min(...silences.map(([, , , firstAt]) => firstAt));
  if (now - first > 3 * DAY) return null;
  const end = Math.max(...silences.map(([, to]) => to));
  return Math.max(job.cursor.since_ms, end + YOUNG_SLOTS * timeframeMs(job.timeframe));
}

/** What may be done with a job now. */
export function actionsOf(job) {
  const state = stateOf(job);
  return {
    run: state !== "running" && state !== "paused",
    pause: job.status === "active",
    resume: state === "paused",
    remove: true,
  };
}
