/** The server's time, and a beat every second for what shows an age or a countdown. */

const TRUSTED_MS = 2_000;
let aheadMs = 0;

/** Learns from an answer's Date header how far the server's clock is ahead of this machine's. */
export function noteServerTime(header) {
  const at = Date.parse(header ?? "");
  if (Number.isNaN(at)) return;
  // The header has whole seconds: less than that is no difference.
  const ahead = at + 500 - Date.now();
  aheadMs = Math.abs(ahead) > TRUSTED_MS ? ahead : 0;
}

export function now() {
  return Date.now() + aheadMs;
}

const beating = new Map();

/** Calls `show` for the element now and every second, for as long as it is on the page. */
export function beat(show) {
  return {
    mount(node) {
      beating.set(node, show);
      show(node);
    },
    update(node) {
      beating.set(node, show);
      show(node);
    },
    unmount: (node) => beating.delete(node),
  };
}

export function startBeating() {
  setInterval(() => {
    if (document.hidden) return;
    for (const [node, show] of beating) show(node);
  }, 1_000);
}
