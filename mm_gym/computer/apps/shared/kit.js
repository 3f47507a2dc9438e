// A small view layer for the apps: describe the page with h(), change the state, and the page follows.
//
// It knows the state of the page (APP_STATE, set before loading) and how to draw it. It must not know
// clocks, chance or the network: the same state and the same input give the same pixels.
//
//   app.start({ ui: { open: null }, view: (data, ui) => h("main", null, ...) });
//
// `data` is what the user's work changes and what a checker compares; `ui` is where they are looking.
"use strict";

const SVG_TAGS = new Set(["svg", "path", "circle", "rect", "line", "polyline", "polygon", "g", "text", "ellipse"]);

/** A node of the page: tag, attributes (on* are handlers) and children; text always becomes a text node. */
function h(tag, props, ...children) {
  return { tag, props: props || {}, children: children.flat(Infinity).filter((c) => c != null && c !== false) };
}

function create(vnode) {
  if (typeof vnode !== "object") return document.createTextNode(String(vnode));
  const node = SVG_TAGS.has(vnode.tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", vnode.tag)
    : document.createElement(vnode.tag);
  node._tag = vnode.tag;
  node._props = {};
  update(node, vnode);
  return node;
}

function fits(node, vnode) {
  if (typeof vnode !== "object") return node.nodeType === Node.TEXT_NODE;
  return node._tag === vnode.tag && node._props.key === vnode.props.key;
}

function update(node, vnode) {
  if (typeof vnode !== "object") {
    if (node.data !== String(vnode)) node.data = String(vnode);
    return;
  }
  const before = node._props;
  for (const name in before) if (!(name in vnode.props)) setProp(node, name, null);
  for (const name in vnode.props) {
    if (name !== "value" && name !== "checked") setProp(node, name, vnode.props[name], before[name]);
  }
  node._props = vnode.props;
  if (!vnode.props.unmanaged) sync(node, vnode.children); // else its content is the app's own business
  for (const name of ["value", "checked"]) {
    if (name in vnode.props && node[name] !== vnode.props[name]) node[name] = vnode.props[name];
  }
}

function setProp(node, name, value, before) {
  if (name.startsWith("on")) {
    node[name] = value ? (event) => (value(event), app.render()) : null;
  } else if (name === "key" || name === "unmanaged" || value === before) {
    return;
  } else if (value == null || value === false) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? "" : value);
  }
}

/** Make the children of `parent` what `vnodes` say, keeping nodes (and so focus and scroll) where they fit. */
function sync(parent, vnodes) {
  const keyOf = (node) => node && node._props && node._props.key;
  const wanted = new Set(vnodes.map((v) => v.props && v.props.key).filter((key) => key !== undefined));
  let node = parent.firstChild;
  const drop = () => {
    const next = node.nextSibling;
    node.remove();
    node = next;
  };
  for (const vnode of vnodes) {
    while (keyOf(node) !== undefined && keyOf(node) !== null && !wanted.has(keyOf(node))) drop();
    const key = vnode.props && vnode.props.key;
    const match = node && fits(node, vnode) ? node : key === undefined ? null : later(node, vnode);
    if (!match) parent.insertBefore(create(vnode), node);
    else if (match !== node) {
      parent.insertBefore(match, node);
      update(match, vnode);
    } else {
      node = node.nextSibling;
      update(match, vnode);
    }
  }
  while (node) drop();
}

/** The node among the following siblings that a keyed vnode describes. */
function later(node, vnode) {
  while (node && !fits(node, vnode)) node = node.nextSibling;
  return node;
}

const app = {
  data: {},
  ui: {},
  options: {},
  page: null,

  /** Begin once the page's scripts have run; `page` holds
   *    ui: the first view state; view(data, ui): the page; keys(event): keys pressed anywhere;
   *    ready(data, ui): after the first drawing; collect(data): before the data is read. */
  start(page) {
    app.page = page;
    document.addEventListener("DOMContentLoaded", () => {
      if (!window.APP_STATE) return document.body.append("This page needs window.APP_STATE: open it with mm_gym.");
      listen();
      app.load(window.APP_STATE);
    });
  },

  /** Show a state, whatever was shown before. */
  load({ data, options, theme }) {
    app.data = copy(data);
    app.options = copy(options || {});
    app.ui = { menu: null, toast: null, ...copy(app.page.ui) };
    applyTheme(theme || {});
    document.getElementById("root").replaceChildren();
    app.render();
    if (!app.page.ready) return;
    app.page.ready(app.data, app.ui);
    app.render();
  },

  render() {
    sync(document.getElementById("root"), h("", null, app.page.view(app.data, app.ui)).children);
    const wanted = document.querySelector("[autofocus]:not([data-focused])");
    for (const node of document.querySelectorAll("[autofocus]")) node.setAttribute("data-focused", "");
    if (wanted) wanted.focus();
  },

  /** Say in passing that something happened; gone at the next press of the mouse. */
  toast(text) {
    app.ui.toast = text;
  },

  /** The whole state, as plain data: what a checker reads. */
  getState() {
    if (app.page.collect) app.page.collect(app.data);
    return copy({ data: app.data, ui: app.ui });
  },
};
window.app = app;

const copy = (value) => JSON.parse(JSON.stringify(value));

/** What every app does with the mouse and keyboard, wherever they are. */
function listen() {
  document.addEventListener("mousedown", (event) => {
    app.ui.toast = null;
    if (app.ui.menu && !event.target.closest(".menu-host")) app.ui.menu = null;
    app.render();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && app.ui.menu) app.ui.menu = null;
    else if (app.page.keys) app.page.keys(event);
    app.render();
  });
  document.addEventListener("contextmenu", (event) => event.preventDefault());
  document.addEventListener("dragstart", (event) => event.preventDefault());
}

function applyTheme(theme) {
  const root = document.documentElement;
  for (const name of ["mode", "tone", "density", "font", "side"]) root.dataset[name] = theme[name] || "";
  for (const name of ["accent", "size", "radius"]) root.style.setProperty("--" + name, theme[name] || "");
}

// -- words and numbers ------------------------------------------------------------------------------------

const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const money = (cents) => "$" + (cents / 100).toFixed(2).replace(/\B(?=(\d{3})+(?!\d)\.)/g, ",");
const two = (n) => String(n).padStart(2, "0");
const initials = (name) =>
  name
    .split(" ")
    .map((w) => w[0])
    .join("")
    .slice(0, 2);

/** Dates are "YYYY-MM-DD" strings, counted in UTC so that no time zone moves them. */
const day = {
  parse: (text) => new Date(text + "T00:00:00Z"),
  text: (date) => date.toISOString().slice(0, 10),
  make: (year, month, dayOfMonth) => day.text(new Date(Date.UTC(year, month, dayOfMonth))),
  add: (text, n) => day.text(new Date(day.parse(text).getTime() + n * 86400000)),
  long: (text) => {
    const date = day.parse(text);
    return `${DAYS[date.getUTCDay()].slice(0, 3)}, ${date.getUTCDate()} ${MONTHS[date.getUTCMonth()].slice(0, 3)} ${date.getUTCFullYear()}`;
  },
};

/** A colour that stays the same for the same name. */
function hue(name) {
  let sum = 0;
  for (const c of name) sum = (sum * 31 + c.codePointAt(0)) % 3600;
  return (sum * 7) % 360;
}
