/** The last prices, each with the age of its tick. */

import { h } from "../../frame/element.js";
import { beat, now } from "../../link/clock.js";
import { sparkline } from "../../parts/gauge.js";
import { away } from "../../parts/moment.js";
import { digitsOf, price, priceWith } from "../../words/numbers.js";
import { duration, utc } from "../../words/time.js";

const LAG_MS = 12_000;
const STALE_MS = 30_000;
const COLUMNS = ["Bid", "Ask", "Mid", "Spread"];

export function priceTable(prices, trails) {
  const ordered = prices.toSorted((one, other) =>
    `${one.exchange_id}|${one.symbol}` < `${other.exchange_id}|${other.symbol}` ? -1 : 1,
  );
  return h(
    "div",
    { class: "table-wrap", key: "prices" },
    h(
      "table",
      { class: "table prices" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", { scope: "col" }, "Symbol"),
          COLUMNS.map((words) => h("th", { scope: "col", class: "number", key: words }, words)),
          h("th", { scope: "col" }, "Age of the tick"),
          h("th", { scope: "col" }, "While you look"),
        ),
      ),
      h(
        "tbody",
        null,
        ordered.map((each) => row(each, trails)),
      ),
    ),
  );
}

function row(each, trails) {
  const { payload } = each;
  const trail = trails.get(`${each.exchange_id}|${each.symbol}`) ?? [];
  const least = Math.min(...trail);
  const digits = digitsOf(payload.bid, payload.ask);
  const number = (words, value, more = 0) =>
    h("td", { class: "number", key: words, "data-label": words }, priceWith(digits + more, value));
  return h(
    "tr",
    { key: `${each.exchange_id}|${each.symbol}` },
    h("th", { scope: "row" }, each.symbol, h("small", null, each.exchange_id)),
    number("Bid", payload.bid),
    number("Ask", payload.ask),
    number("Mid", payload.mid),
    number("Spread", payload.ask - payload.bid),
    h("td", { "data-label": "Age of the tick" }, age(payload.tick_ts * 1000)),
    h(
      "td",
      { class: "trail", "data-label": "While you look" },
      sparkline(
        trail.map((value) => value - least),
        Math.max(...trail) - least || 1,
      ),
    ),
  );
}

/** `3 s ok`, `14 s late`, `45 s stale`: the word changes with the age. */
function age(ms) {
  const show = (node) => {
    const old = now() - ms;
    const word = old > STALE_MS ? "stale" : old > LAG_MS ? "late" : "ok";
    const text = `${duration(Math.max(0, old))} ${word}`;
    if (node.textContent === text) return;
    node.textContent = text;
    node.className = `tone ${{ ok: "good", late: "warn", stale: "bad" }[word]}`;
  };
  return h("time", { datetime: new Date(ms).toISOString(), title: utc(ms), hook: beat(show) });
}

export function tickerTable(tickers) {
  return h(
    "div",
    { class: "table-wrap", key: "tickers" },
    h(
      "table",
      { class: "table" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", { scope: "col" }, "Symbol"),
          ["Last", "Bid", "Ask", "Volume of a day"].map((words) =>
            h("th", { scope: "col", class: "number", key: words }, words),
          ),
          h("th", { scope: "col" }, "Seen"),
        ),
      ),
      h(
        "tbody",
        null,
        tickers.map((each) =>
          h(
            "tr",
            { key: `${each.exchange_id}|${each.symbol}` },
            h("th", { scope: "row" }, each.symbol, h("small", null, each.exchange_id)),
            [each.last, each.bid, each.ask, each.volume].map((value, at) =>
              h("td", { class: "number", key: at }, price(value)),
            ),
            h("td", null, away(each.seen_at)),
          ),
        ),
      ),
    ),
  );
}
