/** How much of a limit is used, and how it went. */

import { h } from "../frame/element.js";

const WIDTH = 120;
const HEIGHT = 28;

export function toneOf(share) {
  if (share >= 1) return "full";
  return share >= 0.8 ? "high" : "fine";
}

/** A bar; what it says is written beside it, so it is hidden from screen readers. */
export function gauge(used, limit) {
  const share = limit > 0 ? Math.min(1, Math.max(0, used / limit)) : 0;
  return h(
    "div",
    { class: `gauge ${toneOf(share)}`, "aria-hidden": "true", style: { "--share": share } },
    h("div", { class: "gauge-fill" }),
  );
}

/** The last values as a line from 0 to `most`. */
export function sparkline(values, most) {
  const top = Math.max(most, 1e-9);
  const step = WIDTH / Math.max(1, values.length - 1);
  const y = (value) => HEIGHT - 1 - (Math.min(value, top) / top) * (HEIGHT - 2);
  const line = values.map((value, at) => `${(at * step).toFixed(1)},${y(value).toFixed(1)}`);
  return h(
    "svg",
    {
      class: "sparkline",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    values.length > 1 && [
      h("polygon", { points: `0,${HEIGHT} ${line.join(" ")} ${WIDTH},${HEIGHT}` }),
      h("polyline", { points: line.join(" ") }),
    ],
  );
}
