/** Timeframe, moment and version, all of them in the address. */

import { h } from "../../frame/element.js";
import { withQuery } from "../../frame/router.js";
import { button } from "../../parts/button.js";
import { choices, input } from "../../parts/field.js";
import { icon } from "../../parts/icon.js";
import { at } from "../../parts/moment.js";
import { fromLocalInput, toLocalInput } from "../../words/time.js";
import { bucketWords } from "./sources.js";

export function timeframes(source, about, query) {
  const offered = about?.timeframes ?? [];
  if (source.kind === "pair") {
    const current = source.bucket || offered[0];
    const options = offered.map((each) => ({
      words: bucketWords(each),
      value: each,
      href: withQuery({ bucket: each }, query),
    }));
    return choices("Bucket", options, current);
  }
  const known = offered.includes(source.timeframe) ? offered : [source.timeframe, ...offered];
  const options = known.map((each) => ({
    words: each,
    value: each,
    href: withQuery({ timeframe: each }, query),
  }));
  return choices("Timeframe", options, source.timeframe);
}

export function moments(app, source, query) {
  const jump = (name) => (event) => {
    const ms = fromLocalInput(event.target.value);
    app.router.set({ [name]: ms === null ? null : new Date(ms).toISOString() });
  };
  const value = (name) => {
    const given = Date.parse(query.get(name) ?? "");
    return Number.isNaN(given) ? "" : toLocalInput(given);
  };
  const field = (label, name, hint) =>
    input(label, name, value(name), () => {}, {
      type: "datetime-local",
      hint,
      on: { change: jump(name) },
    });
  return h(
    "div",
    { class: "moments", key: "moments" },
    field("Go to", "at"),
    source.kind === "series" && field("As known at", "as_of"),
  );
}

/** Says that an earlier version is shown, with the way back. */
export function versionNote(app, asOf) {
  if (asOf === null) return null;
  return h(
    "div",
    { class: "panel", key: "version" },
    icon("wait"),
    h("p", { class: "grow" }, "As it was known at ", at(asOf), ". Later corrections are left out."),
    button("Show it as it is now", () => app.router.set({ as_of: null }), { small: true }),
  );
}

export function moving(drawing) {
  return h(
    "div",
    { class: "moving", key: "moving", role: "group", "aria-label": "Move the chart" },
    move("←", "Earlier", () => drawing()?.scroll(-60)),
    move("→", "Later", () => drawing()?.scroll(60)),
    move("+", "Closer", () => drawing()?.zoom(0.6)),
    move("−", "Wider", () => drawing()?.zoom(1 / 0.6)),
    move("Newest", "Newest bars", () => drawing()?.look(null)),
  );
}

const move = (words, label, act) =>
  button(words, act, { small: true, "aria-label": label, title: label });
