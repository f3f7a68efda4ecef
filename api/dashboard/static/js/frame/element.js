/**
 * Descriptions of elements. A view is a function from what is known to such a description, and
 * patch.js makes the page equal to it. Text is only ever text: nothing here parses markup.
 */

/**
 * @param {string} tag
 * @param {object|null} props attributes, and: `key` names it among its siblings, `on` has event
 *   handlers, `style` custom properties, `hook` is told about the element itself, `same` keeps the
 *   element as it is for as long as the value is the same.
 */
export function h(tag, props, ...children) {
  const given = props ?? {};
  return { tag, props: given, key: given.key, children: flat(children), node: null };
}

/** Children without what is not to be shown, texts as descriptions. */
export function flat(children, found = []) {
  for (const child of children) {
    if (Array.isArray(child)) flat(child, found);
    else if (child === null || child === undefined || child === false || child === true) continue;
    else if (typeof child === "object") found.push(child);
    else found.push({ text: String(child), node: null });
  }
  return found;
}
