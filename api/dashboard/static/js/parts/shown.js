/** The four states of everything that is loaded: a skeleton, an error, nothing, or the content. */

import { h } from "../frame/element.js";
import { now } from "../link/clock.js";
import { clock, utc } from "../words/time.js";
import { button } from "./button.js";
import { icon } from "./icon.js";

/**
 * @param resource see frame/resource.js
 * @param {{content: (data) => any, empty?: (data) => any, lines?: number}} states `empty` answers
 *   null when there is something to show
 */
export function shown(resource, { content, empty = () => null, lines = 4 }) {
  if (resource.data === null) {
    return resource.error ? failed(resource) : skeleton(lines);
  }
  const instead = empty(resource.data);
  return [resource.error && stale(resource), instead ?? content(resource.data)];
}

export function skeleton(lines = 4) {
  return h(
    "div",
    { class: "skeleton", key: "skeleton", role: "status" },
    h("span", { class: "unseen" }, "Loading"),
    Array.from({ length: lines }, (_, at) => h("div", { class: `bone bone-${at % 4}` })),
  );
}

export function nothing(title, words, ...more) {
  return h(
    "div",
    { class: "nothing", key: "nothing" },
    h("p", { class: "nothing-title" }, title),
    words && h("p", null, words),
    more.length > 0 && h("div", { class: "row" }, more),
  );
}

function failed(resource) {
  return h(
    "div",
    { class: "panel bad", role: "alert", key: "failed" },
    icon("bad"),
    h(
      "div",
      { class: "grow" },
      h("p", { class: "strong" }, "This could not be loaded"),
      h("p", null, sentence(resource.error.message)),
    ),
    button("Try again", () => resource.reload(), { icon: "again", disabled: resource.loading }),
  );
}

function stale(resource) {
  return h(
    "div",
    { class: "panel warn", role: "status", key: "stale" },
    icon("warn"),
    h(
      "p",
      { class: "grow" },
      "As of ",
      h("time", { title: utc(resource.at) }, clock(resource.at)),
      `; it could not be loaded again: ${resource.error.message}.`,
    ),
    button("Try again", () => resource.reload(), { small: true, icon: "again" }),
  );
}

/** Begins with a capital and ends with a full stop. */
export function sentence(words) {
  const text = words.trim();
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

export const isOld = (resource, ms) => resource.at > 0 && now() - resource.at > ms;
