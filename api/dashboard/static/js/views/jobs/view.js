/** Jobs: a page of them from the server, by filters that are in the address. */

import { createBarRates } from "../../bar_rates.js";
import { h } from "../../frame/element.js";
import { createResource } from "../../frame/resource.js";
import { nothing, shown } from "../../parts/shown.js";
import { bulkBar } from "./bulk.js";
import { FILTERS, filterBar, filtersOf, stateChoices } from "./filters.js";
import { pager } from "./pager.js";
import { jobTable } from "./table.js";

const PAGE = 50;
const TYPING_MS = 250;

export function open(app, first) {
  const view = { chosen: new Set(), all: false, search: first.query.get("search") ?? "" };
  const rates = createBarRates();
  let place = first;
  let typing = 0;

  const jobs = createResource(async (signal) => {
    const page = await readPage(app.api, place.query, signal);
    page.items.forEach((job) => rates.note(job));
    return page;
  }, app.refresh);

  function arrive(next) {
    const filters = FILTERS.map((name) => next.query.getAll(name).join());
    const isOther = FILTERS.some((name, at) => place.query.getAll(name).join() !== filters[at]);
    place = next;
    if (document.activeElement?.name !== "search") view.search = next.query.get("search") ?? "";
    if (isOther) clear();
    jobs.reload();
  }

  function clear() {
    view.chosen = new Set();
    view.all = false;
  }

  function search(text) {
    view.search = text;
    clearTimeout(typing);
    typing = setTimeout(() => {
      app.router.set({ search: text.trim(), cursor: null, before: null }, { replace: true });
    }, TYPING_MS);
    app.refresh();
  }

  /** A job as it is now, in the place of the one that is shown. */
  function put(job) {
    const { data } = jobs;
    const at = data?.items.findIndex((each) => each.id === job.id) ?? -1;
    if (at < 0) return;
    rates.note(job);
    jobs.put({ ...data, items: data.items.with(at, job) });
  }

  const actions = { search, clear, put, reload: () => jobs.reload() };
  jobs.reload();
  return {
    title: () => "Jobs",
    arrive,
    take: (name, data) => name === "job" && put(data),
    fresh: () => jobs.reload(),
    close: () => {
      clearTimeout(typing);
      jobs.close();
    },
    render: () => render(app, { view, jobs, rates, place, actions }),
  };
}

function render(app, { view, jobs, rates, place, actions }) {
  const filters = filtersOf(place.query);
  const chosen = jobs.data?.items.filter((job) => view.chosen.has(job.id)) ?? [];
  return [
    h("div", { class: "page-head", key: "head" }, h("h1", null, "Jobs")),
    h(
      "div",
      { class: "list-head", key: "filters" },
      stateChoices(app, place.query),
      filterBar(app, place.query, view, actions),
    ),
    h(
      "section",
      { key: "list", "aria-label": "Jobs" },
      bulkBar(app, { view, chosen, filters, page: jobs.data, actions }),
      shown(jobs, {
        lines: 12,
        empty: (data) => (data.items.length ? null : none(filters)),
        content: (data) => [
          jobTable(app, data.items, { view, rates, actions }),
          pager(app, data, place.query),
        ],
      }),
    ),
  ];
}

function none(filters) {
  return Object.keys(filters).length
    ? nothing("No job fits", "Take a filter away, or search for something else.")
    : nothing("There are no jobs yet", "They are made when you add a series.");
}

/**
 * The page that the address names. `before` asks for the one before a job: the same list the other
 * way round, turned again.
 */
async function readPage(api, query, signal) {
  const filters = filtersOf(query);
  const before = query.get("before");
  const order = query.get("order") === "oldest" ? "oldest" : "newest";
  const turned = order === "newest" ? "oldest" : "newest";
  const asked = { ...filters, limit: PAGE };
  if (!before) {
    const page = await api.get("/jobs", { ...asked, order, cursor: query.get("cursor") }, signal);
    return {
      items: page.items,
      hasNext: page.next_cursor !== null,
      hasBefore: query.has("cursor"),
    };
  }
  const page = await api.get("/jobs", { ...asked, order: turned, cursor: before }, signal);
  return { items: page.items.toReversed(), hasNext: true, hasBefore: page.next_cursor !== null };
}
