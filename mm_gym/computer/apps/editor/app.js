// A text editor on the browser's own editing: the document lives in the page, and data.blocks is read back from it.
//   block: {kind: "p" | "h1" | "h2" | "li" | "quote", align: "" | "center" | "right", runs: [{text, marks: "biu" subset}]}
"use strict";

const TAGS = { p: "P", h1: "H1", h2: "H2", quote: "BLOCKQUOTE", li: "LI" };
const KIND_OF = { P: "p", DIV: "p", H1: "h1", H2: "h2", BLOCKQUOTE: "quote", LI: "li" };
const STYLES = [
  { value: "p", label: "Text" },
  { value: "h1", label: "Title" },
  { value: "h2", label: "Heading" },
  { value: "quote", label: "Quote" },
];

app.start({
  ui: { style: "p", marks: "", finding: false, find: "", replace: "", hits: 0 },
  ready: (data) => {
    fill(data);
    document.execCommand("defaultParagraphSeparator", false, "p");
    document.addEventListener("selectionchange", track);
  },
  collect: (data) => {
    data.blocks = read();
  },
  keys: (event) => {
    const key = event.key.toLowerCase(),
      name = { b: "bold", i: "italic", u: "underline" }[key];
    if (!event.ctrlKey || event.target.tagName === "INPUT") return;
    if (name) {
      event.preventDefault();
      document.execCommand(name);
    }
    if (key === "f" || key === "h") {
      event.preventDefault();
      app.ui.finding = true;
    }
  },
  view: (data, ui) => [
    h(
      "header",
      { class: "topbar" },
      h("div", { class: "brand" }, icon("draft"), app.options.brand),
      h("span", { class: "muted clip grow" }, app.options.file),
      button("Find", {
        k: "find-open",
        kind: "quiet",
        icon: "search",
        onclick: () => {
          ui.finding = !ui.finding;
        },
      }),
    ),
    h(
      "div",
      {
        class: "tools",
        onmousedown: (event) => {
          if (event.target.tagName !== "INPUT") event.preventDefault();
        },
      }, // the text keeps its selection
      select({
        k: "style",
        value: ui.style,
        options: STYLES,
        label: "Style",
        onchange: (v) => {
          run("formatBlock", TAGS[v]);
        },
      }),
      [
        ["bold", "b"],
        ["italic", "i"],
        ["underline", "u"],
      ].map(([name, mark]) =>
        button("", {
          k: name,
          kind: "quiet",
          icon: name,
          title: name[0].toUpperCase() + name.slice(1),
          pressed: ui.marks.includes(mark),
          onclick: () => run(name),
        }),
      ),
      h("span", { class: "bar" }),
      [
        ["left", "justifyLeft"],
        ["center", "justifyCenter"],
        ["right", "justifyRight"],
      ].map(([name, command]) =>
        button("", {
          k: "align:" + name,
          kind: "quiet",
          icon: name,
          title: "Align " + name,
          onclick: () => run(command),
        }),
      ),
      h("span", { class: "bar" }),
      button("", {
        k: "list",
        kind: "quiet",
        icon: "list",
        title: "Bulleted list",
        onclick: () => run("insertUnorderedList"),
      }),
      button("", { k: "undo", kind: "quiet", icon: "undo", title: "Undo", onclick: () => run("undo") }),
    ),
    ui.finding && finder(ui),
    h(
      "div",
      { class: "scroll grow desk", key: "desk", "data-k": "desk" },
      h("div", {
        id: "paper",
        class: "paper",
        contenteditable: "true",
        spellcheck: "false",
        unmanaged: true,
        "aria-label": "Document",
        role: "textbox",
      }),
    ),
    h(
      "footer",
      { class: "status muted" },
      h("span", null, `${words()} words`),
      h("span", null, STYLES.find((s) => s.value === ui.style)?.label || "List"),
    ),
    toastView(ui),
  ],
});

