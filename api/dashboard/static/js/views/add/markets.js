/** Finds markets of any exchange by letters; connects an exchange that is not connected yet. */

import { h } from "../../frame/element.js";
import { createResource } from "../../frame/resource.js";
import { button, iconButton } from "../../parts/button.js";
import { checkbox, search, select } from "../../parts/field.js";
import { nothing, shown } from "../../parts/shown.js";
import { keyOf } from "./chosen.js";

const TYPING_MS = 200;
const MOST = 60;
const LOOK_AGAIN_MS = 1_500;

export function createMarkets(app, chosen, changed, exchangeId) {
  const state = { text: "", exchangeId, isConnecting: false };
  let timer = 0;
  const exchanges = createResource((signal) => app.api.get("/exchanges", {}, signal), app.refresh);
  const found = createResource(async (signal) => {
    const asked = { search: state.text, exchange_id: state.exchangeId, limit: MOST };
    const page = await app.api.get("/markets/search", asked, signal);
    // Its markets come a moment after an exchange was connected.
    if (state.exchangeId && !state.text && !page.items.length) later(LOOK_AGAIN_MS);
    return page;
  }, app.refresh);

  function later(ms) {
    clearTimeout(timer);
    timer = setTimeout(() => found.reload(), ms);
  }

  const actions = {
    type(text) {
      state.text = text;
      later(TYPING_MS);
      app.refresh();
    },
    choose(name) {
      state.exchangeId = name;
      found.clear();
      found.reload();
      app.refresh();
    },
    async connect() {
      state.isConnecting = true;
      app.refresh();
      await app.act(
        () => app.api.post("/connectors", { exchange_id: state.exchangeId }),
        `${state.exchangeId} is connected.`,
      );
      state.isConnecting = false;
      await exchanges.reload();
      app.fleet.reload();
      found.reload();
    },
    toggle(market, on) {
      chosen.toggle(market, on);
      changed();
    },
  };

  exchanges.reload();
  found.reload();
  return {
    close() {
      clearTimeout(timer);
      exchanges.close();
      found.close();
    },
    render: () => render(state, { exchanges, found, chosen, actions }),
  };
}

function render(state, { exchanges, found, chosen, actions }) {
  const known = exchanges.data?.items ?? [];
  const option = ({ exchange_id: id, connected }) => [id, connected ? id : `${id} (not connected)`];
  const first = known.filter((each) => each.connected);
  const others = known.filter((each) => !each.connected);
  const current = known.find((each) => each.exchange_id === state.exchangeId);
  return h(
    "section",
    { class: "box add-step", key: "markets", "aria-labelledby": "step-markets" },
    h("h2", { id: "step-markets" }, h("span", { class: "step-number" }, "1"), "Markets"),
    h(
      "div",
      { class: "filter-bar" },
      search("Search markets", "markets", state.text, actions.type, { placeholder: "BTC/USDT" }),
      select(
        "Exchange",
        "add-exchange",
        [["", "Every connected exchange"], ...first.map(option), ...others.map(option)],
        state.exchangeId,
        actions.choose,
        { hidden: true },
      ),
    ),
    current && !current.connected
      ? connect(state, actions)
      : results(state, found, chosen, actions),
    chosen.markets.size > 0 && chips(chosen, actions),
  );
}

function connect(state, actions) {
  return h(
    "div",
    { class: "panel", key: "connect" },
    h(
      "p",
      { class: "grow" },
      `${state.exchangeId} is not connected yet. Connecting makes a connector with the exchange's own limits, and asks for its markets.`,
    ),
    button(`Connect ${state.exchangeId}`, actions.connect, {
      kind: "main",
      disabled: state.isConnecting,
    }),
  );
}

function results(state, found, chosen, actions) {
  const waits = state.exchangeId && !state.text;
  return shown(found, {
    lines: 4,
    empty: (data) =>
      data.items.length
        ? null
        : waits
          ? nothing("Its markets are not known yet", "They are asked for now; this takes a moment.")
          : nothing("No market fits", "Search for other letters, or choose another exchange."),
    content: (data) =>
      h(
        "div",
        {
          class: "market-list",
          key: "list",
          role: "group",
          "aria-label": "Markets found",
          tabindex: "0",
        },
        data.items.map((market) =>
          checkbox(
            [market.symbol, " ", h("small", null, market.active ? market.exchange_id : "delisted")],
            chosen.has(market),
            (on) => actions.toggle(market, on),
            { key: keyOf(market), disabled: !market.active && !chosen.has(market) },
          ),
        ),
      ),
  });
}

function chips(chosen, actions) {
  return h(
    "ul",
    { class: "chips", key: "chips", "aria-label": "Chosen markets" },
    [...chosen.markets.values()].map((market) =>
      h(
        "li",
        { class: "chip", key: keyOf(market) },
        `${market.symbol} · ${market.exchange_id}`,
        iconButton("close", `Leave out ${market.symbol} of ${market.exchange_id}`, () =>
          actions.toggle(market, false),
        ),
      ),
    ),
  );
}
