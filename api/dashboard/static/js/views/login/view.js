/** Login: asks for a key, and tries it before it is kept. */

import { h } from "../../frame/element.js";
import { icon } from "../../parts/icon.js";
import { sentence } from "../../parts/shown.js";

export function open(app, place) {
  let error = null;
  let trying = false;

  async function signIn(event) {
    event.preventDefault();
    const field = event.target.elements.key;
    const given = field.value.trim();
    if (!given || trying) return;
    trying = true;
    error = null;
    app.refresh();
    app.session.keep(given);
    try {
      app.session.me = await app.api.get("/me");
      app.router.go(nextOf(place.query), { replace: true });
      app.begin();
    } catch (problem) {
      app.session.forget();
      error = problem.code === "wrong_key" ? "There is no such key." : sentence(problem.message);
      field.select();
    }
    trying = false;
    app.refresh();
  }

  return {
    title: () => "Sign in",
    render: () => form(app, { error, trying, signIn }),
  };
}

/** Where the visitor wanted to go: a path of this page and nothing else. */
function nextOf(query) {
  const next = query.get("next") ?? "/";
  return /^\/(?!\/)/.test(next) ? next : "/";
}

function form(app, { error, trying, signIn }) {
  return h(
    "form",
    { class: "login", on: { submit: signIn }, key: "login" },
    h("h1", null, "Collector"),
    h("p", null, "This Collector asks for an API key."),
    h("label", { for: "key", class: "label" }, "Key"),
    h("input", {
      id: "key",
      name: "key",
      type: "password",
      autocomplete: "current-password",
      required: true,
      autofocus: true,
      "aria-describedby": "key-hint",
      "aria-invalid": error ? "true" : null,
      hook: { mount: (node) => node.focus() },
    }),
    h("p", { class: "field-error", role: "alert" }, error && [icon("bad"), error]),
    h(
      "button",
      { type: "submit", class: "button main", disabled: trying },
      h("span", null, trying ? "Looking" : "Sign in"),
    ),
    h(
      "p",
      { class: "hint", id: "key-hint" },
      "It is kept in this tab only, until you close it. A new key: ",
      h("code", null, "collector key new --role operator"),
    ),
  );
}
