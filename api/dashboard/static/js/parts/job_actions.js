/** What can be done with one job, for who may. */

import { actionsOf, placeOf, subject, typeWords } from "../words/jobs.js";
import { button, iconButton } from "./button.js";

const VERBS = [
  { name: "run", words: "Run now", icon: "run", role: "operator", done: "is queued." },
  { name: "resume", words: "Resume", icon: "run", role: "operator", done: "goes on." },
  { name: "pause", words: "Pause", icon: "pause", role: "operator", done: "is paused." },
  { name: "remove", words: "Delete", icon: "trash", role: "admin", done: "is deleted." },
];

/** Buttons for every verb that fits, as icons or with words. */
export function jobActions(app, job, changed, { words = false } = {}) {
  const possible = actionsOf(job);
  return VERBS.filter((verb) => possible[verb.name] && app.session.may(verb.role)).map((verb) => {
    const press = () => perform(app, job, verb, changed);
    const name = `${verb.words}: ${subject(job)}, ${typeWords(job.type)}`;
    return words
      ? button(verb.words, press, { icon: verb.icon, key: verb.name })
      : iconButton(verb.icon, name, press, { key: verb.name, "data-verb": verb.name });
  });
}

async function perform(app, job, verb, changed) {
  if (verb.name === "remove" && !(await isSure(app, job))) return;
  const path = `/jobs/${job.id}`;
  await app.act(
    async () => {
      const after =
        verb.name === "remove"
          ? await app.api.remove(path)
          : await app.api.act(`${path}/${verb.name}`);
      changed(after);
    },
    `${subject(job)} ${verb.done}`,
  );
}

function isSure(app, job) {
  return app.dialogs.ask({
    title: `Delete this job?`,
    body: `${subject(job)} on ${placeOf(job)}, ${typeWords(job.type).toLowerCase()}. What it has collected stays.`,
    action: "Delete",
    danger: true,
  });
}
