/** From page to page. Each has its own address. */

import { h } from "../../frame/element.js";
import { withQuery } from "../../frame/router.js";
import { icon } from "../../parts/icon.js";

export function pager(app, page, query) {
  const first = page.items[0]?.id;
  const last = page.items.at(-1)?.id;
  const link = (words, fields, name, rel) =>
    h("a", { class: "button small", href: withQuery(fields, query), rel, key: rel }, [
      rel === "prev" && icon(name),
      h("span", null, words),
      rel === "next" && icon(name),
    ]);
  return h(
    "nav",
    { class: "pager", "aria-label": "Pages", key: "pager" },
    page.hasBefore && link("Before", { before: first, cursor: null }, "left", "prev"),
    page.hasNext && link("Next", { cursor: last, before: null }, "right", "next"),
  );
}