const paper = () => document.getElementById("paper");
const words = () => (paper() ? paper().innerText.split(/\s+/).filter(Boolean).length : 0);

function run(command, value) {
  paper().focus();
  document.execCommand("styleWithCSS", false, false);
  document.execCommand(command, false, value);
  track();
}

function fill(data) {
  let list = null;
  for (const [index, block] of data.blocks.entries()) {
    const node = document.createElement(TAGS[block.kind]);
    node.dataset.k = "block:" + index;
    if (block.align) node.style.textAlign = block.align;
    for (const run of block.runs) node.append(marked(run));
    if (block.kind !== "li") {
      paper().append(node);
      list = null;
      continue;
    }
    if (!list) paper().append((list = document.createElement("ul")));
    list.append(node);
  }
}

function marked({ text, marks }) {
  let node = document.createTextNode(text);
  for (const mark of marks) {
    const outer = document.createElement(mark);
    outer.append(node);
    node = outer;
  }
  return node;
}

/** The document as data: adjoining runs of equal marks joined, outer spaces cut, empty blocks left out. */
function read() {
  const blocks = [];
  const visit = (node) => {
    const kind = KIND_OF[node.tagName];
    if (kind && ![...node.children].some((c) => KIND_OF[c.tagName] || c.tagName === "UL")) {
      const runs = runsOf(node);
      if (runs.length)
        blocks.push({
          kind,
          align: ["center", "right"].find((a) => getComputedStyle(node).textAlign === a) || "",
          runs,
        });
    } else for (const child of node.children) visit(child);
  };
  if (paper()) visit(paper());
  return blocks;
}

function runsOf(block) {
  const runs = [],
    walk = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const host = walk.currentNode.parentElement,
      style = getComputedStyle(host);
    const marks =
      (Number(style.fontWeight) >= 600 && !/^H/.test(block.tagName) ? "b" : "") +
      (style.fontStyle === "italic" && block.tagName !== "BLOCKQUOTE" ? "i" : "") +
      (host.closest("u") ? "u" : "");
    const text = walk.currentNode.data.replace(/\u00a0/g, " "),
      last = runs[runs.length - 1];
    if (last && last.marks === marks) last.text += text;
    else if (text) runs.push({ text, marks });
  }
  if (runs.length) {
    runs[0].text = runs[0].text.trimStart();
    runs[runs.length - 1].text = runs[runs.length - 1].text.trimEnd();
  }
  return runs.filter((r) => r.text);
}

/** Show in the tools what the selection is. */
function track() {
  const selection = getSelection();
  if (!selection.anchorNode || !paper().contains(selection.anchorNode)) return;
  const block = selection.anchorNode.parentElement.closest("p, h1, h2, li, blockquote");
  app.ui.style = block ? KIND_OF[block.tagName] : "p";
  app.ui.marks = [
    ["bold", "b"],
    ["italic", "i"],
    ["underline", "u"],
  ]
    .filter(([c]) => document.queryCommandState(c))
    .map(([, m]) => m)
    .join("");
  app.render();
}

function finder(ui) {
  const count = ui.find ? paper().innerText.split(ui.find).length - 1 : 0;
  const all = () => {
    if (!ui.find) return;
    const walk = document.createTreeWalker(paper(), NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) walk.currentNode.data = walk.currentNode.data.split(ui.find).join(ui.replace);
    app.toast(`${count} replaced`);
  };
  return h(
    "div",
    { class: "finder", key: "finder" },
    input({ ...bound(ui, "find"), placeholder: "Find", label: "Find", focus: true }),
    input({ ...bound(ui, "replace"), placeholder: "Replace with", label: "Replace with" }),
    h("span", { class: "muted" }, `${count} found`),
    button("Replace all", { k: "replace-all", kind: "primary", onclick: all }),
    button("", {
      k: "find-close",
      kind: "quiet",
      icon: "close",
      title: "Close",
      onclick: () => {
        ui.finding = false;
      },
    }),
  );
}
