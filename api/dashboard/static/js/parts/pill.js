/** A state in one word: a shape, a word and a colour, so that no one of them is needed alone. */

import { h } from "../frame/element.js";
import { icon } from "./icon.js";

const SHAPES = {
  good: "good",
  warn: "warn",
  bad: "bad",
  info: "info",
  busy: "busy",
  wait: "wait",
  quiet: "quiet",
};

/** @param {keyof SHAPES} tone */
export function pill(tone, words, more = {}) {
  return h(
    "span",
    { ...more, class: `pill ${tone} ${more.class ?? ""}` },
    icon(SHAPES[tone]),
    h("span", null, words),
  );
}
