/** Numbers in words. */

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const SHORT = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

/** `12,345` */
export const count = (value) => WHOLE.format(value ?? 0);
/** `12.3K` from ten thousand on */
export const short = (value) => (Math.abs(value) < 10_000 ? count(value) : SHORT.format(value));

/** `0 %`, `0.4 %`, `37 %` of a share between 0 and 1 */
export function percent(share) {
  const value = (share ?? 0) * 100;
  if (value === 0) return "0 %";
  if (value < 0.01) return "< 0.01 %";
  return `${value < 10 ? Number(value.toPrecision(2)) : Math.round(value)} %`;
}

/** `1.2`, `18`: a rate for a glance */
export function rate(value) {
  if (!Number.isFinite(value) || value <= 0) return "0";
  return value < 10 ? value.toFixed(1) : short(Math.round(value));
}

/** As many digits as a price has. */
export function price(value) {
  if (value === null || value === undefined) return "–";
  const digits = value !== 0 && Math.abs(value) < 1 ? 8 : Math.abs(value) < 100 ? 6 : 4;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}

/** Digits behind the point that a price needs. */
export function digitsOf(...values) {
  const needed = values.map((value) => (price(value).split(".")[1] ?? "").length);
  return Math.max(0, ...needed);
}

/** A price with exactly so many digits, so that a column is aligned. */
export const priceWith = (digits, value) =>
  value === null || value === undefined
    ? "–"
    : value.toLocaleString("en-US", {
        minimumFractionDigits: digits,
        maximumFractionDigits: digits,
      });

/** `1 job`, `3 jobs` */
export const plural = (value, one, many = `${one}s`) =>
  `${count(value)} ${value === 1 ? one : many}`;
