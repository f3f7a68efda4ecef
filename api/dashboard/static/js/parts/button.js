/** Buttons. Every one has a name, also when it shows an icon alone. */

import { h } from "../frame/element.js";
import { icon } from "./icon.js";

/** @param {{kind?: "plain"|"main"|"danger"|"quiet", icon?: string, small?: boolean}} look */
export function button(words, press, look = {}) {
  const { kind = "plain", icon: name, small, disabled, ...more } = look;
  return h(
    "button",
    {
      type: "button",
      class: `button ${kind} ${small ? "small" : ""}`,
      disabled: disabled === true,
      on: { click: press },
      ...more,
    },
    name && icon(name),
    h("span", null, words),
  );
}

/** Shows the icon only; the words are its name. */
export function iconButton(name, words, press, more = {}) {
  const { kind = "quiet", disabled, ...rest } = more;
  return h(
    "button",
    {
      type: "button",
      class: `button icon-only ${kind}`,
      "aria-label": words,
      title: words,
      disabled: disabled === true,
      on: { click: press },
      ...rest,
    },
    icon(name),
  );
}

/** A link that looks like a button. */
export function linkButton(words, href, look = {}) {
  const { kind = "plain", icon: name, small, ...more } = look;
  return h(
    "a",
    { href, class: `button ${kind} ${small ? "small" : ""}`, ...more },
    name && icon(name),
    h("span", null, words),
  );
}

/** A command for the terminal, with a button that copies it. */
export function command(words, copied) {
  const copy = async () => {
    await navigator.clipboard?.writeText(words);
    copied();
  };
  return h(
    "span",
    { class: "command" },
    h("code", null, words),
    iconButton("copy", `Copy: ${words}`, copy),
  );
}
