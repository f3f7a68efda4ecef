/** Requests to the REST API. What is not a success is thrown, as the problem that was answered. */

import { noteServerTime } from "./clock.js";

const ROOT = "/api/v1";
const PATIENCE_MS = 30_000;

/** An answer that is not a success: `code` and `message` are the API's own. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? body.title ?? `the API answered ${status}`);
    this.name = "Problem";
    this.status = status;
    this.code = body.code ?? "";
    this.fields = body.errors ?? [];
  }
}

/** No answer at all. */
export class Unreachable extends Error {
  constructor() {
    super("Collector does not answer");
    this.name = "Unreachable";
    this.status = 0;
    this.code = "unreachable";
    this.fields = [];
  }
}

export function createApi(session, refused = () => {}) {
  async function ask(method, path, { query, body, signal, patienceMs } = {}) {
    const asked = { body, signal, patienceMs };
    const response = await send(session, method, address(path, query), asked);
    noteServerTime(response.headers.get("Date"));
    if (response.ok) return response.status === 204 ? null : response.json();
    const problem = new Problem(response.status, await response.json().catch(() => ({})));
    if (response.status === 401) refused(problem);
    throw problem;
  }
  return {
    get: (path, query, signal) => ask("GET", path, { query, signal }),
    /** For what reads whole files. */
    getSlowly: (path, query, signal) =>
      ask("GET", path, { query, signal, patienceMs: 10 * PATIENCE_MS }),
    post: (path, body, signal) => ask("POST", path, { body: body ?? {}, signal }),
    act: (path) => ask("POST", path, {}),
    remove: (path) => ask("DELETE", path, {}),
  };
}

/** A path below the API's root with its query; empty values are left out, lists repeated. */
export function address(path, query = {}) {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const one of [value].flat()) {
      if (one !== null && one !== undefined && one !== "") asked.append(name, one);
    }
  }
  const text = asked.toString();
  return ROOT + path + (text ? `?${text}` : "");
}

async function send(session, method, url, { body, signal, patienceMs = PATIENCE_MS }) {
  const patience = AbortSignal.timeout(patienceMs);
  const request = {
    method,
    headers: { Accept: "application/json", ...session.headers() },
    signal: signal ? AbortSignal.any([signal, patience]) : patience,
    cache: "no-store",
    credentials: "omit",
  };
  if (body !== undefined) {
    request.headers["Content-Type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  try {
    return await fetch(url, request);
  } catch (error) {
    if (error.name === "AbortError" && signal?.aborted) throw error;
    throw new Unreachable();
  }
}
