/**
 * One thing that is loaded from the API: not there yet, there, or there and old.
 *
 * Data that was loaded stays when a later attempt fails. Only the newest question counts: an answer
 * that is overtaken is thrown away.
 */

export function createResource(load, changed = () => {}) {
  const resource = { data: null, error: null, loading: false, at: 0 };
  let asking = null;

  resource.reload = async () => {
    asking?.abort();
    const mine = new AbortController();
    asking = mine;
    resource.loading = true;
    changed();
    try {
      const data = await load(mine.signal);
      if (asking !== mine) return;
      Object.assign(resource, { data, error: null, at: Date.now() });
    } catch (error) {
      if (asking !== mine || error.name === "AbortError") return;
      resource.error = error;
    }
    resource.loading = false;
    asking = null;
    changed();
  };
  /** Takes data that came another way, such as in an event. */
  resource.put = (data) => {
    Object.assign(resource, { data, at: Date.now() });
    changed();
  };
  /** Forgets everything: what was loaded is not what is asked for now. */
  resource.clear = () => {
    asking?.abort();
    asking = null;
    Object.assign(resource, { data: null, error: null, loading: false, at: 0 });
  };
  resource.close = () => {
    asking?.abort();
    asking = null;
  };
  return resource;
}
