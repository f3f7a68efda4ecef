/** Add: choose markets, timeframes and a beginning; see what it takes; confirm. */

import { h } from "../../frame/element.js";
import { createResource } from "../../frame/resource.js";
import { icon } from "../../parts/icon.js";
import { plural } from "../../words/numbers.js";
import { costPanel } from "./cost.js";
import { ChosenSeries } from "./chosen.js";
import { createMarkets } from "./markets.js";
import { sinceStep, timeframeStep } from "./steps.js";

const THINKING_MS = 300;

export function open(app, place) {
  const chosen = new ChosenSeries();
  const state = { made: null, isMaking: false };
  let timer = 0;

  const cost = createResource(async (signal) => {
    const bodies = chosen.bodies();
    if (!bodies.length) return [];
    return Promise.all(bodies.map((body) => app.api.post("/streams/estimate", body, signal)));
  }, app.refresh);

  function changed() {
    state.made = null;
    clearTimeout(timer);
    timer = setTimeout(() => cost.reload(), THINKING_MS);
    app.refresh();
  }

  async function make() {
    state.isMaking = true;
    app.refresh();
    await app.act(async () => {
      const answers = await Promise.all(
        chosen.bodies().map((body) => app.api.post("/streams", body)),
      );
      state.made = {
        created: answers.flatMap((each) => each.created),
        existing: answers.flatMap((each) => each.existing),
        notes: answers.flatMap((each) => each.notes),
      };
      chosen.clear();
      cost.clear();
      app.fleet.reload();
    });
    state.isMaking = false;
    app.refresh();
  }

  const markets = createMarkets(app, chosen, changed, place.query.get("exchange_id") ?? "");
  return {
    title: () => "Add",
    arrive: () => {},
    close() {
      clearTimeout(timer);
      cost.close();
      markets.close();
    },
    render: () => render(app, { chosen, state, cost, markets, changed, make }),
  };
}

function render(app, { chosen, state, cost, markets, changed, make }) {
  return [
    h("div", { class: "page-head", key: "head" }, h("h1", null, "Add series")),
    state.made && done(state.made),
    h(
      "div",
      { class: "add-grid", key: "grid" },
      h(
        "div",
        { class: "add-steps" },
        markets.render(),
        timeframeStep(chosen, changed),
        sinceStep(chosen, changed),
      ),
      costPanel(app, { chosen, cost, make, isMaking: state.isMaking }),
    ),
  ];
}

function done({ created, existing, notes }) {
  const exchanges = [...new Set([...created, ...existing].map((job) => job.exchange_id))];
  return h(
    "div",
    { class: "panel", key: "done", role: "status" },
    icon("good"),
    h(
      "div",
      { class: "grow" },
      h(
        "p",
        { class: "strong" },
        `${plural(created.length, "job")} made`,
        existing.length > 0 && `, ${existing.length} existed`,
        ".",
      ),
      notes.map((each) => h("p", { key: each }, each)),
    ),
    exchanges.map((each) =>
      h(
        "a",
        { class: "button", key: each, href: `/jobs?exchange_id=${encodeURIComponent(each)}` },
        `Jobs of ${each}`,
      ),
    ),
  );
}
