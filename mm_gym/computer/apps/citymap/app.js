// A city map to pan and zoom, with places, routes, layers and a marker. options.places and options.roads are fixed.
"use strict";

const WORLD = [1600, 1200];
const PLACE_KINDS = {
  cafe: ["#b35309", "mug"],
  park: ["#2f9e44", "tree"],
  museum: ["#7048e8", "home"],
  station: ["#1c7ed6", "train"],
  hotel: ["#d6336c", "bed"],
  pharmacy: ["#e03131", "cross"],
};
Object.assign(ICONS, {
  mug: "M5 7h11v8a3 3 0 0 1-3 3H8a3 3 0 0 1-3-3zM16 9h2a2 2 0 0 1 0 5h-2",
  tree: "M12 3l6 9h-4l3 5H7l3-5H6zM12 17v4",
  train: "M6 4h12v12H6zM6 11h12M8 20l2-4M16 20l-2-4",
  bed: "M3 18V7M3 14h18v4M21 14v-2a3 3 0 0 0-3-3h-7v5",
  cross: "M9 4h6v5h5v6h-5v5H9v-5H4V9h5z",
});
const MODES = { walk: "On foot", bike: "Bicycle", bus: "Bus", car: "Car" };

app.start({
  ui: { x: 800, y: 600, zoom: 1, open: null, query: "", route: null, held: null },
  ready: (data, ui) => {
    [ui.x, ui.y] = app.options.start;
    ui.zoom = app.options.zoom;
  },
  view: (data, ui) => [
    h(
      "div",
      {
        class: "map",
        "data-k": "map",
        onmousedown: (event) => pan(event, ui),
        onwheel: (event) => zoomAt(ui, event.deltaY < 0 ? 1.25 : 0.8, event.clientX, event.clientY),
      },
      drawing(data, ui),
    ),
    h(
      "div",
      { class: "float search-box" },
      h(
        "div",
        { class: "search" },
        icon("search"),
        input({ ...bound(ui, "query", "search"), placeholder: `Search ${app.options.city}`, label: "Search" }),
      ),
      button("", {
        k: "directions",
        icon: "route",
        title: "Directions",
        pressed: !!ui.route,
        onclick: () => {
          ui.route = ui.route ? null : { from: null, to: null, mode: "walk", field: "from" };
        },
      }),
      ui.query && results(ui),
    ),
    ui.route ? router(data, ui) : ui.open && card(data, ui),
    h(
      "div",
      { class: "float zoomers" },
      button("", {
        k: "zoom:in",
        icon: "plus",
        title: "Zoom in",
        onclick: () => zoomAt(ui, 1.25, innerWidth / 2, innerHeight / 2),
      }),
      button("", {
        k: "zoom:out",
        icon: "minus",
        title: "Zoom out",
        onclick: () => zoomAt(ui, 0.8, innerWidth / 2, innerHeight / 2),
      }),
    ),
    h(
      "div",
      { class: "float layers" },
      Object.keys(data.layers).map((name) =>
        checkbox({
          k: "layer:" + name,
          label: name,
          checked: data.layers[name],
          onchange: (on) => {
            data.layers[name] = on;
          },
        }),
      ),
    ),
    toastView(ui),
  ],
});

const place = (id) => app.options.places.find((p) => p.id === id);
const toScreen = (ui, x, y) => [(x - ui.x) * ui.zoom + innerWidth / 2, (y - ui.y) * ui.zoom + innerHeight / 2];
const toWorld = (ui, x, y) => [(x - innerWidth / 2) / ui.zoom + ui.x, (y - innerHeight / 2) / ui.zoom + ui.y];

function keepInside(ui) {
  ui.x = Math.round(Math.max(0, Math.min(WORLD[0], ui.x)));
  ui.y = Math.round(Math.max(0, Math.min(WORLD[1], ui.y)));
}

