/** What has just been done or refused, for a few seconds, and for screen readers. */

import { h } from "../frame/element.js";
import { iconButton } from "./button.js";
import { icon } from "./icon.js";
import { sentence } from "./shown.js";

const SHOWN_MS = 6_000;
const MOST = 4;

export function createNotices(changed) {
  let shown = [];
  let last = 0;

  function add(tone, words) {
    const notice = { key: ++last, tone, words };
    shown = [...shown, notice].slice(-MOST);
    changed();
    setTimeout(() => drop(notice), tone === "bad" ? 2 * SHOWN_MS : SHOWN_MS);
  }

  function drop(notice) {
    shown = shown.filter((each) => each !== notice);
    changed();
  }

  return {
    say: (words) => add("good", words),
    fail: (error) => add("bad", sentence(error.message ?? String(error))),
    render: () => [
      region(
        "status",
        "polite",
        shown.filter((each) => each.tone === "good"),
        drop,
      ),
      region(
        "alert",
        "assertive",
        shown.filter((each) => each.tone === "bad"),
        drop,
      ),
    ],
  };
}

function region(role, live, notices, drop) {
  return h(
    "div",
    { class: "notices", key: role, role, "aria-live": live },
    notices.map((notice) =>
      h(
        "div",
        { class: `notice ${notice.tone}`, key: notice.key },
        icon(notice.tone),
        h("p", { class: "grow" }, notice.words),
        iconButton("close", "Dismiss", () => drop(notice)),
      ),
    ),
  );
}
