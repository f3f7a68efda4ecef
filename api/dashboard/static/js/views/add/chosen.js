/** What has been chosen so far, and as the API takes it. */

import { DAY, fromLocalInput, timeframeMs } from "../../words/time.js";

export const BEGINNINGS = {
  month: { words: "30 days ago", days: 30 },
  year: { words: "A year ago", days: 365 },
  first: { words: "Its first bar" },
  date: { words: "A date" },
  never: { words: "Now: only new bars" },
};

export class ChosenSeries {
  markets = new Map();
  timeframes = new Set(["1m"]);
  beginning = "year";
  date = "";

  has = (market) => this.markets.has(keyOf(market));

  toggle(market, on) {
    if (on) this.markets.set(keyOf(market), market);
    else this.markets.delete(keyOf(market));
  }

  clear() {
    this.markets = new Map();
  }

  /** The timeframes that every chosen market has; all of one when nothing is chosen. */
  get offered() {
    const lists = [...this.markets.values()].map((each) => each.timeframes);
    const usual = ["1m", "5m", "15m", "1h", "4h", "1d"];
    if (!lists.length) return usual;
    const shared = lists[0].filter((name) => lists.every((list) => list.includes(name)));
    return shared.toSorted((one, other) => timeframeMs(one) - timeframeMs(other));
  }

  get wantedTimeframes() {
    return this.offered.filter((name) => this.timeframes.has(name));
  }

  get series() {
    return this.markets.size * this.wantedTimeframes.length;
  }

  /** One body for each exchange; none while something is left to choose. */
  bodies() {
    const timeframes = this.wantedTimeframes;
    const since = this.#since();
    if (!timeframes.length || since === undefined) return [];
    const byExchange = Map.groupBy(this.markets.values(), (each) => each.exchange_id);
    return [...byExchange].map(([exchange, markets]) => ({
      exchange_id: exchange,
      symbols: markets.map((each) => each.symbol),
      timeframes,
      since,
      backfill: this.beginning !== "never",
    }));
  }

  /** Epoch ms, null for the first bar, undefined while no date is chosen. */
  #since() {
    const { days } = BEGINNINGS[this.beginning];
    if (days) return Math.floor(Date.now() / DAY) * DAY - days * DAY;
    if (this.beginning === "date") return fromLocalInput(`${this.date}T00:00`) ?? undefined;
    return null;
  }
}

export const keyOf = (market) => `${market.exchange_id}|${market.symbol}`;
