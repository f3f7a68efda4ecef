/** Each stream: its state, how long it is silent, and whether its market is open. */

import { h } from "../../frame/element.js";
import { lasting } from "../../parts/moment.js";
import { pill } from "../../parts/pill.js";
import { count } from "../../words/numbers.js";
import { duration } from "../../words/time.js";

const STATES = {
  STREAM: ["good", "Streaming"],
  IDLE: ["quiet", "Idle"],
  RECOVERING: ["warn", "Recovering"],
  DISCONNECTED: ["bad", "Disconnected"],
};

export function streamCards(beats, markets, connectors) {
  const byExchange = (items) => new Map(items.map((each) => [each.exchange_id, each]));
  const status = byExchange(markets);
  const known = byExchange(connectors);
  return h(
    "ul",
    { class: "cards", key: "cards" },
    beats
      .toSorted((one, other) => (one.exchange_id < other.exchange_id ? -1 : 1))
      .map((beat) =>
        h(
          "li",
          { key: beat.exchange_id },
          card(beat, status.get(beat.exchange_id), known.get(beat.exchange_id)),
        ),
      ),
  );
}

function card({ exchange_id: name, payload, fence }, market, connector) {
  const [tone, words] = STATES[payload.state] ?? ["quiet", payload.state];
  const stream = payload.context?.price_stream ?? {};
  const poll = stream.adaptive_poll ?? {};
  return h(
    "article",
    { class: "card", "aria-labelledby": `stream-${name}` },
    h(
      "header",
      { class: "card-head" },
      h("h3", { id: `stream-${name}` }, name),
      pill(tone, words),
      marketPill(market),
    ),
    h(
      "dl",
      { class: "fact-list" },
      fact(
        "In this state for",
        payload.last_change_ts ? lasting(payload.last_change_ts * 1000) : "–",
      ),
      fact("Silent for", silence(payload.tick_silence_seconds)),
      fact("Prices", stream.stream_state?.prices ?? stream.state ?? "–"),
      fact("Polls for new bars", pollWords(poll, connector)),
      fact("Connections opened anew", count(stream.reconnects ?? 0)),
      fact("Messages without a price", count(stream.tick_errors ?? 0)),
      fact("Session", connector?.session ? connector.session.state : null),
      fact("Fence", count(fence)),
    ),
  );
}

function fact(words, value) {
  return value === null
    ? null
    : h("div", { key: words }, h("dt", null, words), h("dd", null, value));
}

const silence = (seconds) =>
  seconds === null || seconds === undefined ? "–" : duration(Math.round(seconds) * 1000);

function pollWords(poll, connector) {
  const every = poll.current_m1 ?? connector?.cadence?.m1;
  if (!every) return "–";
  const reason = poll.target_reason ?? connector?.cadence?.reason;
  return `every ${every} s${reason ? `, ${reason}` : ""}`;
}

function marketPill(market) {
  if (!market) return null;
  const { state, next_open_seconds: opens } = market.payload;
  if (state === "open") return pill("good", "Market open");
  return pill("quiet", opens ? `Closed, opens in ${duration(opens * 1000)}` : "Market closed");
}
