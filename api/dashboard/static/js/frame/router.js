/**
 * Addresses. A view is a path, what it shows is the query: both survive a reload, a new tab and
 * the way back.
 */

export function createRouter(routes, arrive) {
  function place() {
    const { pathname, search } = location;
    for (const route of routes) {
      const found = route.pattern.exec(pathname);
      if (found) {
        return { route, params: found.groups ?? {}, query: new URLSearchParams(search) };
      }
    }
    return { route: routes[0], params: {}, query: new URLSearchParams() };
  }

  function go(href, { replace = false } = {}) {
    const url = new URL(href, location.href);
    if (url.href === location.href) return;
    history[replace ? "replaceState" : "pushState"](null, "", url);
    arrive(place(), { moved: true, replace });
  }

  function onClick(event) {
    const link = event.target.closest?.("a[href]");
    if (link === null || link === undefined || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.target) return;
    const url = new URL(link.href, location.href);
    if (url.origin !== location.origin || link.hasAttribute("download")) return;
    if (!routes.some((route) => route.pattern.test(url.pathname))) return;
    if (url.pathname === location.pathname && url.search === location.search && url.hash) return;
    event.preventDefault();
    go(url.href);
  }

  return {
    place,
    go,
    withQuery,
    set: (fields, options) => go(withQuery(fields), options),
    start() {
      document.addEventListener("click", onClick);
      addEventListener("popstate", () => arrive(place(), { moved: true, back: true }));
      arrive(place(), { moved: false });
    },
  };
}

/** The same view with another query. Fields that are empty go. */
export function withQuery(fields, base = new URLSearchParams(location.search)) {
  const query = new URLSearchParams(base);
  for (const [name, value] of Object.entries(fields)) {
    query.delete(name);
    for (const one of [value].flat()) {
      if (one !== null && one !== undefined && one !== "") query.append(name, one);
    }
  }
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "");
}
