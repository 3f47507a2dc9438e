// Spreadsheet: cells, formulas, formats. data.cells maps "B3" to what was typed; data.formats to {bold, fill}.
"use strict";

const COLUMNS = "ABCDEFGHIJKLMN".split(""),
  ROWS = 30;
const FILLS = { yellow: "#ffe066", green: "#b2f2bb", red: "#ffc9c9", blue: "#a5d8ff" };
const ref = (c, r) => COLUMNS[c] + r;
const place = (name) => [COLUMNS.indexOf(name[0]), Number(name.slice(1))];

app.start({
  ui: { at: "A1", to: "A1", editing: null },
  keys: (event) => typed(event),
  view: (data, ui) => [
    h(
      "header",
      { class: "topbar" },
      h("div", { class: "brand" }, icon("sheet"), app.options.brand),
      h("span", { class: "muted clip grow" }, app.options.file),
      tools(data, ui),
    ),
    h(
      "div",
      { class: "formula" },
      h("b", { "data-k": "address" }, ui.at === ui.to ? ui.at : `${ui.at}:${ui.to}`),
      h("span", { class: "muted" }, "fx"),
      input({
        k: "formula",
        value: ui.editing ?? data.cells[ui.at] ?? "",
        label: "Formula",
        cls: "plain",
        oninput: (v) => {
          ui.editing = v;
        },
        onenter: () => commit(data, ui, 0, 1),
      }),
    ),
    h(
      "div",
      { class: "scroll grow sheet", "data-k": "sheet" },
      h(
        "table",
        null,
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            h("th", { class: "corner" }),
            COLUMNS.map((c) => h("th", { class: inRange(ui, c, null) ? "on" : "" }, c)),
          ),
        ),
        h("tbody", null, rows(data, ui)),
      ),
    ),
    h(
      "footer",
      { class: "status" },
      h("span", null, app.options.tab),
      h("span", { class: "muted" }, summary(data, ui)),
    ),
    toastView(ui),
  ],
});

function bounds(ui) {
  const [c1, r1] = place(ui.at),
    [c2, r2] = place(ui.to);
  return [Math.min(c1, c2), Math.min(r1, r2), Math.max(c1, c2), Math.max(r1, r2)];
}

function inRange(ui, c, r) {
  const [c1, r1, c2, r2] = bounds(ui),
    i = COLUMNS.indexOf(c);
  return i >= c1 && i <= c2 && (r === null || (r >= r1 && r <= r2));
}

function selected(ui) {
  const [c1, r1, c2, r2] = bounds(ui),
    out = [];
  for (let r = r1; r <= r2; r++) for (let c = c1; c <= c2; c++) out.push(ref(c, r));
  return out;
}

function rows(data, ui) {
  const out = [];
  for (let r = 1; r <= ROWS; r++) {
    out.push(
      h(
        "tr",
        null,
        h("th", { class: inRange(ui, ui.at[0], r) ? "on" : "" }, r),
        COLUMNS.map((c) => cell(data, ui, c + r, c, r)),
      ),
    );
  }
  return out;
}

function cell(data, ui, name, c, r) {
  const format = data.formats[name] || {},
    shown = ui.editing != null && ui.at === name ? ui.editing : display(data, name);
  const number = shown !== "" && !Number.isNaN(Number(shown));
  return h(
    "td",
    {
      "data-k": "cell:" + name,
      class: `${inRange(ui, c, r) ? "range" : ""} ${ui.at === name ? "active" : ""} ${number ? "number" : ""} ${format.bold ? "bold" : ""} ${format.fill ? "filled" : ""}`,
      style: format.fill ? `--fill:${FILLS[format.fill]}` : null,
      onmousedown: (event) => {
        if (event.button !== 0) return;
        event.preventDefault();
        if (document.activeElement) document.activeElement.blur();
        keep(data, ui);
        if (event.shiftKey) ui.to = name;
        else ui.at = ui.to = name;
        follow({ move: (x, y) => reach(ui, x, y), drop: (x, y) => reach(ui, x, y) });
      },
      ondblclick: () => {
        ui.editing = data.cells[name] ?? "";
      },
    },
    shown,
  );
}

