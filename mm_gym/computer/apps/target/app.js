// Target: very small screens that show a few things to press, tick, drag or fill in; legible from 96 x 96 pixels.
// options.screens lists them; data.done records what was done, in order. A screen holds
//   title, note (text), swatch (colour), items [{id, label, color, shape, cell: [column, row]}], grid: [columns, rows],
//   kind: "buttons" | "checks" | "list" | "field" | "drag", go: id that leads to the next screen.
"use strict";

const SHAPES = {
  circle: h("circle", { cx: 12, cy: 12, r: 9 }),
  square: h("rect", { x: 4, y: 4, width: 16, height: 16 }),
  triangle: h("polygon", { points: "12,3 22,20 2,20" }),
  diamond: h("polygon", { points: "12,2 21,12 12,22 3,12" }),
  star: h("polygon", { points: "12,2 15,9 22,9.5 16.5,14 18.5,21.5 12,17.5 5.5,21.5 7.5,14 2,9.5 9,9" }),
  cross: h("polygon", { points: "9,3 15,3 15,9 21,9 21,15 15,15 15,21 9,21 9,15 3,15 3,9 9,9" }),
};

app.start({
  ui: { screen: 0, text: "", held: null },
  view: (data, ui) => {
    const screen = app.options.screens[Math.min(ui.screen, app.options.screens.length - 1)];
    return [
      h("header", { class: "title" }, h("i", null), h("span", { class: "clip" }, screen.title)),
      screen.note && h("p", { class: "note" }, screen.note),
      screen.swatch && h("div", { class: "swatch", style: `background:${screen.swatch}` }),
      h(
        "div",
        {
          class: `place ${screen.kind}`,
          "data-k": "place",
          key: ui.screen,
          style: `--columns:${screen.grid[0]};--rows:${screen.grid[1]}`,
        },
        screen.items.map((item) => KINDS[screen.kind](screen, item, data, ui)),
      ),
    ];
  },
});

const cell = (item) => (item.cell ? `grid-column:${item.cell[0] + 1};grid-row:${item.cell[1] + 1};` : "");

function act(screen, id, data, ui) {
  data.done.push(id);
  if (screen.go === id) ui.screen += 1;
}

const KINDS = {
  buttons: (screen, item, data, ui) =>
    h(
      "button",
      {
        class: `thing ${item.color && !item.shape ? "colored" : ""} ${item.shape ? "bare" : ""}`,
        "data-k": item.id,
        style: cell(item) + (item.color ? `--color:${item.color}` : ""),
        "aria-label": item.name,
        onclick: () => act(screen, item.id, data, ui),
      },
      item.shape ? h("svg", { viewBox: "0 0 24 24" }, SHAPES[item.shape]) : item.label || "",
    ),
  list: (screen, item, data, ui) =>
    h("button", { class: "row-thing", "data-k": item.id, onclick: () => act(screen, item.id, data, ui) }, item.label),
  checks: (screen, item, data, ui) =>
    item.go
      ? h(
          "button",
          {
            class: "thing go",
            "data-k": item.id,
            onclick: () => {
              data.done.push(data.ticked.join(" "));
            },
          },
          item.label,
        )
      : checkbox({
          k: item.id,
          label: item.label,
          checked: data.ticked.includes(item.id),
          onchange: (on) => {
            data.ticked = on ? [...data.ticked, item.id].sort() : data.ticked.filter((x) => x !== item.id);
          },
        }),
  field: (screen, item, data, ui) =>
    item.go
      ? h(
          "button",
          {
            class: "thing go",
            "data-k": item.id,
            onclick: () => {
              data.done.push(ui.text.trim());
            },
          },
          item.label,
        )
      : input({
          k: item.id,
          value: ui.text,
          label: "text",
          oninput: (text) => {
            ui.text = text;
          },
        }),
  drag: (screen, item, data, ui) =>
    item.slot
      ? h(
          "div",
          { class: "slot", "data-k": item.id, "data-drop": item.id, style: cell(item) + `--color:${item.color}` },
          data.done.length && data.done.at(-1) === item.id ? h("b", { class: "block" }) : null,
        )
      : h(
          "div",
          {
            class: "block home",
            style: cell(item),
            "data-k": item.id,
            onmousedown: (event) => {
              const from = [event.clientX, event.clientY];
              ui.held = [0, 0];
              follow({
                move: (x, y) => {
                  ui.held = [x - from[0], y - from[1]];
                },
                drop: (x, y) => {
                  ui.held = null;
                  const slot = dropAt(x, y);
                  if (slot) data.done.push(slot);
                },
              });
            },
          },
          !data.done.length &&
            h("b", { class: "block", style: ui.held ? `transform:translate(${ui.held[0]}px,${ui.held[1]}px)` : null }),
        ),
};
