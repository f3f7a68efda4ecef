/** What an operator may do about an exchange, each asked about first where it matters. */

import { h } from "../../frame/element.js";
import { count, plural } from "../../words/numbers.js";

export async function liftBlock(app, exchangeId) {
  const yes = await app.dialogs.ask({
    title: `Lift the block of ${exchangeId}?`,
    body: "Requests are sent again at once. An exchange that still refuses them may ban for longer.",
    action: "Lift the block",
    danger: true,
  });
  if (!yes) return;
  await app.act(
    () => app.api.act(`/connectors/${exchangeId}/unblock`),
    `${exchangeId} may work again.`,
  );
  app.fleet.reload();
}

export async function pauseExchange(app, exchangeId) {
  const yes = await app.dialogs.ask({
    title: `Pause ${exchangeId}?`,
    body: "No request is sent until it is resumed. Running jobs stop after their current page.",
    action: "Pause",
  });
  if (!yes) return;
  await app.act(() => app.api.act(`/connectors/${exchangeId}/pause`), `${exchangeId} is paused.`);
  app.fleet.reload();
}

export async function resumeExchange(app, exchangeId) {
  await app.act(
    () => app.api.act(`/connectors/${exchangeId}/resume`),
    `${exchangeId} works again.`,
  );
  app.fleet.reload();
}

/** Runs every failed job once more, of one exchange or of all. */
export async function runFailed(app, filter = {}) {
  const wanted = { ...filter, state: "failed" };
  let matched = 0;
  const counted = await app.act(async () => {
    matched = (await app.api.post("/jobs/run", { filter: wanted, dry_run: true })).matched;
  });
  if (!counted) return;
  if (!matched) {
    app.notices.say("No job has failed.");
    return;
  }
  const where = filter.exchange_id ? ` of ${filter.exchange_id}` : "";
  const yes = await app.dialogs.ask({
    title: "Run all failed jobs again?",
    body: h(
      "p",
      null,
      h("strong", null, plural(matched, "job")),
      `${where} will be queued now. Those whose cause is not mended fail again.`,
    ),
    action: `Run ${count(matched)}`,
  });
  if (!yes) return;
  await app.act(
    () => app.api.post("/jobs/run", { filter: wanted }),
    (answer) => `${plural(answer.changed, "job")} queued.`,
  );
  app.fleet.reload();
  app.view?.fresh?.();
}
