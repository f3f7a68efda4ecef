/** Moments and durations in words: local time to read, UTC on hover. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" });
const MOMENT = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});
const DATE = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const UTC_DATE = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
  timeZone: "UTC",
});

/** `03:12:45` */
export const clock = (ms) => CLOCK.format(ms);
/** `17 Nov 2026, 20:12` */
export const moment = (ms) => MOMENT.format(ms);
/** `17 Nov 2026` */
export const date = (ms) => DATE.format(ms);
/** `17 Nov 2026`, the day in UTC */
export const utcDate = (ms) => UTC_DATE.format(ms);
/** `2026-11-17 20:12:45 UTC` */
export const utc = (ms) => `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** `45 s`, `3 min`, `2 h 5 min`, `4 d 3 h`: two units at most. */
export function duration(ms) {
  const left = Math.max(0, Math.round(ms / SECOND) * SECOND);
  if (left < MINUTE) return `${left / SECOND} s`;
  if (left < HOUR) return two(left, MINUTE, "min", SECOND, "s", 10 * MINUTE);
  if (left < DAY) return two(left, HOUR, "h", MINUTE, "min", DAY);
  return two(left, DAY, "d", HOUR, "h", 14 * DAY);
}

function two(ms, large, largeUnit, small, smallUnit, until) {
  const whole = Math.floor(ms / large);
  const rest = Math.round((ms - whole * large) / small);
  if (rest * small >= large) return `${whole + 1} ${largeUnit}`;
  return rest && ms < until
    ? `${whole} ${largeUnit} ${rest} ${smallUnit}`
    : `${whole} ${largeUnit}`;
}

/** `now`, `12 s ago`, `in 5 min` */
export function relative(ms, nowMs) {
  const away = ms - nowMs;
  if (Math.abs(away) < SECOND) return "now";
  return away < 0 ? `${duration(-away)} ago` : `in ${duration(away)}`;
}

/** What `<input type="datetime-local">` takes, in local time. */
export function toLocalInput(ms) {
  const at = new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE);
  return at.toISOString().slice(0, 16);
}

/** Epoch ms of what such an input holds; null for nothing. */
export function fromLocalInput(text) {
  const at = text ? new Date(text).getTime() : Number.NaN;
  return Number.isNaN(at) ? null : at;
}

const UNITS = { s: SECOND, m: MINUTE, h: HOUR, d: DAY, w: 7 * DAY, M: 30 * DAY };

/** About how long a bar of a timeframe is, in ms; months count as thirty days. */
export function timeframeMs(name) {
  const found = /^(\d+)([smhdwM])$/.exec(name ?? "");
  return found ? Number(found[1]) * UNITS[found[2]] : 0;
}
