// A board of cards in columns. data.columns hold card ids in order; data.cards their content.
"use strict";

const LABELS = { bug: "#e03131", feature: "#1c7ed6", design: "#9c36b5", docs: "#2f9e44", urgent: "#e8590c" };

app.start({
  ui: { open: null, adding: null, text: "", held: null },
  view: (data, ui) => [
    h(
      "header",
      { class: "topbar" },
      h("div", { class: "brand" }, icon("layers"), app.options.brand),
      h("span", { class: "muted clip grow" }, app.options.board),
      h(
        "span",
        { class: "row" },
        app.options.people.slice(0, 4).map((p) => avatar(p)),
      ),
    ),
    h(
      "div",
      { class: "scroll grow board", "data-k": "board" },
      data.columns.map((c) => column(data, ui, c)),
    ),
    ui.open && cardDialog(data, ui),
    toastView(ui),
  ],
});

function column(data, ui, c) {
  const add = () => {
    if (ui.text.trim()) {
      const id = "new" + (Object.keys(data.cards).filter((k) => k.startsWith("new")).length + 1);
      data.cards[id] = { title: ui.text.trim(), labels: [], owner: null };
      c.cards.push(id);
    }
    ui.adding = null;
  };
  return h(
    "section",
    { class: "lane", key: c.id, "data-drop": c.id + "/end", "data-k": "lane:" + c.id },
    h("header", null, h("b", null, c.name), h("span", { class: "muted" }, c.cards.length)),
    h(
      "div",
      { class: "scroll cards", "data-k": "cards:" + c.id },
      c.cards.map((id) => card(data, ui, c, id)),
    ),
    ui.adding === c.id
      ? h(
          "div",
          { class: "col adder" },
          input({ ...bound(ui, "text", "title"), placeholder: "Title", focus: true, onenter: add }),
          h(
            "div",
            { class: "row" },
            button("Add", { k: "add", kind: "primary", onclick: add }),
            button("Cancel", {
              k: "cancel",
              kind: "quiet",
              onclick: () => {
                ui.adding = null;
              },
            }),
          ),
        )
      : button("Add a card", {
          k: "adder:" + c.id,
          kind: "quiet",
          icon: "plus",
          onclick: () => {
            ui.adding = c.id;
            ui.text = "";
          },
        }),
  );
}

function card(data, ui, c, id) {
  const it = data.cards[id],
    held = ui.held && ui.held.id === id ? ui.held : null;
  return h(
    "article",
    {
      class: `card ${held ? "held" : ""}`,
      key: id,
      "data-k": "card:" + id,
      "data-drop": held ? null : c.id + "/" + id,
      role: "button",
      style: held ? `transform:translate(${held.dx}px,${held.dy}px)` : null,
      onmousedown: (event) => grab(event, data, ui, id),
    },
    it.labels.length > 0 &&
      h(
        "div",
        { class: "row wrap tags" },
        it.labels.map((l) => chip(l, LABELS[l])),
      ),
    h("span", null, it.title),
    it.owner && h("div", { class: "row between foot" }, h("span", { class: "muted clip" }, it.owner), avatar(it.owner)),
  );
}

function grab(event, data, ui, id) {
  if (event.button !== 0) return;
  const from = [event.clientX, event.clientY];
  follow({
    move: (x, y) => {
      if (ui.held || Math.hypot(x - from[0], y - from[1]) > 5) ui.held = { id, dx: x - from[0], dy: y - from[1] };
    },
    drop: (x, y) => {
      const dragged = ui.held,
        target = dropAt(x, y);
      ui.held = null;
      if (!dragged) ui.open = id;
      else if (target) moveCard(data, id, ...target.split("/"));
    },
  });
}

/** Put a card into a column, before another card or at the end. */
function moveCard(data, id, columnId, before) {
  if (before === id) return;
  for (const c of data.columns) c.cards = c.cards.filter((x) => x !== id);
  const cards = data.columns.find((c) => c.id === columnId).cards;
  cards.splice(before === "end" ? cards.length : cards.indexOf(before), 0, id);
}

function cardDialog(data, ui) {
  const it = data.cards[ui.open],
    close = () => {
      ui.open = null;
    };
  const remove = () => {
    for (const c of data.columns) c.cards = c.cards.filter((x) => x !== ui.open);
    delete data.cards[ui.open];
    close();
    app.toast("Card deleted");
  };
  return dialog({
    title: "Card",
    onclose: close,
    body: [
      field(
        "Title",
        input({
          k: "card-title",
          value: it.title,
          oninput: (v) => {
            it.title = v;
          },
        }),
      ),
      field(
        "Labels",
        h(
          "div",
          { class: "row wrap" },
          Object.keys(LABELS).map((l) =>
            button(l, {
              k: "label:" + l,
              pressed: it.labels.includes(l),
              onclick: () => {
                it.labels = it.labels.includes(l) ? it.labels.filter((x) => x !== l) : [...it.labels, l].sort();
              },
            }),
          ),
        ),
      ),
      field(
        "Owner",
        select({
          ...bound(it, "owner"),
          label: "Nobody",
          options: [{ value: null, label: "Nobody" }, ...app.options.people.map((p) => ({ value: p, label: p }))],
        }),
      ),
    ],
    actions: [
      button("Delete", { k: "delete", kind: "danger", icon: "trash", onclick: remove }),
      button("Done", { k: "done", kind: "primary", onclick: close }),
    ],
  });
}
