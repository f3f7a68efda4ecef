/**
 * The stream of changes, read with fetch so that the key goes along as a header.
 *
 * It connects again by itself for as long as the page is looked at. Whoever listens is told when it
 * is live: only lists that are read after that miss nothing. A page in the background lets go of it
 * after a while, because a browser has few connections for all of its tabs.
 */

import { address } from "./api.js";
import { createParser } from "./event_parser.js";

const SILENCE_MS = 45_000;
const FIRST_MS = 500;
const LONGEST_MS = 5_000;
const HIDDEN_MS = 20_000;

/** `state` is connecting, live, cut, resting or refused; `since` when it became that. */
export class Feed {
  state = "connecting";
  since = Date.now();
  retryAt = 0;
  #session;
  #onEvent;
  #onState;
  #attempt = 0;
  #current = null;
  #timer = 0;
  #hiding = 0;

  constructor(session, { onEvent, onState }) {
    this.#session = session;
    this.#onEvent = onEvent;
    this.#onState = onState;
    document.addEventListener("visibilitychange", () => this.#onVisibility());
  }

  start() {
    this.#attempt = 0;
    this.retry();
  }

  /** Connects now, whatever the pause. */
  async retry() {
    clearTimeout(this.#timer);
    this.#current?.abort();
    const mine = new AbortController();
    this.#current = mine;
    if (this.state !== "cut") this.#become("connecting");
    const isRefused = await this.#read(mine);
    if (this.#current !== mine) return;
    if (isRefused) this.#become("refused");
    else this.#again();
  }

  stop() {
    clearTimeout(this.#timer);
    const mine = this.#current;
    this.#current = null;
    mine?.abort();
    this.#become("resting");
  }

  /** Until the stream ends, for whatever reason; true when the key was refused. */
  async #read(control) {
    let silence = 0;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => control.abort(), SILENCE_MS);
    };
    heard();
    try {
      const response = await fetch(address("/events"), {
        headers: { Accept: "text/event-stream", ...this.#session.headers() },
        signal: control.signal,
        cache: "no-store",
        credentials: "omit",
      });
      if (response.status === 401 || response.status === 403) return true;
      if (response.ok) await this.#parse(response.body, heard);
    } catch {
      // A cut connection, or one that was silent for too long: the next one follows.
    } finally {
      clearTimeout(silence);
    }
    return false;
  }

  async #parse(body, heard) {
    const parse = createParser(this.#onEvent, () => {
      this.#attempt = 0;
      this.#become("live");
    });
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      parse(value);
    }
  }

  #again() {
    this.#attempt += 1;
    const pause = Math.min(LONGEST_MS, FIRST_MS * 2 ** (this.#attempt - 1));
    const wait = pause / 2 + Math.random() * (pause / 2);
    this.#become("cut", Date.now() + wait);
    this.#timer = setTimeout(() => this.retry(), wait);
  }

  #become(state, retryAt = 0) {
    const before = this.state;
    if (before !== state) this.since = Date.now();
    this.state = state;
    this.retryAt = retryAt;
    if (before !== state || retryAt) this.#onState(this, before);
  }

  #onVisibility() {
    clearTimeout(this.#hiding);
    if (document.hidden) this.#hiding = setTimeout(() => this.stop(), HIDDEN_MS);
    else if (this.state === "resting" && this.#session.me !== null) this.start();
  }
}
