/** Every address, and the view behind it. */

import { open as login } from "./views/login/view.js";
import { open as overview } from "./views/overview/view.js";

export const ROUTES = [
  { name: "overview", pattern: /^\/$/, open: overview },
  { name: "login", pattern: /^\/login$/, open: login, alone: true },
];
