"use strict";
// Shows episodes: a table to filter and sort, an episode as a conversation or as tokens, two runs side by side.
// All text of episodes is put in as text (textContent), never as markup.

const COLUMNS = [
  ["number", "#"], ["run", "run"], ["env_id", "environment"], ["task_id", "task"], ["step", "step"],
  ["reward", "reward"], ["success", "solved"], ["stop_reason", "stop reason"], ["turns", "turns"],
  ["tools", "tools"], ["error", "error"],
];
const PAGE = 200;
const state = { rows: [], sort: "number", up: true, shown: PAGE, view: "chat" };

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

// -- where the data comes from: embedded in the page, or served -----------------------------------------

const embedded = document.getElementById("data");
const source = embedded ? JSON.parse(embedded.textContent) : null;

async function summaries() {
  return source ? source.rows : (await fetch("api/rows")).json();
}
async function detail(number) {
  if (source) return source.details[number];
  return (await fetch("api/episode/" + number)).json();
}
function pictureUrl(digest) {
  return source ? source.images[digest] : "api/image/" + digest;
}

// -- the table -------------------------------------------------------------------------------------------

function text(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : value.toFixed(3);
  return String(value);
}

function filtered() {
  const words = document.getElementById("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = ["stop_reason", "success", "run"].map((key) => [key, document.getElementById(key).value]);
  const rows = state.rows.filter((row) =>
    chosen.every(([key, value]) => !value || text(row[key]) === value) &&
    words.every((word) => row.searched.includes(word)));
  const order = state.up ? 1 : -1;
  return rows.sort((a, b) => order * compare(a[state.sort], b[state.sort]) || a.number - b.number);
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (a === null || a === undefined) return b === null || b === undefined ? 0 : -1;
  if (b === null || b === undefined) return 1;
  return text(a) < text(b) ? -1 : text(a) > text(b) ? 1 : 0;
}

function showTable() {
  const rows = filtered();
  const columns = COLUMNS.filter(([key]) => state.used.has(key));
  const head = element("tr", {}, ...columns.map(([key, title]) => element("th", {
    class: (state.sort === key ? (state.up ? "up" : "down") : "") + (numeric(key) ? " number" : ""),
    onclick: () => { state.up = state.sort === key ? !state.up : true; state.sort = key; showTable(); },
  }, title)));
  const body = element("tbody", {}, ...rows.slice(0, state.shown).map((row) => element("tr", {
    onclick: () => { location.hash = "#episode/" + row.number; },
  }, ...columns.map(([key]) => cell(key, row[key])))));
  const solved = rows.filter((row) => row.success).length;
  const share = rows.length ? ` · ${solved} solved (${(100 * solved / rows.length).toFixed(1)}%)` : "";
  const main = document.querySelector("main");
  main.replaceChildren(
    element("p", { class: "soft", id: "count" }, `${rows.length} of ${state.rows.length} episodes${share}`),
    element("table", {}, element("thead", {}, head), body));
  if (rows.length > state.shown) {
    main.append(element("p", {}, element("button", {
      onclick: () => { state.shown += 5 * PAGE; showTable(); },
    }, `show more (${rows.length - state.shown} left)`)));
  }
}

function numeric(key) {
  return state.rows.some((row) => typeof row[key] === "number");
}

function cell(key, value) {
  const shown = text(value);
  const tone = key === "success" ? (value ? "good" : "bad") : key === "error" && value ? "bad" : "";
  return element("td", { class: (typeof value === "number" ? "number " : "") + tone, title: shown }, shown);
}

// -- an episode --------------------------------------------------------------------------------------------

async function showEpisode(number) {
  const row = state.rows.find((one) => one.number === number);
  const main = document.querySelector("main");
  if (!row) { main.replaceChildren(element("p", {}, "There is no episode " + number + ".")); return; }
  const same = state.rows.filter((one) => one.run !== row.run && one.env_id === row.env_id &&
    one.task_id === row.task_id && one.seed === row.seed);
  const shown = [row, ...same.slice(0, 1)];
  const details = await Promise.all(shown.map((one) => detail(one.number)));
  const hasTokens = details.some((one) => one.tokens);
  if (!hasTokens) state.view = "chat";
  const switches = element("p", {},
    element("button", { onclick: () => { location.hash = ""; } }, "← all episodes"), " ",
    element("button", { onclick: () => step(number, -1), title: "previous (k)" }, "‹"), " ",
    element("button", { onclick: () => step(number, 1), title: "next (j)" }, "›"), " ",
    ...(hasTokens ? ["chat", "tokens"].flatMap((view) => [element("button", {
      class: state.view === view ? "on" : "",
      onclick: () => { state.view = view; showEpisode(number); },
    }, view), " "]) : []));
  main.replaceChildren(switches, element("div", { class: "pair" },
    ...shown.map((one, i) => episode(one, details[i]))));
  scrollTo(0, 0);
}

function step(number, by) {
  const rows = filtered();
  const at = rows.findIndex((row) => row.number === number);
  const next = rows[at + by];
  if (next) location.hash = "#episode/" + next.number;
}

function episode(row, data) {
  const verdict = element("span", { class: row.success ? "good" : "bad" }, row.success ? "solved" : "not solved");
  const facts = [row.run, "reward " + (row.reward === null ? "none (masked)" : text(row.reward)), row.stop_reason,
    row.turns + " turns", row.step !== null && row.step !== undefined ? "step " + row.step : ""];
  return element("section", { class: "episode" },
    element("h2", {}, `${row.env_id} · ${row.task_id}`),
    element("p", { class: "soft" }, verdict, " · " + facts.filter(Boolean).join(" · ")),
    ...(state.view === "tokens" && data.tokens ? tokens(data.tokens) : conversation(data)));
}

function conversation(data) {
  let turn = 0;
  let lastPicture = null;
  const shown = data.messages.map((message) => {
    const parts = [];
    const notes = [];
    if (message.role === "assistant") {
      const info = data.turns[turn] || {};
      turn += 1;
      notes.push(`turn ${turn}`, `reward ${text(info.reward)}`);
      for (const [phase, seconds] of Object.entries(info.seconds || {})) notes.push(`${phase} ${seconds.toFixed(2)} s`);
      for (const [kind, count] of Object.entries(info.retries || {})) notes.push(`retried ${count}: ${kind}`);
      parts.push(...(info.tool_calls || []).map((call) => element("span", { class: "call " + call.status },
        `${call.name}(${JSON.stringify(call.arguments)}) ${call.status}`)));
      if (info.error) parts.push(element("p", { class: "bad" }, `${info.error.kind}: ${info.error.text}`));
      const points = (info.tool_calls || []).map((call) => call.points || []).filter((list) => list.length);
      if (lastPicture && points.length) lastPicture.mark(points);
    }
    const blocks = message.content.map((block) => {
      if (block.type === "text") return element("pre", {}, block.text);
      lastPicture = picture(data.images[block.index]);
      return lastPicture.node;
    });
    const role = element("div", { class: "role" }, element("b", {}, message.role),
      [message.name ? " " + message.name : "", ...notes].filter(Boolean).join(" · ").replace(/^(?=[^ ])/, " · "));
    return element("div", { class: "message " + message.role }, role, ...blocks, ...parts);
  });
  return shown;
}

function picture(digest) {
  const image = element("img", { src: pictureUrl(digest), alt: "picture", loading: "lazy" });
  const node = element("figure", {}, image);
  image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth < 160));
  return {
    node,
    mark(paths) {
      const draw = () => node.append(overlay(paths, image.naturalWidth, image.naturalHeight));
      if (image.complete && image.naturalWidth) draw(); else image.addEventListener("load", draw, { once: true });
    },
  };
}

