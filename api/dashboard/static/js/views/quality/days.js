/** Days of a series as runs of equal cells, and in words. Pure. */

import { count } from "../../words/numbers.js";
import { DAY, utcDate } from "../../words/time.js";

const FULL = 10;

/** How a day looks: the height shows as well as the colour how much of it is there. */
function cellOf(expected, missing, unconfirmed) {
  if (expected === 0) return { level: "none", height: 1.2 };
  if (missing === 0 && unconfirmed === 0) return { level: "whole", height: FULL };
  if (missing === 0) return { level: "unconfirmed", height: FULL * 0.85 };
  const share = missing / expected;
  if (share < 0.5) return { level: "some", height: FULL * (0.72 - 0.3 * share) };
  return { level: "most", height: share >= 1 ? 2.4 : 3.6 };
}

/** Neighbouring days that look alike are one cell where nothing is missing. */
export function runsOf({ expected, missing, unconfirmed }) {
  const runs = [];
  expected.forEach((bars, at) => {
    const cell = cellOf(bars, missing[at], unconfirmed[at]);
    const last = runs.at(-1);
    const joins = last && last.level === cell.level && ["whole", "none"].includes(cell.level);
    if (joins) last.length += 1;
    else runs.push({ ...cell, from: at, length: 1 });
  });
  return runs;
}

export function summaryOf({ expected, missing, unconfirmed }) {
  const sum = (values) => values.reduce((total, each) => total + each, 0);
  return { expected: sum(expected), missing: sum(missing), unconfirmed: sum(unconfirmed) };
}

/** `BTC/USDT 1m, 2 Nov 2026: 37 of 1,440 bars missing, 12 unconfirmed` */
export function wordsOf(series, at, start) {
  const name = `${series.symbol} ${series.timeframe}, ${utcDate(start + at * DAY)} (UTC)`;
  const expected = series.expected[at];
  if (!expected) return `${name}: nothing is expected`;
  const missing = series.missing[at];
  const unconfirmed = series.unconfirmed[at];
  const more = unconfirmed ? `, ${count(unconfirmed)} unconfirmed` : "";
  if (missing) return `${name}: ${count(missing)} of ${count(expected)} bars missing${more}`;
  return unconfirmed
    ? `${name}: ${count(unconfirmed)} of ${count(expected)} bars unconfirmed`
    : `${name}: all ${count(expected)} bars are there`;
}

/** Where months begin in a range, as shares of its length; the first of it too. */
export function monthMarks(start, end) {
  const format = new Intl.DateTimeFormat("en-GB", { month: "short", timeZone: "UTC" });
  const marks = [];
  for (let day = start; day < end; day += DAY) {
    if (new Date(day).getUTCDate() === 1) {
      marks.push({ share: (day - start) / (end - start), words: format.format(day) });
    }
  }
  return marks.filter(({ share }) => share < 0.97);
}

const lines = new Map();

/** A line between every two days, as one path. */
export function betweenDays(days) {
  if (!lines.has(days)) {
    const each = Array.from({ length: days - 1 }, (_, at) => `M${at + 1} 0V10`);
    lines.set(days, each.join(""));
  }
  return lines.get(days);
}
