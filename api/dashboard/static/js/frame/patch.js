/** Makes the children of an element equal to descriptions, changing only what differs. */

import { flat } from "./element.js";

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "indeterminate", "disabled", "selected", "open"]);
const OWN = new Set(["key", "on", "style", "hook", "same"]);

const known = new WeakMap();
const handlers = new WeakMap();

/** Elements whose hooks are told that they are there, once all of them are. */
let arrived = [];

export function patch(parent, children) {
  const next = flat([children]);
  reconcile(parent, known.get(parent) ?? [], next);
  known.set(parent, next);
  const mounted = arrived;
  arrived = [];
  for (const { props, node } of mounted) props.hook.mount(node);
}

function reconcile(parent, before, next) {
  const byKey = new Map();
  const unkeyed = [];
  for (const each of before) {
    if (each.key === undefined) unkeyed.push(each);
    else byKey.set(each.key, each);
  }
  const kept = new Set();
  let place = parent.firstChild;
  let at = 0;
  for (const each of next) {
    let old;
    if (each.key === undefined) old = unkeyed[at++];
    else old = byKey.get(each.key);
    if (old !== undefined && old.tag === each.tag && !kept.has(old)) {
      kept.add(old);
      update(old, each);
    } else {
      create(each, parent);
    }
    if (each.node === place) place = place.nextSibling;
    else parent.insertBefore(each.node, place);
  }
  for (const old of before) {
    if (!kept.has(old)) {
      leave(old);
      old.node.remove();
    }
  }
}

function create(each, parent) {
  if (each.tag === undefined) {
    each.node = document.createTextNode(each.text);
    return;
  }
  const isSvg = each.tag === "svg" || parent.namespaceURI === SVG;
  each.node = isSvg ? document.createElementNS(SVG, each.tag) : document.createElement(each.tag);
  reconcile(each.node, [], each.children);
  setProps(each.node, {}, each.props);
  if (each.props.hook?.mount) arrived.push(each);
}

function update(old, each) {
  each.node = old.node;
  if (each.tag === undefined) {
    if (old.text !== each.text) each.node.data = each.text;
    return;
  }
  if (each.props.same !== undefined && each.props.same === old.props.same) {
    each.children = old.children;
    each.props = old.props;
    return;
  }
  reconcile(each.node, old.children, each.children);
  setProps(each.node, old.props, each.props);
  each.props.hook?.update?.(each.node);
}

/** Tells hooks that their elements go, the innermost first. */
function leave(old) {
  for (const child of old.children ?? []) leave(child);
  old.props?.hook?.unmount?.(old.node);
}

function setProps(node, before, next) {
  for (const name of Object.keys(before)) {
    if (!OWN.has(name) && !(name in next)) setOne(node, name, null);
  }
  for (const [name, value] of Object.entries(next)) {
    if (OWN.has(name)) continue;
    // A control may have been changed by hand since: what counts is what it shows now.
    if (before[name] !== value || PROPERTIES.has(name)) setOne(node, name, value);
  }
  setStyle(node, before.style ?? {}, next.style ?? {});
  if (next.on !== undefined || before.on !== undefined) listen(node, next.on ?? {});
}

function setOne(node, name, value) {
  if (PROPERTIES.has(name) && name in node) {
    const wanted = value ?? (name === "value" ? "" : false);
    if (node[name] !== wanted) node[name] = wanted;
  } else if (value === null || value === undefined || value === false) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? "" : String(value));
  }
}

function setStyle(node, before, next) {
  for (const name of Object.keys(before)) {
    if (!(name in next)) node.style.removeProperty(name);
  }
  for (const [name, value] of Object.entries(next)) {
    if (before[name] !== value) node.style.setProperty(name, String(value));
  }
}

function listen(node, wanted) {
  let current = handlers.get(node);
  if (current === undefined) {
    current = {};
    handlers.set(node, current);
  }
  for (const name of Object.keys(wanted)) {
    if (!(name in current)) node.addEventListener(name, dispatch);
    current[name] = wanted[name];
  }
  for (const name of Object.keys(current)) if (!(name in wanted)) current[name] = null;
}

function dispatch(event) {
  handlers.get(event.currentTarget)?.[event.type]?.(event);
}
