// Settings: pages of switches, lists, sliders and texts. options.pages describes them; data.values holds what is set.
//   page: {id, name, icon, groups: [{name, items: [{id, label, note, kind, options, min, max, step, unit}]}]}
"use strict";

app.start({
  ui: { page: null, query: "", held: null },
  view: (data, ui) => {
    ui.page = ui.page || app.options.pages[0].id;
    const words = ui.query.trim().toLowerCase(),
      page = app.options.pages.find((p) => p.id === ui.page);
    return [
      h(
        "header",
        { class: "topbar" },
        h("div", { class: "brand" }, icon("gear"), app.options.brand),
        h(
          "div",
          { class: "search" },
          icon("search"),
          input({ ...bound(ui, "query", "search"), placeholder: "Find a setting", label: "Find a setting" }),
        ),
      ),
      h(
        "div",
        { class: "body" },
        h(
          "nav",
          { class: "side", "data-k": "pages" },
          app.options.pages.map((p) =>
            h(
              "button",
              {
                class: `nav ${p.id === ui.page && !words ? "on" : ""}`,
                "data-k": "page:" + p.id,
                onclick: () => {
                  ui.page = p.id;
                  ui.query = "";
                },
              },
              icon(p.icon),
              h("span", { class: "clip" }, p.name),
            ),
          ),
        ),
        h(
          "main",
          { class: "main" },
          h(
            "div",
            { class: "scroll grow settings", "data-k": "settings", key: words || ui.page },
            h("h1", null, words ? "Results" : page.name),
            words ? found(data, words) : page.groups.map((g) => group(data, g)),
          ),
        ),
      ),
      toastView(ui),
    ];
  },
});

const group = (data, g) =>
  g.items.length > 0 && [
    h("h3", { class: "muted" }, g.name),
    h(
      "section",
      { class: "panel" },
      g.items.map((item) => line(data, item)),
    ),
  ];

function found(data, words) {
  const hits = app.options.pages.flatMap((p) =>
    p.groups.map((g) => ({
      name: `${p.name} › ${g.name}`,
      items: g.items.filter((i) => i.label.toLowerCase().includes(words)),
    })),
  );
  return hits.some((g) => g.items.length)
    ? hits.map((g) => group(data, g))
    : empty("search", "No setting of that name");
}

function line(data, item) {
  const value = data.values[item.id],
    set = (v) => {
      data.values[item.id] = v;
    };
  return h(
    "div",
    { class: "setting", key: item.id },
    h(
      "div",
      { class: "grow" },
      h("div", { class: "strong" }, item.label),
      item.note && h("div", { class: "muted note" }, item.note),
    ),
    CONTROLS[item.kind](item, value, set),
  );
}

const CONTROLS = {
  toggle: (item, value, set) => toggle({ k: item.id, checked: value, label: item.label, onchange: set }),
  select: (item, value, set) => select({ k: item.id, value, options: item.options, label: item.label, onchange: set }),
  slider: (item, value, set) => slider(item, value, set),
  text: (item, value, set) => input({ k: item.id, value, label: item.label, cls: "short", oninput: (v) => set(v) }),
  radio: (item, value, set) =>
    h(
      "div",
      { class: "col" },
      item.options.map((o) =>
        radio({ k: `${item.id}:${o}`, name: item.id, checked: value === o, label: o, onchange: () => set(o) }),
      ),
    ),
};

/** A slider by mouse (press or drag) and keyboard (arrows), in whole steps. */
function slider(item, value, set) {
  const clamp = (v) => Math.max(item.min, Math.min(item.max, Math.round(v / item.step) * item.step));
  const at = (track, x) => {
    const box = track.getBoundingClientRect();
    set(clamp(item.min + ((x - box.left) / box.width) * (item.max - item.min)));
  };
  return h(
    "div",
    { class: "row" },
    h(
      "div",
      {
        class: "track",
        tabindex: "0",
        role: "slider",
        "aria-label": item.label,
        "aria-valuenow": value,
        "data-k": item.id,
        style: `--at:${((value - item.min) / (item.max - item.min)) * 100}%`,
        onmousedown: (event) => {
          const track = event.currentTarget;
          at(track, event.clientX);
          follow({ move: (x) => at(track, x), drop: (x) => at(track, x) });
        },
        onkeydown: (event) => {
          const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
          if (step) {
            event.preventDefault();
            set(clamp(value + step * item.step));
          }
        },
      },
      h("span", { class: "thumb" }),
    ),
    h("b", { class: "value" }, value + (item.unit || "")),
  );
}
