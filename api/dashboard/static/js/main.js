/** Puts the page together and keeps it up to date. */

import { createFleet } from "./fleet.js";
import { patch } from "./frame/patch.js";
import { createRouter } from "./frame/router.js";
import { createShortcuts } from "./frame/shortcuts.js";
import { createTheme } from "./frame/theme.js";
import { createApi, Unreachable } from "./link/api.js";
import { startBeating } from "./link/clock.js";
import { Feed } from "./link/feed.js";
import { createSession } from "./link/session.js";
import { createDialogs } from "./parts/dialog.js";
import { createNotices } from "./parts/notices.js";
import { shell } from "./parts/shell.js";
import { NAVIGATION } from "./navigation.js";
import { ROUTES } from "./routes.js";
import { shortcutTable } from "./shortcut_table.js";

const LIVE_PATIENCE_MS = 200;
const AGAIN_MS = 2_000;

function start(root) {
  const app = { place: null, view: null, starting: null, isNewer: false };
  let drawing = 0;
  app.refresh = () => {
    drawing ||= requestAnimationFrame(() => {
      drawing = 0;
      patch(root, shell(app));
      document.title = `${app.view?.title() ?? "Collector"} · Collector`;
    });
  };

  app.session = createSession();
  app.api = createApi(app.session, () => signIn(app));
  app.theme = createTheme(app.refresh);
  app.dialogs = createDialogs(app.refresh);
  app.notices = createNotices(app.refresh);
  app.fleet = createFleet(app.api, app.refresh);
  app.feed = new Feed(app.session, {
    onEvent: (name, data) => {
      app.fleet.take(name, data);
      app.view?.take?.(name, data);
    },
    onState: (feed, before) => onFeedState(app, feed, before),
  });
  app.router = createRouter(ROUTES, (place, how) => arrive(app, place, how));
  app.shortcuts = createShortcuts(shortcutTable(app, NAVIGATION));

  /** Does something, says so, and says why when it was refused. Answers whether it worked. */
  app.act = async (doing, done) => {
    try {
      const answer = await doing();
      if (done) app.notices.say(typeof done === "function" ? done(answer) : done);
      return true;
    } catch (error) {
      app.notices.fail(error);
      return false;
    }
  };
  app.begin = () => begin(app);
  app.leave = () => {
    app.session.forget();
    signIn(app);
  };

  startBeating();
  app.router.start();
}

/** Finds out who is here, then listens and reads. */
async function begin(app) {
  app.starting = null;
  try {
    app.session.me = await app.api.get("/me");
  } catch (error) {
    if (error instanceof Unreachable || error.status >= 500) {
      app.starting = error;
      setTimeout(() => begin(app), AGAIN_MS);
    }
    app.refresh();
    return;
  }
  const live = new Promise((resolve) => (app.onLive = resolve));
  app.feed.start();
  await Promise.race([live, new Promise((resolve) => setTimeout(resolve, LIVE_PATIENCE_MS))]);
  app.fleet.start();
  show(app, app.place);
}

function onFeedState(app, feed, before) {
  if (feed.state === "live" && before !== "live") {
    if (app.onLive) {
      app.onLive();
      app.onLive = null;
    } else {
      // What happened meanwhile is not known: everything is read again.
      app.fleet.reload();
      app.view?.fresh?.();
      lookForNewerVersion(app);
    }
  }
  if (feed.state === "refused") signIn(app);
  if (feed.state === "cut") setTimeout(app.refresh, 1_600);
  app.refresh();
}

/** The files of this page are gone when another version was started meanwhile. */
async function lookForNewerVersion(app) {
  const answer = await fetch(import.meta.url, { method: "HEAD", cache: "no-store" }).catch(
    () => null,
  );
  if (answer?.status === 404) {
    app.isNewer = true;
    app.refresh();
  }
}

function signIn(app) {
  app.feed.stop();
  app.fleet.stop();
  app.session.me = null;
  if (app.place?.route.name === "login") return;
  const next = location.pathname + location.search;
  app.router.go(next === "/" ? "/login" : `/login?next=${encodeURIComponent(next)}`, {
    replace: true,
  });
}

function arrive(app, place, how) {
  const isSameView = app.view !== null && app.place?.route === place.route && app.view.arrive;
  app.place = place;
  if (!place.route.alone && app.session.me === null) {
    closeView(app);
    begin(app);
  } else if (isSameView && samePath(app.view.path, place)) {
    app.view.arrive(place);
  } else {
    show(app, place);
    if (how.moved) settle(how);
  }
  app.refresh();
}

function samePath(path, place) {
  return JSON.stringify(path) === JSON.stringify(place.params);
}

function show(app, place) {
  closeView(app);
  app.fleet.watched = place.route.name === "overview";
  app.view = place.route.open(app, place);
  app.view.path = place.params;
  app.refresh();
}

function closeView(app) {
  app.view?.close?.();
  app.view = null;
}

/** A new view begins at its top, and screen readers begin with its heading. */
function settle({ back }) {
  requestAnimationFrame(() => {
    document.getElementById("main")?.focus({ preventScroll: true });
    if (!back) scrollTo(0, 0);
  });
}

start(document.getElementById("app"));
