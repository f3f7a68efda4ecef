/** One question at a time, in a dialog that the browser keeps the focus in. */

import { h } from "../frame/element.js";
import { button } from "./button.js";
import { icon } from "./icon.js";

export function createDialogs(changed) {
  let open = null;

  function close(answer) {
    const { resolve } = open;
    open = null;
    changed();
    resolve(answer);
  }

  return {
    /** Whether the visitor agrees. `body` may be text or elements. */
    ask({ title, body, action, danger = false, icon: name }) {
      return new Promise((resolve) => {
        open = { title, body, action, danger, name, resolve };
        changed();
      });
    },
    /** Something to read, with a button that closes it. */
    show({ title, body }) {
      return new Promise((resolve) => {
        open = { title, body, resolve };
        changed();
      });
    },
    get isOpen() {
      return open !== null;
    },
    render: () => open && dialog(open, close),
  };
}

function dialog({ title, body, action, danger, name }, close) {
  return h(
    "dialog",
    {
      key: "dialog",
      class: "dialog",
      "aria-labelledby": "dialog-title",
      // Closing gives the focus back to where it was.
      hook: { mount: (node) => node.showModal(), unmount: (node) => node.close() },
      on: {
        cancel: (event) => {
          event.preventDefault();
          close(false);
        },
        click: (event) => {
          if (event.target === event.currentTarget) close(false);
        },
      },
    },
    h(
      "div",
      { class: "dialog-inner" },
      h("h2", { id: "dialog-title" }, name && icon(name), title),
      h("div", { class: "dialog-body" }, typeof body === "string" ? h("p", null, body) : body),
      h(
        "div",
        { class: "dialog-actions" },
        action
          ? [
              button("Cancel", () => close(false)),
              button(action, () => close(true), { kind: danger ? "danger" : "main" }),
            ]
          : button("Close", () => close(false), { kind: "main" }),
      ),
    ),
  );
}
