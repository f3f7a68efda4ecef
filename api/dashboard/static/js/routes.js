/** Every address, and the view behind it. */

import { open as add } from "./views/add/view.js";
import { open as chart } from "./views/chart/view.js";
import { open as job } from "./views/job/view.js";
import { open as jobs } from "./views/jobs/view.js";
import { open as login } from "./views/login/view.js";
import { open as overview } from "./views/overview/view.js";
import { open as prices } from "./views/prices/view.js";
import { open as quality } from "./views/quality/view.js";

export const ROUTES = [
  { name: "overview", pattern: /^\/$/, open: overview },
  { name: "jobs", pattern: /^\/jobs$/, open: jobs },
  { name: "job", pattern: /^\/jobs\/(?<id>[0-9a-f]{24})$/, open: job, under: "jobs" },
  { name: "chart", pattern: /^\/chart$/, open: chart },
  { name: "quality", pattern: /^\/quality$/, open: quality },
  { name: "prices", pattern: /^\/prices$/, open: prices },
  { name: "add", pattern: /^\/add$/, open: add },
  { name: "login", pattern: /^\/login$/, open: login, alone: true },
];
