/** Prices: the last price of every symbol and how old it is, and the state of each stream. */

import { h } from "../../frame/element.js";
import { createResource } from "../../frame/resource.js";
import { linkButton } from "../../parts/button.js";
import { nothing, shown } from "../../parts/shown.js";
import { backoffs } from "./backoffs.js";
import { budgetCards } from "./budget.js";
import { priceTable, tickerTable } from "./price_table.js";
import { streamCards } from "./streams.js";

const MOST = 1_000;
const TRAIL = 40;

export function open(app) {
  const trails = new Map();
  const live = createResource(async (signal) => {
    const items = (await app.api.get("/live", { limit: MOST }, signal)).items;
    return { byKey: new Map(items.map((each) => [keyOf(each), each])) };
  }, app.refresh);
  const tickers = createResource(
    (signal) => app.api.get("/tickers", { limit: 200 }, signal),
    app.refresh,
  );

  function take(name, data) {
    if (!["price", "heartbeat", "market_status"].includes(name) || live.data === null) return;
    live.data.byKey.set(keyOf(data), data);
    if (name === "price") note(trails, data);
    live.put(live.data);
  }

  const reload = () => {
    live.reload();
    tickers.reload();
  };
  reload();
  return {
    title: () => "Prices",
    take,
    fresh: reload,
    close() {
      live.close();
      tickers.close();
    },
    render: () => render(app, live, tickers, trails),
  };
}

const keyOf = (each) => `${each.kind}|${each.exchange_id}|${each.symbol ?? ""}`;

function note(trails, { exchange_id: exchange, symbol, payload }) {
  const key = `${exchange}|${symbol}`;
  const trail = trails.get(key) ?? [];
  trail.push(payload.mid);
  trails.set(key, trail.slice(-TRAIL));
}

function render(app, live, tickers, trails) {
  return [
    h("div", { class: "page-head", key: "head" }, h("h1", null, "Prices")),
    h(
      "div",
      { key: "live", class: "stack" },
      shown(live, {
        lines: 8,
        empty: ({ byKey }) => (byKey.size ? null : none(app)),
        content: ({ byKey }) => liveParts(app, [...byKey.values()], trails),
      }),
    ),
    tickers.data?.items.length > 0 &&
      h(
        "section",
        { key: "tickers", "aria-labelledby": "tickers" },
        h("h2", { id: "tickers" }, "Tickers"),
        tickerTable(tickers.data.items),
      ),
  ];
}

function liveParts(app, states, trails) {
  const of = (kind) => states.filter((each) => each.kind === kind);
  const connectors = app.fleet.connectors.data?.items ?? [];
  return [
    h(
      "section",
      { key: "streams", "aria-labelledby": "streams" },
      h("h2", { id: "streams" }, "Streams"),
      streamCards(of("heartbeat"), of("market_status"), connectors),
    ),
    budgetCards(connectors),
    backoffs(of("heartbeat")),
    h(
      "section",
      { key: "prices", "aria-labelledby": "last-prices" },
      h("h2", { id: "last-prices" }, "Last prices"),
      of("price").length
        ? priceTable(of("price"), trails)
        : nothing("No price has come yet", "The stream waits for the first tick."),
    ),
  ];
}

function none(app) {
  return nothing(
    "No price stream is running",
    "A job price_stream keeps a connection to an exchange and publishes what it sends: collector job add EXCHANGE price_stream",
    app.session.may("viewer") && linkButton("Show its jobs", "/jobs?type=price_stream"),
  );
}
