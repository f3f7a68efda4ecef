/**
 * The visitor's key and role. The key stays in this tab's session storage, or in memory where there
 * is none; it never becomes part of an address.
 */

const NAME = "collector.key";
const RANKS = { viewer: 1, operator: 2, admin: 3 };

export function createSession(storage = tabStorage()) {
  let key = storage.getItem(NAME);
  const session = { me: null };

  session.headers = () => (key === null ? {} : { Authorization: `Bearer ${key}` });
  session.hasKey = () => key !== null;
  session.keep = (given) => {
    key = given;
    storage.setItem(NAME, given);
  };
  session.forget = () => {
    key = null;
    session.me = null;
    storage.removeItem(NAME);
  };
  /** Whether a button for this role is shown. The API decides for itself. */
  session.may = (role) => RANKS[session.me?.role ?? ""] >= RANKS[role];
  return session;
}

function tabStorage() {
  try {
    sessionStorage.getItem(NAME);
    return sessionStorage;
  } catch {
    const kept = new Map();
    return {
      getItem: (name) => kept.get(name) ?? null,
      setItem: (name, value) => kept.set(name, value),
      removeItem: (name) => kept.delete(name),
    };
  }
}
