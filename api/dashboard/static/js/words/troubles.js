/** Troubles in words, and what a click can do about each. */

const TITLES = {
  mongodb: "MongoDB does not answer",
  no_worker: "No worker is running",
  disk: "The disk is almost full",
  damaged: "A file is damaged",
  key_refused: "A key was refused",
  unreachable: "Cannot be reached",
  blocked: "Blocked by the exchange",
  circuit: "Too many errors",
  redis: "Redis is away",
  failed: "Jobs have failed",
  retrying: "Jobs fail again and again",
  overdue: "Due jobs are not taken",
  stale: "New bars are missing",
  clock_drift: "Clocks disagree",
};
const URGENT = new Set([
  "mongodb",
  "no_worker",
  "disk",
  "damaged",
  "key_refused",
  "unreachable",
  "blocked",
  "failed",
]);

export const titleOf = (trouble) => TITLES[trouble.kind] ?? trouble.kind;
export const toneOf = (trouble) => (URGENT.has(trouble.kind) ? "bad" : "warn");
export const keyOf = (trouble) =>
  `${trouble.kind}|${trouble.exchange_id ?? trouble.network ?? ""}|${trouble.reason}`;

/** The list of jobs that a trouble is about, as an address; null when it is about none. */
export function jobsOf(trouble) {
  const query = new URLSearchParams();
  if (trouble.exchange_id) query.set("exchange_id", trouble.exchange_id);
  if (trouble.kind === "failed" || trouble.kind === "key_refused") query.set("state", "failed");
  else if (trouble.kind === "stale") query.set("type", "ohlcv_incremental");
  else if (!["retrying", "overdue"].includes(trouble.kind)) return null;
  return `/jobs?${query}`;
}

/** The commands in a text, to be shown as such: `collector ...` up to the end of the part. */
export function commandsIn(help) {
  return [...help.matchAll(/(?:collector|timedatectl)\b[^;,:]*/g)].map((found) => {
    const words = found[0].trim();
    return words.replace(/ (?:ends it now|on MongoDB's machine)$/, "").trim();
  });
}
