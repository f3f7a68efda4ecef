/** The stretch of time that is loaded: grows at both ends, follows what is new. */

import { now } from "../../link/clock.js";
import { merged } from "./bars.js";

const CHUNK = 1_200;
const MOST = 30_000;

export class BarWindow {
  bars = [];
  about = null;
  error = null;
  loading = false;
  #api;
  #changed;
  #asking = new AbortController();
  #isWhole = { start: false, end: false };

  constructor(api, source, asOf, changed) {
    this.#api = api;
    this.source = source;
    this.asOf = asOf;
    this.#changed = changed;
  }

  /** The newest bars, or those around a moment. Answers whether there are any. */
  async begin(atMs) {
    return this.#guarded(async (signal) => {
      this.about = await this.source.about(this.#api, signal);
      const { stepMs } = this.source;
      const end = this.about.end ?? now();
      const middle = atMs === null ? null : Math.min(Math.max(atMs, this.about.first ?? 0), end);
      const to = middle === null ? end : Math.min(end, middle + (CHUNK / 2) * stepMs);
      const from = Math.max(this.about.first ?? 0, to - CHUNK * stepMs);
      this.bars = await this.#read(from, to, signal);
      this.#isWhole = { start: from <= (this.about.first ?? 0), end: to >= end };
      return true;
    });
  }

  /** More at one end; answers how many bars came. */
  async more(edge) {
    if (this.loading || this.#isWhole[edge] || !this.bars.length || this.bars.length > MOST)
      return 0;
    const { stepMs } = this.source;
    const before = this.bars.length;
    await this.#guarded(async (signal) => {
      const isStart = edge === "start";
      const from = isStart ? this.bars[0].ts - CHUNK * stepMs : this.bars.at(-1).ts + 1;
      const to = isStart ? this.bars[0].ts : from + CHUNK * stepMs;
      const found = await this.#read(Math.max(0, from), to, signal);
      if (!found.length) this.#isWhole[edge] = true;
      this.bars = merged(this.bars, found);
      return true;
    });
    return this.bars.length - before;
  }

  /** What came since the last bar, where the newest is shown. */
  async newest() {
    if (this.loading || !this.#isWhole.end || !this.bars.length || this.asOf) return false;
    const last = this.bars.findLast((bar) => bar.kind !== "live");
    return this.#guarded(async (signal) => {
      const found = await this.#read(last.ts, now() + this.source.stepMs, signal);
      this.bars = merged(
        this.bars.filter((bar) => bar.kind !== "live"),
        found,
      );
      return true;
    });
  }

  close() {
    this.#asking.abort();
  }

  async #read(from, to, signal) {
    return this.source.bars(this.#api, Math.floor(from), Math.ceil(to), this.asOf, signal);
  }

  async #guarded(work) {
    this.loading = true;
    this.#changed();
    let isDone = false;
    try {
      isDone = await work(this.#asking.signal);
      this.error = null;
    } catch (error) {
      if (error.name === "AbortError") return false;
      this.error = error;
    }
    this.loading = false;
    this.#changed();
    return isDone;
  }
}
