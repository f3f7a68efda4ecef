/** The chart itself, by Lightweight Charts: candles, volume, and bands over what is missing. */

import { clock, date, moment } from "../../words/time.js";
import { drawn } from "./bars.js";
import { palette } from "./palette.js";

const FEW_BARS = 40;
const FIRST_SHOWN = 160;

/** @param {(bar: object|null) => void} onHover @param {(edge: "start"|"end") => void} onEdge */
export async function createDrawing(node, { onHover, onEdge }) {
  const library = await import("../../../vendor/lightweight-charts.js");
  const drawing = new Drawing(library, node);
  drawing.follow(onHover, onEdge);
  return drawing;
}

class Drawing {
  #chart;
  #candles;
  #volumes;
  #bands;
  #bars = [];
  #toScroll = 0;
  #frame = 0;

  constructor(library, node) {
    const { createChart, CandlestickSeries, HistogramSeries } = library;
    this.#chart = createChart(node, {
      autoSize: true,
      layout: { attributionLogo: false, fontFamily: getComputedStyle(document.body).fontFamily },
      rightPriceScale: { borderVisible: false, scaleMargins: { top: 0.06, bottom: 0.24 } },
      timeScale: { borderVisible: false, timeVisible: true, rightOffset: 4, minBarSpacing: 0.4 },
      localization: { timeFormatter: (time) => moment(time * 1000), locale: "en-GB" },
      kineticScroll: { mouse: false, touch: true },
    });
    const quiet = { lastValueVisible: false, priceLineVisible: false };
    this.#bands = this.#chart.addSeries(HistogramSeries, {
      ...quiet,
      priceScaleId: "bands",
      autoscaleInfoProvider: () => ({ priceRange: { minValue: 0, maxValue: 1 } }),
    });
    this.#chart.priceScale("bands").applyOptions({ scaleMargins: { top: 0, bottom: 0 } });
    this.#volumes = this.#chart.addSeries(HistogramSeries, {
      ...quiet,
      priceScaleId: "volume",
      priceFormat: { type: "volume" },
    });
    this.#chart.priceScale("volume").applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } });
    this.#candles = this.#chart.addSeries(CandlestickSeries, { borderVisible: true });
    this.paint();
  }

  /** Takes the colours of the theme. Rising bars are hollow, so that colour is not needed. */
  paint() {
    const colours = palette();
    this.colours = colours;
    this.#chart.applyOptions({
      layout: { background: { color: colours.surface }, textColor: colours.ink },
      grid: { vertLines: { color: colours.line }, horzLines: { color: colours.line } },
      timeScale: { tickMarkFormatter: tick },
    });
    this.#candles.applyOptions({
      upColor: colours.surface,
      downColor: colours.down,
      borderUpColor: colours.up,
      borderDownColor: colours.down,
      wickUpColor: colours.up,
      wickDownColor: colours.down,
    });
    this.show(this.#bars);
  }

  show(bars) {
    this.#bars = bars;
    const { candles, volumes, bands } = drawn(bars, this.colours);
    this.#setDigits(bars);
    this.#candles.setData(candles);
    this.#volumes.setData(volumes);
    this.#bands.setData(bands);
  }

  /** The last bar has changed, or there is one more. */
  update(bar) {
    const { candles, volumes } = drawn([bar], this.colours);
    this.#candles.update(candles[0]);
    if (volumes.length) this.#volumes.update(volumes[0]);
  }

  /** Shows the newest bars, or those around a moment. */
  look(atMs) {
    const time = this.#chart.timeScale();
    const at = atMs === null ? this.#bars.length : this.#bars.findIndex((bar) => bar.ts >= atMs);
    if (atMs === null || at < 0) {
      time.setVisibleLogicalRange({
        from: this.#bars.length - FIRST_SHOWN,
        to: this.#bars.length + 4,
      });
    } else {
      time.setVisibleLogicalRange({ from: at - FIRST_SHOWN / 2, to: at + FIRST_SHOWN / 2 });
    }
  }

  /** Keeps what is shown in its place while `count` bars come before it. */
  shift(count) {
    const time = this.#chart.timeScale();
    const range = time.getVisibleLogicalRange();
    return () =>
      range && time.setVisibleLogicalRange({ from: range.from + count, to: range.to + count });
  }

  /** Moves once a frame by all that was asked for since: where the chart is, it says only then. */
  scroll(bars) {
    this.#toScroll += bars;
    this.#frame ||= requestAnimationFrame(() => {
      const time = this.#chart.timeScale();
      time.scrollToPosition(time.scrollPosition() + this.#toScroll, false);
      this.#toScroll = 0;
      this.#frame = 0;
    });
  }

  zoom(factor) {
    const time = this.#chart.timeScale();
    const range = time.getVisibleLogicalRange();
    if (!range) return;
    const half = ((range.to - range.from) * factor) / 2;
    const middle = (range.from + range.to) / 2;
    time.setVisibleLogicalRange({ from: middle - half, to: middle + half });
  }

  follow(onHover, onEdge) {
    this.#chart.subscribeCrosshairMove(({ time }) => {
      onHover(time ? (this.#bars.find((bar) => bar.ts === time * 1000) ?? null) : null);
    });
    this.#chart.timeScale().subscribeVisibleLogicalRangeChange((range) => {
      if (!range || !this.#bars.length) return;
      if (range.from < FEW_BARS) onEdge("start");
      if (range.to > this.#bars.length - FEW_BARS) onEdge("end");
    });
  }

  remove() {
    cancelAnimationFrame(this.#frame);
    this.#chart.remove();
  }

  #setDigits(bars) {
    const price = bars.findLast((bar) => bar.kind === "bar")?.c;
    if (!price) return;
    const precision = Math.min(10, Math.max(2, 4 - Math.floor(Math.log10(Math.abs(price)))));
    const priceFormat = { type: "price", precision, minMove: 10 ** -precision };
    this.#candles.applyOptions({ priceFormat });
  }
}

/** Years, months and days as dates, the rest as times, all of them local. */
function tick(time, kind) {
  const ms = time * 1000;
  if (kind === 0) return String(new Date(ms).getFullYear());
  return kind <= 2 ? date(ms).replace(/ \d{4}$/, "") : clock(ms).slice(0, 5);
}
