/** The filters of the list, all of them in the address. */

import { h } from "../../frame/element.js";
import { withQuery } from "../../frame/router.js";
import { choices, search, select } from "../../parts/field.js";
import { STATES, STATE_ORDER, TYPE_NAMES, typeWords } from "../../words/jobs.js";
import { short } from "../../words/numbers.js";

export const FILTERS = ["state", "exchange_id", "type", "timeframe", "search"];
const TIMEFRAMES = ["1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "1d", "1w", "1M"];
const FROM_THE_START = { cursor: null, before: null };

/** The filters that are set, as the API takes them. */
export function filtersOf(query) {
  const found = {};
  for (const name of FILTERS) {
    const values = query.getAll(name).filter((each) => each !== "");
    if (values.length) found[name] = name === "search" ? values[0] : values;
  }
  return found;
}

/** One link a state, with how many jobs of the chosen exchange are in it. */
export function stateChoices(app, query) {
  const exchange = query.get("exchange_id");
  const counts = {};
  for (const each of app.fleet.census.data?.items ?? []) {
    if (exchange && each.exchange_id !== exchange) continue;
    for (const [state, count] of Object.entries(each.jobs)) {
      counts[state] = (counts[state] ?? 0) + count;
    }
  }
  const all = Object.values(counts).reduce((sum, each) => sum + each, 0);
  const link = (state) => withQuery({ ...FROM_THE_START, state }, query);
  const current = query.get("state") ?? "";
  const options = STATE_ORDER.map((state) => ({
    words: STATES[state].words,
    value: state,
    href: link(state),
    count: short(counts[state] ?? 0),
  }));
  const every = { words: "All", value: "", href: link(null), count: short(all) };
  return choices("State", [every, ...options], current);
}

export function filterBar(app, query, view, actions) {
  const set = (name) => (value) => app.router.set({ ...FROM_THE_START, [name]: value });
  const exchanges = (app.fleet.connectors.data?.items ?? []).map((each) => each.exchange_id);
  const chosen = query.get("exchange_id") ?? "";
  if (chosen && !exchanges.includes(chosen)) exchanges.push(chosen);
  return h(
    "form",
    { class: "filter-bar", role: "search", on: { submit: (event) => event.preventDefault() } },
    search("Search for a symbol", "search", view.search, actions.search),
    select(
      "Exchange",
      "exchange_id",
      [["", "Every exchange"], ...exchanges.map((each) => [each, each])],
      chosen,
      set("exchange_id"),
      { hidden: true },
    ),
    select(
      "Type",
      "type",
      [["", "Every type"], ...TYPE_NAMES.map((each) => [each, typeWords(each)])],
      query.get("type") ?? "",
      set("type"),
      { hidden: true },
    ),
    select(
      "Timeframe",
      "timeframe",
      [["", "Every timeframe"], ...TIMEFRAMES.map((each) => [each, each])],
      query.get("timeframe") ?? "",
      set("timeframe"),
      { hidden: true },
    ),
    select(
      "Order",
      "order",
      [
        ["", "Newest first"],
        ["oldest", "Oldest first"],
      ],
      query.get("order") ?? "",
      set("order"),
      { hidden: true },
    ),
  );
}
