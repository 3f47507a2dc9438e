// File manager: a tree of folders. data.nodes maps ids to {name, kind, parent, size}; the root is "root".
"use strict";

const KIND_ICONS = { folder: "folder", text: "file", image: "image", music: "music", sheet: "sheet" };

app.start({
  ui: {
    folder: "root",
    picked: [],
    query: "",
    naming: null,
    text: "",
    clip: null,
    context: null,
    asking: false,
    held: null,
  },
  keys: (event) => {
    if (event.target.tagName === "INPUT") return;
    if (event.key === "F2" && app.ui.picked.length === 1) rename(app.data, app.ui);
    if (event.key === "Delete" && app.ui.picked.length) app.ui.asking = true;
    if (event.key === "Escape") app.ui.context = null;
  },
  view: (data, ui) => [
    h(
      "header",
      { class: "topbar" },
      h("div", { class: "brand" }, icon("folder"), app.options.brand),
      h(
        "nav",
        { class: "crumbs grow" },
        trail(data, ui.folder).map((id, i) => [
          i > 0 && h("span", { class: "muted" }, "›"),
          button(name(data, id), { k: "crumb:" + id, kind: "quiet", onclick: () => enter(ui, id) }),
        ]),
      ),
      h(
        "div",
        { class: "search" },
        icon("search"),
        input({
          k: "search",
          value: ui.query,
          placeholder: "Search everywhere",
          label: "Search",
          oninput: (v) => {
            ui.query = v;
            ui.picked = [];
          },
        }),
      ),
    ),
    tools(data, ui),
    h(
      "div",
      { class: "body" },
      h("nav", { class: "side", "data-k": "tree" }, tree(data, ui, "root", 0)),
      h(
        "main",
        {
          class: "main",
          onmousedown: (event) => {
            ui.context = null;
            if (event.target.classList.contains("list")) ui.picked = [];
          },
        },
        listing(data, ui),
      ),
    ),
    ui.naming && nameDialog(data, ui),
    ui.asking && askDialog(data, ui),
    ui.context && contextMenu(data, ui),
    toastView(ui),
  ],
});

const name = (data, id) => (id === "root" ? app.options.home : data.nodes[id].name);
const trail = (data, id) => (id === "root" ? ["root"] : [...trail(data, data.nodes[id].parent), id]);
const children = (data, id) =>
  Object.keys(data.nodes)
    .filter((k) => data.nodes[k].parent === id)
    .sort(
      (a, b) =>
        (data.nodes[b].kind === "folder") - (data.nodes[a].kind === "folder") ||
        (data.nodes[a].name < data.nodes[b].name ? -1 : 1),
    );

function enter(ui, id) {
  Object.assign(ui, { folder: id, picked: [], query: "" });
}

function tools(data, ui) {
  const one = ui.picked.length === 1,
    any = ui.picked.length > 0;
  return h(
    "div",
    { class: "tools" },
    button("New folder", {
      k: "new",
      icon: "plus",
      onclick: () => {
        ui.naming = "new";
        ui.text = "";
      },
    }),
    button("Rename", { k: "rename", kind: "quiet", icon: "edit", disabled: !one, onclick: () => rename(data, ui) }),
    button("Cut", {
      k: "cut",
      kind: "quiet",
      icon: "move",
      disabled: !any,
      onclick: () => {
        ui.clip = { cut: true, ids: ui.picked };
        app.toast("Ready to move");
      },
    }),
    button("Copy", {
      k: "copy",
      kind: "quiet",
      icon: "copy",
      disabled: !any,
      onclick: () => {
        ui.clip = { cut: false, ids: ui.picked };
        app.toast("Copied");
      },
    }),
    button("Paste", { k: "paste", kind: "quiet", icon: "archive", disabled: !ui.clip, onclick: () => paste(data, ui) }),
    button("Delete", {
      k: "delete",
      kind: "quiet",
      icon: "trash",
      disabled: !any,
      onclick: () => {
        ui.asking = true;
      },
    }),
  );
}

function tree(data, ui, id, depth) {
  return [
    h(
      "button",
      {
        class: `nav ${ui.folder === id ? "on" : ""}`,
        style: `padding-left:${8 + depth * 12}px`,
        "data-k": "tree:" + id,
        "data-drop": id,
        onclick: () => enter(ui, id),
      },
      icon(id === "root" ? "home" : "folder"),
      h("span", { class: "clip" }, name(data, id)),
    ),
    children(data, id)
      .filter((k) => data.nodes[k].kind === "folder")
      .map((k) => tree(data, ui, k, depth + 1)),
  ];
}

function listing(data, ui) {
  const words = ui.query.trim().toLowerCase();
  const ids = words
    ? Object.keys(data.nodes).filter((k) => data.nodes[k].name.toLowerCase().includes(words))
    : children(data, ui.folder);
  return [
    h(
      "div",
      { class: "heads muted" },
      h("span", { class: "grow" }, words ? `Found: ${ids.length}` : "Name"),
      h("span", { class: "kind" }, "Kind"),
      h("span", { class: "size" }, "Size"),
    ),
    h(
      "div",
      { class: "scroll grow list", "data-k": "list", key: ui.folder + words },
      ids.map((id) => row(data, ui, id)),
      ids.length === 0 && empty("folder", "This folder is empty"),
    ),
  ];
}

