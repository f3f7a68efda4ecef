/** What is around every view: navigation, banners, notices and dialogs. */

import { h } from "../frame/element.js";
import { ICONS, WORDS } from "../frame/theme.js";
import { NAVIGATION } from "../navigation.js";
import { showShortcuts } from "../shortcut_table.js";
import { banners, heard } from "./banners.js";
import { iconButton } from "./button.js";
import { icon } from "./icon.js";
import { skeleton } from "./shown.js";

export function shell(app) {
  const alone = app.place?.route.alone;
  return [
    h("div", { class: alone ? "frame alone" : "frame", key: "frame" }, [
      !alone && side(app),
      h(
        "div",
        { class: "page", key: "page" },
        h(
          "section",
          { class: "banners", key: "banners", "aria-label": "Connection" },
          !alone && banners(app),
        ),
        h("p", { class: "unseen", key: "heard", role: "status" }, !alone && heard(app)),
        h(
          "main",
          { id: "main", tabindex: "-1", key: "main" },
          app.view ? app.view.render() : starting(app),
        ),
      ),
    ]),
    h("div", { class: "notice-corner", key: "notices" }, app.notices.render()),
    app.dialogs.render(),
  ];
}

function starting(app) {
  if (!app.starting) return skeleton(6);
  return h(
    "div",
    { class: "panel bad", role: "alert" },
    icon("bad"),
    h(
      "div",
      { class: "grow" },
      h("p", { class: "strong" }, "Collector does not answer"),
      h("p", null, "The page tries again by itself every two seconds."),
    ),
  );
}

function side(app) {
  return h(
    "header",
    { class: "side", key: "side" },
    h(
      "a",
      { href: "/", class: "brand", "aria-label": "Collector, overview" },
      mark(),
      h("span", null, "Collector"),
    ),
    navigation(app),
    h(
      "div",
      { class: "side-foot" },
      connection(app),
      who(app),
      h(
        "div",
        { class: "side-tools" },
        iconButton(ICONS[app.theme.chosen], WORDS[app.theme.chosen], () => app.theme.next()),
        h(
          "button",
          {
            type: "button",
            class: "button icon-only quiet",
            "aria-label": "Keyboard shortcuts",
            title: "Keyboard shortcuts",
            on: { click: () => showShortcuts(app) },
          },
          h("span", { class: "question", "aria-hidden": "true" }, "?"),
        ),
        app.session.hasKey() && iconButton("leave", "Sign out", () => app.leave()),
      ),
    ),
  );
}

function navigation(app) {
  const here = app.place?.route.under ?? app.place?.route.name;
  const troubles = app.fleet.troubles.data?.items.length ?? 0;
  return h(
    "nav",
    { class: "views", "aria-label": "Views" },
    h(
      "ul",
      null,
      NAVIGATION.filter((each) => !each.role || app.session.may(each.role)).map((each) =>
        h(
          "li",
          { key: each.name },
          h(
            "a",
            { href: each.href, "aria-current": each.name === here ? "page" : null },
            icon(each.icon),
            h("span", null, each.words),
            each.name === "overview" &&
              troubles > 0 &&
              h("span", { class: "badge" }, troubles, h("span", { class: "unseen" }, " troubles")),
          ),
        ),
      ),
    ),
  );
}

const CONNECTION = {
  live: ["live", "Live"],
  connecting: ["quiet", "Connecting"],
  cut: ["cut", "Not connected"],
  resting: ["quiet", "Resting"],
  refused: ["cut", "Refused"],
};

function connection(app) {
  const [tone, words] = CONNECTION[app.feed.state];
  return h(
    "p",
    { class: `connection ${tone}` },
    h("span", { class: "dot", "aria-hidden": "true" }),
    h("span", null, words),
  );
}

function who(app) {
  const { me } = app.session;
  if (!me?.key) return null;
  return h("p", { class: "who" }, icon("key"), h("span", null, `${me.key}, ${me.role}`));
}

function mark() {
  return h(
    "svg",
    { class: "mark", viewBox: "0 0 24 24", width: 24, height: 24, "aria-hidden": "true" },
    h("rect", { x: 2, y: 2, width: 20, height: 20, rx: 6, class: "mark-ground" }),
    h("path", { d: "M8 7v10M12 5.5v13M16 9v6.5", class: "mark-wicks" }),
    h("path", { d: "M8 9.5v4M12 8v6.5M16 11v2.5", class: "mark-bodies" }),
  );
}