function reach(ui, x, y) {
  const node = document.elementFromPoint(x, y)?.closest("td");
  if (node) ui.to = node.dataset.k.slice(5);
}

/** Store what is being typed. */
function keep(data, ui) {
  if (ui.editing === null) return;
  let text = ui.editing.trim();
  if (text.startsWith("=")) text = text.toUpperCase().replace(/\s+/g, "");
  if (text) data.cells[ui.at] = text;
  else delete data.cells[ui.at];
  ui.editing = null;
}

function go(ui, dc, dr, extend) {
  const [c, r] = place(extend ? ui.to : ui.at);
  const name = ref(Math.max(0, Math.min(COLUMNS.length - 1, c + dc)), Math.max(1, Math.min(ROWS, r + dr)));
  ui.to = name;
  if (!extend) ui.at = name;
  requestAnimationFrame(() =>
    document.querySelector(`[data-k="cell:${name}"]`)?.scrollIntoView({ block: "nearest", inline: "nearest" }),
  );
}

function commit(data, ui, dc, dr) {
  keep(data, ui);
  if (document.activeElement) document.activeElement.blur();
  go(ui, dc, dr);
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function typed(event) {
  const { data, ui } = app,
    key = event.key;
  if (event.target.tagName === "INPUT") return;
  if (event.ctrlKey && key.toLowerCase() === "b") toggleBold(data, ui);
  else if (event.ctrlKey || event.altKey || event.metaKey) return;
  else if (ARROWS[key]) {
    keep(data, ui);
    go(ui, ...ARROWS[key], event.shiftKey);
  } else if (key === "Enter") commit(data, ui, 0, 1);
  else if (key === "Tab") commit(data, ui, event.shiftKey ? -1 : 1, 0);
  else if (key === "Escape") ui.editing = null;
  else if (key === "F2") ui.editing = data.cells[ui.at] ?? "";
  else if (key === "Backspace" && ui.editing !== null) ui.editing = ui.editing.slice(0, -1);
  else if (key === "Delete" || key === "Backspace") for (const name of selected(ui)) delete data.cells[name];
  else if (key.length === 1) ui.editing = (ui.editing ?? "") + key;
  else return;
  event.preventDefault();
}

// -- formats ----------------------------------------------------------------------------------------------

function setFormat(data, names, change) {
  for (const name of names) {
    const format = { ...data.formats[name], ...change };
    for (const key of Object.keys(format)) if (!format[key]) delete format[key];
    if (Object.keys(format).length) data.formats[name] = format;
    else delete data.formats[name];
  }
}

function toggleBold(data, ui) {
  const names = selected(ui);
  setFormat(data, names, { bold: !names.every((n) => data.formats[n]?.bold) });
}

function tools(data, ui) {
  const fill = (color) => {
    keep(data, ui);
    setFormat(data, selected(ui), { fill: color });
  };
  return h(
    "div",
    { class: "row" },
    button("", {
      k: "bold",
      kind: "quiet",
      icon: "bold",
      title: "Bold",
      pressed: !!data.formats[ui.at]?.bold,
      onclick: () => {
        keep(data, ui);
        toggleBold(data, ui);
      },
    }),
    menu({
      k: "fill",
      button: { icon: "palette", kind: "quiet", title: "Fill colour" },
      align: "end",
      items: [
        ...Object.keys(FILLS).map((c) => ({ k: "fill:" + c, label: c, onclick: () => fill(c) })),
        null,
        { k: "fill:none", label: "No fill", onclick: () => fill(null) },
      ],
    }),
    button("Σ", { k: "sum", kind: "quiet", title: "Sum of the selection", onclick: () => total(data, ui) }),
    menu({
      k: "sort",
      button: { icon: "sort", kind: "quiet", title: "Sort the table" },
      align: "end",
      items: [
        { k: "sort:up", label: "Sort by this column, A to Z", onclick: () => sortRows(data, ui, 1) },
        { k: "sort:down", label: "Sort by this column, Z to A", onclick: () => sortRows(data, ui, -1) },
      ],
    }),
  );
}

/** Put the sum of the selected column part below it. */
function total(data, ui) {
  const [c1, r1, c2, r2] = bounds(ui);
  if (c1 === c2 && r2 < ROWS) data.cells[ref(c1, r2 + 1)] = `=SUM(${ref(c1, r1)}:${ref(c1, r2)})`;
}

/** Sort the rows below the heading (row 1), down to the first empty one, by the active column. */
function sortRows(data, ui, sign) {
  let last = 1;
  while (last < ROWS && data.cells["A" + (last + 1)] !== undefined) last += 1;
  const lines = [];
  for (let r = 2; r <= last; r++) lines.push(COLUMNS.map((c) => [data.cells[c + r], data.formats[c + r]]));
  const column = COLUMNS.indexOf(ui.at[0]),
    key = (line) => line[column][0] ?? "";
  const both = (a, b) => (Number.isNaN(Number(a)) || Number.isNaN(Number(b)) ? (a < b ? -1 : a > b ? 1 : 0) : a - b);
  lines.sort((a, b) => sign * both(key(a), key(b)));
  lines.forEach((line, i) =>
    line.forEach(([text, format], c) => {
      const name = ref(c, i + 2);
      if (text === undefined) delete data.cells[name];
      else data.cells[name] = text;
      if (format === undefined) delete data.formats[name];
      else data.formats[name] = format;
    }),
  );
}

// -- formulas: numbers, references, + - * / ( ), and functions over ranges ---------------------------------

const FUNCTIONS = {
  SUM: (v) => v.reduce((a, b) => a + b, 0),
  AVERAGE: (v) => v.reduce((a, b) => a + b, 0) / v.length,
  MIN: (v) => Math.min(...v),
  MAX: (v) => Math.max(...v),
  COUNT: (v) => v.length,
};

function display(data, name, depth = 0) {
  const text = data.cells[name] ?? "";
  if (!text.startsWith("=")) return text;
  try {
    const value = evaluate(data, text.slice(1), depth);
    return Number.isFinite(value) ? String(Math.round(value * 100) / 100) : "#ERR";
  } catch {
    return "#ERR";
  }
}

function evaluate(data, source, depth) {
  if (depth > 20) throw new Error("circular");
  const tokens = source.match(/[A-J]\d+|[A-Z]+|\d+(\.\d+)?|[-+*/():,]/g) || [];
  if (tokens.join("") !== source) throw new Error("syntax");
  let i = 0;
  const take = (want) => {
    if (tokens[i] !== want) throw new Error("syntax");
    i += 1;
  };
  const value = (name) => Number(display(data, name, depth + 1)) || 0;
  const range = () => {
    const names = [tokens[i++]];
    if (tokens[i] === ":") {
      i += 1;
      names.push(tokens[i++]);
    }
    const cells = names.length === 2 ? selected({ at: names[0], to: names[1] }) : names;
    return cells
      .map((n) => display(data, n, depth + 1))
      .filter((t) => t !== "" && !Number.isNaN(Number(t)))
      .map(Number);
  };
  const atom = () => {
    const t = tokens[i++];
    if (t === "-") return -atom();
    if (t === "(") {
      const v = sum();
      take(")");
      return v;
    }
    if (FUNCTIONS[t]) {
      take("(");
      const values = range();
      while (tokens[i] === ",") {
        i += 1;
        values.push(...range());
      }
      take(")");
      return FUNCTIONS[t](values);
    }
    if (/^[A-J]\d/.test(t || "")) return value(t);
    if (t === undefined || Number.isNaN(Number(t))) throw new Error("syntax");
    return Number(t);
  };
  const product = () => {
    let v = atom();
    while (tokens[i] === "*" || tokens[i] === "/") v = tokens[i++] === "*" ? v * atom() : v / atom();
    return v;
  };
  const sum = () => {
    let v = product();
    while (tokens[i] === "+" || tokens[i] === "-") v = tokens[i++] === "+" ? v + product() : v - product();
    return v;
  };
  const result = sum();
  if (i !== tokens.length) throw new Error("syntax");
  return result;
}

function summary(data, ui) {
  const numbers = selected(ui)
    .map((n) => display(data, n))
    .filter((t) => t !== "" && !Number.isNaN(Number(t)))
    .map(Number);
  return numbers.length > 1 ? `Count ${numbers.length}` : "Ready";
}
