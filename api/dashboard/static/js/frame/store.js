/** A value that says when it has changed. */

export function createStore(initial, changed = () => {}) {
  let value = initial;
  return {
    get: () => value,
    /** Replaces the given fields. Says so only when one of them is different. */
    set(fields) {
      const differs = Object.keys(fields).some((name) => !Object.is(value[name], fields[name]));
      if (!differs) return;
      value = { ...value, ...fields };
      changed(value);
    },
  };
}
