/** One exchange at a glance: may it work, how much of its budget is used, and how far it is behind. */

import { requestRate } from "../../fleet.js";
import { h } from "../../frame/element.js";
import { now } from "../../link/clock.js";
import { button } from "../../parts/button.js";
import { gauge, sparkline } from "../../parts/gauge.js";
import { icon } from "../../parts/icon.js";
import { left } from "../../parts/moment.js";
import { pill } from "../../parts/pill.js";
import { sentence } from "../../parts/shown.js";
import { STATES, STATE_ORDER } from "../../words/jobs.js";
import { count, percent, rate, short } from "../../words/numbers.js";
import { duration } from "../../words/time.js";
import { liftBlock, pauseExchange, resumeExchange } from "./remedies.js";

export function exchangeCard(app, connector, census, trail) {
  const name = connector.exchange_id;
  return h(
    "article",
    { class: "card", "aria-labelledby": `card-${name}` },
    h(
      "header",
      { class: "card-head" },
      h("h3", { id: `card-${name}` }, name),
      status(connector),
      app.session.may("operator") && pauseButton(app, connector),
    ),
    stopped(app, connector),
    budget(connector, trail),
    h(
      "dl",
      { class: "figures" },
      figure("Behind", lag(census)),
      figure("Errors", errors(connector)),
      figure("Denied tokens", short(connector.denied_total)),
    ),
    jobStates(name, census),
  );
}

function figure(words, value) {
  return h("div", { key: words }, h("dt", null, words), h("dd", null, value));
}

function status(connector) {
  if (connector.blocked) return pill("bad", "Blocked");
  if (connector.status === "paused") return pill("warn", "Paused");
  if (connector.circuit.state === "TRIPPED") return pill("bad", "Circuit tripped");
  if (connector.circuit.state === "HALF_OPEN") return pill("warn", "Circuit probing");
  return pill("good", "Working");
}

function pauseButton(app, connector) {
  const name = connector.exchange_id;
  return connector.status === "paused"
    ? button("Resume", () => resumeExchange(app, name), { small: true, icon: "run", key: "pause" })
    : button("Pause", () => pauseExchange(app, name), { small: true, icon: "pause", key: "pause" });
}

/** Why nothing is sent, and until when. */
function stopped(app, connector) {
  const { circuit } = connector;
  if (connector.blocked) {
    return h(
      "div",
      { class: "stop bad", key: "stop" },
      icon("bad"),
      h(
        "p",
        { class: "grow" },
        sentence(connector.blocked_reason ?? "it demanded a stop"),
        " Over in ",
        left(connector.blocked_until, "a moment"),
        ".",
      ),
      app.session.may("operator") &&
        button("Lift", () => liftBlock(app, connector.exchange_id), { small: true }),
    );
  }
  if (circuit.state === "TRIPPED") {
    return h(
      "div",
      { class: "stop bad", key: "stop" },
      icon("bad"),
      h(
        "p",
        { class: "grow" },
        `${percent(circuit.err_rate)} of the requests failed. Next try in `,
        left(circuit.tripped_until, "a moment"),
        ".",
      ),
    );
  }
  if (connector.paused_until) {
    return h(
      "div",
      { class: "stop warn", key: "stop" },
      icon("warn"),
      h("p", { class: "grow" }, "Paused for ", left(connector.paused_until, "a moment"), "."),
    );
  }
  return null;
}

/** The window that is fullest, which is the one that limits. */
function budget(connector, trail = []) {
  const [tightest] = connector.budgets;
  const perSecond = requestRate(trail);
  const isUsed = tightest.resets_at !== null && tightest.resets_at > now();
  return h(
    "div",
    { class: "budget" },
    h(
      "div",
      { class: "budget-words" },
      h(
        "p",
        null,
        h("span", { class: "big" }, count(tightest.used)),
        ` of ${count(tightest.limit)}`,
      ),
      h(
        "p",
        { class: "facts" },
        h("span", null, `${tightest.unit} in ${duration(tightest.period_ms)}`),
        isUsed
          ? h("span", null, "free again in ", left(tightest.resets_at))
          : h("span", null, "all of it is free"),
      ),
    ),
    h(
      "div",
      { class: "budget-trail" },
      sparkline(
        trail.map((each) => each.share),
        1,
      ),
      h("p", { class: "facts" }, perSecond === null ? "–" : `${rate(perSecond)} requests/s`),
    ),
    gauge(tightest.used, tightest.limit),
  );
}

function lag(census) {
  const behind = census?.lag ?? [];
  if (!behind.length) return "–";
  const worst = behind.reduce((one, other) => (other.bars > one.bars ? other : one));
  const tone = worst.bars <= 1 ? "good" : worst.bars <= 5 ? "warn" : "bad";
  const words = worst.bars === 1 ? "1 bar" : `${count(worst.bars)} bars`;
  const silent = behind.reduce((total, each) => total + each.unconfirmed, 0);
  return [
    h("span", { class: `tone ${tone}` }, words, h("small", null, ` ${worst.timeframe}`)),
    silent > 0 && h("small", null, ` ${count(silent)} unconfirmed`),
  ];
}

function errors({ circuit }) {
  const tone = circuit.err_rate === 0 ? "good" : circuit.err_rate < 0.1 ? "warn" : "bad";
  return h(
    "span",
    { class: `tone ${tone}` },
    percent(circuit.err_rate),
    h("small", null, ` of ${short(circuit.window_len)}`),
  );
}

/** Jobs by state: a bar for the shares, links for the numbers. */
function jobStates(name, census) {
  const jobs = census?.jobs ?? {};
  const found = STATE_ORDER.filter((state) => jobs[state] > 0);
  if (!found.length) return h("p", { class: "facts", key: "jobs" }, "No jobs yet.");
  return h(
    "div",
    { key: "jobs" },
    h(
      "div",
      { class: "share-bar", "aria-hidden": "true" },
      found.map((state) =>
        h("span", { key: state, class: `share ${state}`, style: { "--share": jobs[state] } }),
      ),
    ),
    h(
      "ul",
      { class: "states", "aria-label": `Jobs of ${name}` },
      found.map((state) =>
        h(
          "li",
          { key: state },
          h(
            "a",
            { href: `/jobs?exchange_id=${encodeURIComponent(name)}&state=${state}` },
            h("span", { class: `swatch ${state}`, "aria-hidden": "true" }),
            h("span", { class: "states-count" }, short(jobs[state])),
            ` ${STATES[state].words.toLowerCase()}`,
          ),
        ),
      ),
    ),
  );
}
