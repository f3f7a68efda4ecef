/** Overview: what is wrong first, then every exchange, then who is working. */

import { jobTotals, requestRate } from "../../fleet.js";
import { h } from "../../frame/element.js";
import { shown } from "../../parts/shown.js";
import { count, plural, rate } from "../../words/numbers.js";
import { exchangeCard } from "./exchange_card.js";
import { firstSteps } from "./first_steps.js";
import { headline, troubleList } from "./troubles.js";
import { workerTable } from "./workers.js";

export function open(app) {
  return {
    title: () => "Overview",
    render: () => overview(app),
  };
}

function overview(app) {
  const { fleet } = app;
  return [
    h("h1", { key: "h1", class: "unseen" }, "Overview"),
    h("div", { key: "troubles" }, [
      headline(fleet),
      shown(fleet.troubles, { lines: 2, content: (data) => troubleList(app, data.items) }),
    ]),
    h(
      "section",
      { key: "exchanges", "aria-labelledby": "exchanges" },
      h("div", { class: "section-head" }, [
        h("h2", { id: "exchanges" }, "Exchanges"),
        h("p", { class: "facts" }, facts(fleet)),
      ]),
      shown(fleet.connectors, {
        lines: 6,
        empty: (data) => (data.items.length ? null : firstSteps(app)),
        content: (data) => cards(app, data.items),
      }),
    ),
    h(
      "section",
      { key: "workers", "aria-labelledby": "workers" },
      h("h2", { id: "workers" }, "Workers"),
      shown(fleet.workers, { lines: 2, content: (data) => workerTable(data.items) }),
    ),
  ];
}

function cards(app, connectors) {
  const census = new Map(
    (app.fleet.census.data?.items ?? []).map((each) => [each.exchange_id, each]),
  );
  return h(
    "ul",
    { class: "cards", key: "cards" },
    connectors.map((each) =>
      h(
        "li",
        { key: each.exchange_id },
        exchangeCard(
          app,
          each,
          census.get(each.exchange_id),
          app.fleet.trails.get(each.exchange_id),
        ),
      ),
    ),
  );
}

/** The whole fleet in one line. */
function facts(fleet) {
  const totals = jobTotals(fleet.census.data);
  const jobs = Object.values(totals).reduce((sum, each) => sum + each, 0);
  const rates = [...fleet.trails.values()].map(requestRate).filter((each) => each !== null);
  const words = [];
  if (fleet.census.data) {
    words.push(plural(jobs, "job"), `${count(totals.running ?? 0)} running`);
  }
  if (rates.length) {
    words.push(`${rate(rates.reduce((sum, each) => sum + each, 0))} requests a second`);
  }
  return words.map((each) => h("span", null, each));
}
