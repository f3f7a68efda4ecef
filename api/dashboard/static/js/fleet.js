/**
 * What every view knows of the fleet: connectors, jobs by state, workers and troubles.
 *
 * Events bring most of it. Budgets, counts and signs of life change without one, so they are asked
 * for again while somebody looks.
 */

import { createResource } from "./frame/resource.js";

const OFTEN_MS = 2_000;
const SELDOM_MS = 15_000;
export const SAMPLES = 60;

export function createFleet(api, changed) {
  const fleet = {
    connectors: createResource(
      (signal) => api.get("/connectors", { limit: 1000 }, signal),
      changed,
    ),
    census: createResource((signal) => api.get("/census", {}, signal), changed),
    workers: createResource((signal) => api.get("/workers", {}, signal), changed),
    troubles: createResource((signal) => api.get("/troubles", {}, signal), changed),
    trails: new Map(),
    watched: false,
  };
  let timer = 0;
  let lookedAt = 0;

  fleet.reload = async () => {
    lookedAt = Date.now();
    const all = [fleet.connectors, fleet.census, fleet.workers, fleet.troubles];
    await Promise.all(all.map((each) => each.reload()));
    sample(fleet);
  };

  async function look() {
    const every = fleet.watched ? OFTEN_MS : SELDOM_MS;
    if (document.hidden || Date.now() - lookedAt < every - 200) return;
    lookedAt = Date.now();
    const figures = [fleet.connectors, fleet.census, fleet.workers];
    await Promise.all(figures.filter((each) => !each.loading).map((each) => each.reload()));
    sample(fleet);
  }

  fleet.start = () => {
    clearInterval(timer);
    timer = setInterval(look, OFTEN_MS);
    return fleet.reload();
  };
  fleet.stop = () => clearInterval(timer);

  fleet.take = (name, data) => {
    if (name === "trouble") fleet.troubles.put(data);
    else if (name === "connector" && fleet.connectors.data) takeConnector(fleet, data);
  };
  return fleet;
}

function takeConnector(fleet, connector) {
  const others = fleet.connectors.data.items.filter(
    (each) => each.exchange_id !== connector.exchange_id,
  );
  const items = connector.status === "deleted" ? others : [...others, connector];
  items.sort((one, other) => (one.exchange_id < other.exchange_id ? -1 : 1));
  fleet.connectors.put({ ...fleet.connectors.data, items });
}

/** One more sample of each budget, for its sparkline and the rate of requests. */
function sample(fleet) {
  const at = Date.now();
  for (const each of fleet.connectors.data?.items ?? []) {
    const trail = fleet.trails.get(each.exchange_id) ?? [];
    const [tightest] = each.budgets;
    trail.push({ at, share: tightest.used / tightest.limit, granted: each.granted_total });
    fleet.trails.set(each.exchange_id, trail.slice(-SAMPLES));
  }
}

/** Requests a second over the last samples. */
export function requestRate(trail = []) {
  const some = trail.slice(-8);
  if (some.length < 2) return null;
  const [first, last] = [some[0], some.at(-1)];
  const seconds = (last.at - first.at) / 1000;
  return seconds > 0 ? Math.max(0, last.granted - first.granted) / seconds : null;
}

/** The sums over all exchanges, by state. */
export function jobTotals(census) {
  const totals = {};
  for (const each of census?.items ?? []) {
    for (const [state, count] of Object.entries(each.jobs)) {
      totals[state] = (totals[state] ?? 0) + count;
    }
  }
  return totals;
}