function zoomAt(ui, factor, x, y) {
  const [wx, wy] = toWorld(ui, x, y);
  ui.zoom = Math.max(0.4, Math.min(2.5, ui.zoom * factor));
  const [vx, vy] = toWorld(ui, x, y);
  ui.x += wx - vx;
  ui.y += wy - vy;
  keepInside(ui);
}

function pan(event, ui) {
  if (event.button !== 0 || event.target.closest(".pin, .marker")) return;
  let [px, py] = [event.clientX, event.clientY];
  const go = (x, y) => {
    ui.x -= (x - px) / ui.zoom;
    ui.y -= (y - py) / ui.zoom;
    [px, py] = [x, y];
    keepInside(ui);
  };
  follow({ move: go, drop: go });
}

function drawing(data, ui) {
  const [ox, oy] = toScreen(ui, 0, 0),
    o = app.options,
    shown = data.layers.Places;
  return [
    h(
      "svg",
      { class: "ground", width: "100%", height: "100%" },
      h(
        "g",
        { transform: `translate(${ox} ${oy}) scale(${ui.zoom})` },
        h("rect", { x: -3000, y: -3000, width: 8000, height: 8000, class: "land" }),
        o.blocks.map((b) => h("rect", { ...b, rx: 4, class: "block" })),
        o.parks.map((p) => h("polygon", { points: p, class: "green" })),
        h("path", { d: o.river, class: "river" }),
        o.roads.map((r) => [h("path", { d: r.d, class: "road edge", "stroke-width": r.width + 4 })]),
        o.roads.map((r) => h("path", { d: r.d, class: "road", "stroke-width": r.width })),
        data.layers.Transit && o.lines.map((l) => h("path", { d: l.d, class: "transit", stroke: l.color })),
        data.layers.Bicycles && o.roads.filter((_, i) => i % 2).map((r) => h("path", { d: r.d, class: "cycle" })),
        data.route && routeLine(data.route),
      ),
    ),
    o.roads.map((r) => h("span", { class: "street", style: at(ui, r.label[0], r.label[1]) }, r.name)),
    shown &&
      o.places.map((p) =>
        h(
          "button",
          {
            class: `pin ${ui.open === p.id ? "on" : ""} ${data.saved.includes(p.id) ? "saved" : ""}`,
            "data-k": "pin:" + p.id,
            key: p.id,
            style: at(ui, p.x, p.y) + `--chip:${PLACE_KINDS[p.kind][0]}`,
            "aria-label": p.name,
            onclick: () => {
              ui.open = p.id;
              if (ui.route) choose(ui, p.id);
            },
          },
          h("i", null, icon(PLACE_KINDS[p.kind][1])),
          ui.zoom >= 0.8 && h("span", null, p.name),
        ),
      ),
    marker(data, ui),
  ];
}

function at(ui, x, y) {
  const [sx, sy] = toScreen(ui, x, y);
  return `left:${Math.round(sx)}px;top:${Math.round(sy)}px;`;
}

const routeLine = ({ from, to }) => {
  const a = place(from),
    b = place(to);
  return h("path", { d: `M${a.x} ${a.y}L${b.x} ${a.y}L${b.x} ${b.y}`, class: "route" });
};

/** The red marker snaps to the place that it is dropped near. */
function marker(data, ui) {
  const p = data.marker ? place(data.marker) : null,
    [x, y] = p ? [p.x, p.y] : app.options.markerStart;
  return h(
    "div",
    {
      class: `marker ${ui.held ? "held" : ""}`,
      "data-k": "marker",
      title: "Drag me",
      style: at(ui, x, y) + (ui.held ? `translate:${ui.held[0]}px ${ui.held[1]}px` : ""),
      onmousedown: (event) => {
        event.stopPropagation();
        const from = [event.clientX, event.clientY],
          [sx, sy] = toScreen(ui, x, y);
        follow({
          move: (mx, my) => {
            ui.held = [mx - from[0], my - from[1]];
          },
          drop: (mx, my) => {
            ui.held = null;
            const [wx, wy] = toWorld(ui, sx + mx - from[0], sy + my - from[1]);
            const near = app.options.places
              .map((q) => [Math.hypot(q.x - wx, q.y - wy), q.id])
              .sort((a, b) => a[0] - b[0])[0];
            if (near[0] * ui.zoom < 34) data.marker = near[1];
          },
        });
      },
    },
    icon("pin", "fill"),
  );
}

