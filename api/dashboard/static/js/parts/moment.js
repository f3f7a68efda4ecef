/** Moments on the page: in local time or as an age, with UTC on hover. */

import { h } from "../frame/element.js";
import { beat, now } from "../link/clock.js";
import { date, duration, moment, relative, utc } from "../words/time.js";

function time(ms, text, more = {}) {
  return h("time", { datetime: new Date(ms).toISOString(), title: utc(ms), ...more }, text);
}

/** `17 Nov 2026, 20:12` */
export const at = (ms, more) => (ms ? time(ms, moment(ms), more) : "–");
/** `17 Nov 2026` */
export const on = (ms, more) => (ms ? time(ms, date(ms), more) : "–");

/** `12 s ago`, `in 5 min`, kept up to date. */
export function away(ms, more = {}) {
  if (!ms) return "–";
  return beating(ms, () => relative(ms, now()), more);
}

/** How long something has lasted: `3 min`. */
export function lasting(ms, more = {}) {
  if (!ms) return "–";
  return beating(ms, () => duration(now() - ms), more);
}

/** The time that is left, `over` when there is none. */
export function left(ms, over = "now", more = {}) {
  if (!ms) return "–";
  return beating(ms, () => (ms > now() ? duration(ms - now()) : over), more);
}

function beating(ms, words, more) {
  const hook = beat((node) => {
    const text = words();
    if (node.textContent !== text) node.textContent = text;
  });
  return time(ms, null, { ...more, hook });
}
