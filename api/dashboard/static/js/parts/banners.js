/** What concerns every view: the stream was cut, or another version is running. */

import { h } from "../frame/element.js";
import { clock, utc } from "../words/time.js";
import { button } from "./button.js";
import { icon } from "./icon.js";
import { left } from "./moment.js";

const BEFORE_SAYING_MS = 1_500;

export function banners(app) {
  return [cut(app), newer(app)];
}

/** The same for screen readers, without the countdown. */
export function heard(app) {
  if (isCut(app)) return "Collector does not answer. The page tries again by itself.";
  return app.wasCut && app.feed.state === "live" ? "Connected again." : "";
}

/** A moment without the stream is no news. */
function isCut({ feed }) {
  return feed.state === "cut" && Date.now() - feed.since >= BEFORE_SAYING_MS;
}

function cut(app) {
  const { since, retryAt } = app.feed;
  if (!isCut(app)) return null;
  app.wasCut = true;
  return h(
    "div",
    { class: "banner bad", key: "cut", "data-banner": "cut" },
    icon("bad"),
    h(
      "p",
      { class: "grow" },
      h("strong", null, "Collector does not answer since "),
      h("time", { title: utc(since) }, h("strong", null, clock(since))),
      h("strong", null, "."),
      " What you see is from before. Next attempt: ",
      left(retryAt, "now", { key: retryAt }),
      ".",
    ),
    button("Try now", () => app.feed.retry(), { small: true }),
  );
}

function newer(app) {
  if (!app.isNewer) return null;
  return h(
    "div",
    { class: "banner info", key: "newer" },
    icon("info"),
    h("p", { class: "grow" }, "Another version of Collector is running now."),
    button("Load it", () => location.reload(), { small: true }),
  );
}
