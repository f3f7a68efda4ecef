/** From the API's rows to what the chart draws. Pure. */

/** Rows as objects: times in ms, and what kind of slot each is. */
export function barsOf({ columns, rows }) {
  const place = Object.fromEntries(columns.map((name, at) => [name, at]));
  return rows.map((row) => ({
    ts: row[place.ts],
    o: row[place.o],
    h: row[place.h],
    l: row[place.l],
    c: row[place.c],
    v: row[place.v],
    kind: kindOf(row[place.is_gap], row[place.gap_reason]),
  }));
}

function kindOf(isGap, reason) {
  if (!isGap && reason !== "partial") return "bar";
  return reason ?? "missing";
}

/** Earlier bars, then later ones, each time once; of two for one time the later answer counts. */
export function merged(earlier, later) {
  if (!later.length) return earlier;
  const first = later[0].ts;
  const last = later.at(-1).ts;
  return [
    ...earlier.filter((bar) => bar.ts < first),
    ...later,
    ...earlier.filter((bar) => bar.ts > last),
  ];
}

/** Candles, volumes and bands over what is missing, in the colours of the theme. */
export function drawn(bars, colours) {
  const candles = [];
  const volumes = [];
  const bands = [];
  for (const bar of bars) {
    const time = bar.ts / 1000;
    if (bar.kind === "missing") {
      candles.push({ time });
      bands.push({ time, value: 1, color: colours.missing });
      continue;
    }
    const candle = { time, open: bar.o, high: bar.h, low: bar.l, close: bar.c };
    if (bar.kind === "no_trade") Object.assign(candle, alike(colours.flat));
    if (bar.kind === "live") Object.assign(candle, alike(colours.live));
    candles.push(candle);
    if (bar.kind !== "no_trade" && bar.v !== null && bar.v !== undefined) {
      volumes.push({
        time,
        value: bar.v,
        color: bar.c >= bar.o ? colours.upSoft : colours.downSoft,
      });
    }
  }
  return { candles, volumes, bands };
}

const alike = (colour) => ({ color: colour, borderColor: colour, wickColor: colour });

/** The bar that is being made of live prices; null for a price of the past. */
export function liveBar(known, last, price, nowMs, stepMs) {
  const ts = nowMs - (nowMs % stepMs);
  if (last && ts <= last.ts) return null;
  if (known?.ts === ts) {
    return { ...known, h: Math.max(known.h, price), l: Math.min(known.l, price), c: price };
  }
  const open = last && last.ts === ts - stepMs ? last.c : price;
  return {
    ts,
    o: open,
    h: Math.max(open, price),
    l: Math.min(open, price),
    c: price,
    v: null,
    kind: "live",
  };
}

/** How many slots of each kind there are. */
export function countKinds(bars) {
  const counts = { bar: 0, partial: 0, no_trade: 0, missing: 0 };
  for (const bar of bars) counts[bar.kind] = (counts[bar.kind] ?? 0) + 1;
  return counts;
}