function results(ui) {
  const words = ui.query.trim().toLowerCase(),
    hits = app.options.places.filter((p) => p.name.toLowerCase().includes(words)).slice(0, 6);
  return h(
    "div",
    { class: "menu hits" },
    hits.length
      ? hits.map((p) =>
          h(
            "button",
            {
              class: "menu-item",
              "data-k": "hit:" + p.id,
              onclick: () => {
                Object.assign(ui, { x: p.x, y: p.y, open: p.id, query: "", zoom: Math.max(1, ui.zoom) });
                if (ui.route) choose(ui, p.id);
              },
            },
            icon(PLACE_KINDS[p.kind][1]),
            h("span", null, p.name),
          ),
        )
      : h("div", { class: "muted none" }, "Nothing found"),
  );
}

function card(data, ui) {
  const p = place(ui.open),
    saved = data.saved.includes(p.id),
    line = (name, text) => h("div", { class: "row" }, icon(name, "muted"), text);
  return h(
    "section",
    { class: "float panel card", "data-k": "card" },
    h(
      "div",
      { class: "row between" },
      h("h2", null, p.name),
      button("", {
        k: "card:close",
        kind: "quiet",
        icon: "close",
        title: "Close",
        onclick: () => {
          ui.open = null;
        },
      }),
    ),
    chip(p.kind, PLACE_KINDS[p.kind][0]),
    line("clock", `Open ${p.hours}`),
    line("info", `Rated ${p.rating.toFixed(1)}`),
    line("pin", p.address),
    h(
      "div",
      { class: "row" },
      button(saved ? "Saved" : "Save", {
        k: "save",
        kind: saved ? "" : "primary",
        icon: "star",
        onclick: () => {
          data.saved = saved ? data.saved.filter((x) => x !== p.id) : [...data.saved, p.id].sort();
        },
      }),
      button("Route to here", {
        k: "to-here",
        icon: "route",
        onclick: () => {
          ui.route = { from: null, to: p.id, mode: "walk", field: "from" };
        },
      }),
    ),
  );
}

function choose(ui, id) {
  ui.route[ui.route.field] = id;
  ui.route.field = ui.route.field === "from" ? "to" : "from";
}

function router(data, ui) {
  const r = ui.route,
    end = (name, label) =>
      h(
        "button",
        {
          class: `end ${r.field === name ? "on" : ""}`,
          "data-k": "end:" + name,
          onclick: () => {
            r.field = name;
          },
        },
        h("span", { class: "muted" }, label),
        h("b", { class: "clip" }, r[name] ? place(r[name]).name : "click a place or search"),
      );
  return h(
    "section",
    { class: "float panel card", "data-k": "router" },
    h(
      "div",
      { class: "row between" },
      h("h2", null, "Directions"),
      button("", {
        k: "route:close",
        kind: "quiet",
        icon: "close",
        title: "Close",
        onclick: () => {
          ui.route = null;
        },
      }),
    ),
    end("from", "From"),
    end("to", "To"),
    h(
      "div",
      { class: "row wrap modes" },
      Object.entries(MODES).map(([k, name]) =>
        button(name, {
          k: "mode:" + k,
          pressed: r.mode === k,
          onclick: () => {
            r.mode = k;
          },
        }),
      ),
    ),
    button("Start", {
      k: "start",
      kind: "primary",
      icon: "route",
      disabled: !r.from || !r.to || r.from === r.to,
      onclick: () => {
        data.route = { from: r.from, to: r.to, mode: r.mode };
        ui.route = null;
        ui.open = null;
        app.toast("On your way");
      },
    }),
  );
}
