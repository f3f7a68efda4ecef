/** The filters that every part of quality understands. */

export function filtersOf(query) {
  return {
    exchange_id: query.get("exchange_id"),
    timeframe: query.get("timeframe"),
    search: query.get("search"),
  };
}

/** The address of a chart of a series, around a moment when one is given. */
export function chartOf(series, atMs = null) {
  const query = new URLSearchParams({
    exchange_id: series.exchange_id ?? series.exchange,
    symbol: series.symbol,
    timeframe: series.timeframe ?? series.tf,
  });
  if (atMs !== null) query.set("at", new Date(atMs).toISOString());
  return `/chart?${query}`;
}