function overlay(paths, width, height) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const shape = (name, attributes) => {
    const node = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    svg.append(node);
  };
  const radius = Math.max(3, width / 60);
  const stroke = { fill: "none", stroke: "#e11d48", "stroke-width": radius / 2.5 };
  for (const path of paths) {
    if (path.length > 1) shape("polyline", { points: path.map((p) => p.join(",")).join(" "), ...stroke });
    const [x, y] = path[path.length - 1];
    shape("circle", { cx: x, cy: y, r: radius, ...stroke });
    shape("circle", { cx: x, cy: y, r: radius / 4, fill: "#e11d48" });
  }
  return svg;
}

function tokens(data) {
  const line = element("div", { class: "tokens" });
  for (let i = 0; i < data.text.length; i += 1) {
    const sampled = data.mask[i] === 1;
    let count = 1; // neighbours that are alike and given are shown once: a picture's pads, above all
    while (!sampled && data.mask[i + count] === 0 && data.ids[i + count] === data.ids[i]) count += 1;
    const shown = count > 2 ? `${data.text[i]}×${count} ` : data.text[i].repeat(count);
    const span = element("span", { class: sampled ? "sampled" : "given" }, shown);
    span.title = sampled ? `id ${data.ids[i]}, log-prob ${data.logprobs[i].toFixed(4)}` : `id ${data.ids[i]}, not sampled`;
    if (sampled) span.style.background = colour(data.logprobs[i]);
    line.append(span);
    i += count - 1;
  }
  const legend = element("p", { class: "legend" }, "grey: given (mask 0); sampled, by probability:");
  for (const [probability, name] of [[1, "1"], [0.3, "0.3"], [0.05, "0.05"], [0.001, "0.001"]]) {
    const swatch = element("i");
    swatch.style.background = colour(Math.log(probability));
    legend.append(swatch, name);
  }
  return [legend, line];
}

function colour(logprob) {
  const share = Math.max(0, Math.min(1, 1 + logprob / 7)); // log-prob 0 is green, -7 is red
  return `hsl(${Math.round(130 * share)} 75% 80%)`;
}

// -- start ---------------------------------------------------------------------------------------------------

function options(id, key) {
  const select = document.getElementById(id);
  const values = [...new Set(state.rows.map((row) => text(row[key])))].sort();
  select.append(...values.map((value) => element("option", { value }, value || "(none)")));
  select.hidden = values.length < 2;
  select.addEventListener("change", () => { state.shown = PAGE; route(); });
}

function route() {
  const match = location.hash.match(/^#episode\/(\d+)$/);
  if (match) showEpisode(Number(match[1])); else showTable();
}

async function start() {
  state.rows = await summaries();
  state.used = new Set(COLUMNS.map(([key]) => key).filter((key) =>
    key === "number" || new Set(state.rows.map((row) => text(row[key]))).size > 1 ||
    ["task_id", "reward", "success"].includes(key)));
  for (const row of state.rows) row.searched = COLUMNS.map(([key]) => text(row[key])).join(" ").toLowerCase();
  for (const key of ["stop_reason", "success", "run"]) options(key, key);
  document.getElementById("filter").addEventListener("input", () => { state.shown = PAGE; location.hash = ""; showTable(); });
  addEventListener("hashchange", route);
  addEventListener("keydown", (event) => {
    const match = location.hash.match(/^#episode\/(\d+)$/);
    if (!match || event.target.tagName === "INPUT") return;
    if (event.key === "j") step(Number(match[1]), 1);
    if (event.key === "k") step(Number(match[1]), -1);
    if (event.key === "Escape") location.hash = "";
  });
  if (state.rows.length === 1 && !location.hash) location.hash = "#episode/" + state.rows[0].number;
  route();
}

start();
