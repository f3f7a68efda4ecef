/** How many bars a second jobs fetch, from the way their cursors move while one looks. */

import { timeframeMs } from "./words/time.js";

const WINDOW_MS = 20_000;

export function createBarRates() {
  const samples = new Map();
  return {
    /** A job as an event or a list shows it. */
    note(job, at = Date.now()) {
      const reached = job.cursor?.since_ms;
      if (!job.cursor?.until_ms || !reached || job.cursor.done) {
        samples.delete(job.id);
        return;
      }
      const known = samples.get(job.id) ?? [];
      if (known.at(-1)?.reached === reached) return;
      known.push({ at, reached });
      while (known.length > 2 && at - known[0].at > WINDOW_MS) known.shift();
      samples.set(job.id, known);
    },
    /** Bars a second; null while that is not known. */
    of(job, nowMs = Date.now()) {
      const known = samples.get(job.id);
      const step = timeframeMs(job.timeframe);
      if (known === undefined || known.length < 2 || !step) return null;
      const [first, last] = [known[0], known.at(-1)];
      if (nowMs - last.at > WINDOW_MS || last.at === first.at) return null;
      return (last.reached - first.reached) / step / ((last.at - first.at) / 1000);
    },
  };
}