function row(data, ui, id) {
  const node = data.nodes[id],
    held = ui.held && ui.held.id === id;
  return h(
    "div",
    {
      class: `item ${ui.picked.includes(id) ? "on" : ""} ${held ? "held" : ""}`,
      key: id,
      "data-k": "node:" + id,
      "data-drop": node.kind === "folder" && !held ? id : null,
      style: held ? `transform:translate(${ui.held.dx}px,${ui.held.dy}px)` : null,
      onmousedown: (event) => pickUp(event, data, ui, id),
      ondblclick: () => {
        if (node.kind === "folder") enter(ui, id);
      },
      oncontextmenu: (event) => {
        if (!ui.picked.includes(id)) ui.picked = [id];
        ui.context = [event.clientX, event.clientY];
      },
    },
    icon(KIND_ICONS[node.kind], node.kind),
    h("span", { class: "grow clip" }, node.name),
    h("span", { class: "kind muted" }, node.kind),
    h("span", { class: "size muted" }, node.size ? node.size + " KB" : "–"),
  );
}

function pickUp(event, data, ui, id) {
  if (event.button !== 0) return;
  ui.picked = event.ctrlKey
    ? ui.picked.includes(id)
      ? ui.picked.filter((x) => x !== id)
      : [...ui.picked, id]
    : ui.picked.includes(id)
      ? ui.picked
      : [id];
  const from = [event.clientX, event.clientY];
  follow({
    move: (x, y) => {
      if (ui.held || Math.hypot(x - from[0], y - from[1]) > 6) ui.held = { id, dx: x - from[0], dy: y - from[1] };
    },
    drop: (x, y) => {
      const target = ui.held && dropAt(x, y);
      if (!ui.held && !event.ctrlKey) ui.picked = [id];
      ui.held = null;
      if (target && data.nodes[id].parent !== target) transfer(data, ui, ui.picked, target, true);
    },
  });
}

/** Move or copy nodes into a folder; a folder never goes into itself. */
function transfer(data, ui, ids, target, cut) {
  const up = trail(data, target);
  for (const id of ids) {
    if (up.includes(id)) continue;
    if (cut) data.nodes[id].parent = target;
    else data.nodes[fresh(data)] = { ...data.nodes[id], parent: target };
  }
  ui.picked = [];
  app.toast(cut ? "Moved" : "Pasted");
}

const fresh = (data) => "new" + (Object.keys(data.nodes).filter((k) => k.startsWith("new")).length + 1);

function paste(data, ui) {
  transfer(
    data,
    ui,
    ui.clip.ids.filter((id) => data.nodes[id]),
    ui.folder,
    ui.clip.cut,
  );
  if (ui.clip.cut) ui.clip = null;
}

function rename(data, ui) {
  ui.naming = ui.picked[0];
  ui.text = data.nodes[ui.picked[0]].name;
}

function nameDialog(data, ui) {
  const close = () => {
    ui.naming = null;
  };
  const save = () => {
    const text = ui.text.trim();
    if (!text) return;
    if (ui.naming === "new") data.nodes[fresh(data)] = { name: text, kind: "folder", parent: ui.folder, size: 0 };
    else data.nodes[ui.naming].name = text;
    close();
  };
  return dialog({
    title: ui.naming === "new" ? "New folder" : "Rename",
    onclose: close,
    body: [field("Name", input({ ...bound(ui, "text", "name"), focus: true, onenter: save }))],
    actions: [
      button("Cancel", { k: "cancel", onclick: close }),
      button("Save", { k: "save", kind: "primary", onclick: save }),
    ],
  });
}

function askDialog(data, ui) {
  const close = () => {
    ui.asking = false;
  };
  const remove = (id) => {
    for (const child of children(data, id)) remove(child);
    delete data.nodes[id];
  };
  return dialog({
    title: "Delete?",
    onclose: close,
    body: [
      h(
        "p",
        null,
        ui.picked.length === 1
          ? `“${data.nodes[ui.picked[0]].name}” will be deleted for good.`
          : `${ui.picked.length} items will be deleted for good.`,
      ),
    ],
    actions: [
      button("Cancel", { k: "cancel", onclick: close }),
      button("Delete", {
        k: "confirm",
        kind: "primary",
        onclick: () => {
          ui.picked.filter((id) => data.nodes[id]).forEach(remove);
          ui.picked = [];
          close();
          app.toast("Deleted");
        },
      }),
    ],
  });
}

function contextMenu(data, ui) {
  const close = (act) => () => {
    ui.context = null;
    act();
  };
  const [x, y] = ui.context;
  return h(
    "div",
    {
      class: "menu context",
      onmousedown: (event) => event.stopPropagation(),
      style: `left:${Math.min(x, innerWidth - 150)}px;top:${Math.min(y, innerHeight - 140)}px`,
    },
    menuItems([
      { k: "context:rename", label: "Rename", icon: "edit", onclick: close(() => rename(data, ui)) },
      {
        k: "context:cut",
        label: "Cut",
        icon: "move",
        onclick: close(() => {
          ui.clip = { cut: true, ids: ui.picked };
        }),
      },
      {
        k: "context:copy",
        label: "Copy",
        icon: "copy",
        onclick: close(() => {
          ui.clip = { cut: false, ids: ui.picked };
        }),
      },
      null,
      {
        k: "context:delete",
        label: "Delete",
        icon: "trash",
        danger: true,
        onclick: close(() => {
          ui.asking = true;
        }),
      },
    ]),
  );
}
