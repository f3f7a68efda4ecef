/** Where bars come from: a series of an exchange, or a pair of a network's trade history. */

import { timeframeMs } from "../../words/time.js";
import { barsOf } from "./bars.js";

/** The source that an address names; null when it names none. */
export function sourceOf(query) {
  const given = Object.fromEntries(query);
  if (given.exchange_id && given.symbol) {
    return seriesSource(given.exchange_id, given.symbol, given.timeframe || "1m");
  }
  if (given.network && given.base && given.quote) {
    return pairSource(given.network, given.base, given.quote, Number(given.bucket) || 0);
  }
  return null;
}

function seriesSource(exchangeId, symbol, timeframe) {
  return {
    kind: "series",
    key: `${exchangeId}|${symbol}|${timeframe}`,
    exchangeId,
    symbol,
    timeframe,
    stepMs: timeframeMs(timeframe),
    title: `${symbol} ${timeframe}`,
    where: exchangeId,
    async bars(api, start, end, asOf, signal) {
      const asked = { exchange_id: exchangeId, symbol, timeframe, start, end, as_of: asOf };
      return barsOf(await api.get("/candles", asked, signal));
    },
    /** What can be read of the market, and up to when. */
    async about(api, signal) {
      const asked = { exchange_id: exchangeId, symbol, limit: 1 };
      const [market] = (await api.get("/series", asked, signal)).items;
      return {
        timeframes: [...(market?.timeframes ?? []), ...(market?.made ?? [])].toSorted(
          (one, other) => timeframeMs(one) - timeframeMs(other),
        ),
        first: market?.first_ts ?? null,
        end: market?.end_ts ?? null,
      };
    },
  };
}

const LENGTHS = [60, 300, 900, 3600, 14_400, 86_400];

function pairSource(network, base, quote, bucket) {
  const pair = { network, base, quote };
  return {
    kind: "pair",
    key: `${network}|${base}|${quote}|${bucket}`,
    ...pair,
    bucket,
    stepMs: (bucket || 60) * 1000,
    title: `${tokenOf(base)}/${tokenOf(quote)}`,
    where: network,
    async bars(api, start, end, _asOf, signal) {
      const asked = { ...pair, from: start, to: end, bucket: bucket || null, fill: true };
      return barsOf(await api.get("/history/candles", asked, signal));
    },
    async about(api, signal) {
      const known = (await api.get("/history/pairs", {}, signal)).items.find(
        (each) => each.network === network && each.base === base && each.quote === quote,
      );
      const shortest = known?.bucket_sec ?? 60;
      const last = await api.get("/history/market-rate", { ...pair, mode: "spot" }, signal);
      const fitting = LENGTHS.filter((each) => each % shortest === 0);
      return {
        timeframes: [...new Set([shortest, ...fitting])].toSorted((a, b) => a - b),
        first: null,
        end: last.ts ? last.ts + 1 : null,
      };
    },
  };
}

/** `60` seconds as `1m` */
export function bucketWords(seconds) {
  for (const [size, unit] of [
    [86_400, "d"],
    [3600, "h"],
    [60, "m"],
  ]) {
    if (seconds % size === 0) return `${seconds / size}${unit}`;
  }
  return `${seconds}s`;
}

const tokenOf = (asset) => asset.slice(asset.indexOf(":") + 1);
