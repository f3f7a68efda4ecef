/** Form fields with their labels. */

import { h } from "../frame/element.js";
import { icon } from "./icon.js";

let made = 0;
const ids = new Map();

/** The same id for the same name, so that labels and fields belong together in every render. */
function idOf(name) {
  if (!ids.has(name)) ids.set(name, `field-${++made}`);
  return ids.get(name);
}

function labelled(label, name, control, { hint, hidden = false, error } = {}) {
  const id = idOf(name);
  return h(
    "div",
    { class: "field", key: `field-${name}` },
    h("label", { for: id, class: hidden ? "unseen" : "label" }, label),
    control(id),
    hint && h("p", { class: "hint", id: `${id}-hint` }, hint),
    error && h("p", { class: "field-error", role: "alert" }, error),
  );
}

export function select(label, name, options, value, change, more = {}) {
  const { hidden, hint, ...rest } = more;
  const control = (id) =>
    h(
      "select",
      { id, name, value, on: { change: (event) => change(event.target.value) }, ...rest },
      options.map(([each, words]) =>
        h("option", { value: each, key: each, selected: each === value }, words),
      ),
    );
  return labelled(label, name, control, { hidden, hint });
}

export function input(label, name, value, change, more = {}) {
  const { hidden, hint, error, on = {}, ...rest } = more;
  const control = (id) =>
    h("input", {
      id,
      name,
      value,
      autocomplete: "off",
      spellcheck: "false",
      "aria-describedby": hint ? `${id}-hint` : null,
      ...rest,
      on: { input: (event) => change(event.target.value), ...on },
    });
  return labelled(label, name, control, { hidden, hint, error });
}

/** A search box; `/` brings the cursor here. */
export function search(label, name, value, change, more = {}) {
  const id = idOf(name);
  return h(
    "div",
    { class: "field search", key: `field-${name}` },
    h("label", { for: id, class: "unseen" }, label),
    icon("search"),
    h("input", {
      id,
      name,
      type: "search",
      value,
      placeholder: more.placeholder ?? label,
      autocomplete: "off",
      spellcheck: "false",
      "data-search": true,
      on: { input: (event) => change(event.target.value), ...more.on },
    }),
  );
}

export function checkbox(label, checked, change, more = {}) {
  const { hidden, ...rest } = more;
  return h(
    "label",
    { class: "check", key: more.key },
    h("input", {
      type: "checkbox",
      checked,
      ...rest,
      key: undefined,
      on: { change: (event) => change(event.target.checked) },
    }),
    h("span", { class: hidden ? "unseen" : null }, label),
  );
}

/** A row of links of which one is where we are. */
export function choices(label, options, current) {
  return h(
    "nav",
    { class: "choices", "aria-label": label },
    options.map(({ words, href, value, count }) =>
      h(
        "a",
        { href, key: value, "aria-current": value === current ? "true" : null },
        words,
        count !== undefined && h("span", { class: "count" }, count),
      ),
    ),
  );
}
