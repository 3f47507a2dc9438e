// Charts to read: bars, lines or a pie over one or several series. options.sets hold the numbers; data what was marked.
//   set: {id, name, unit, labels: [...], series: [{name, color, values: [...]}]}
"use strict";

const KINDS = ["bar", "line", "pie"],
  W = 600,
  H = 300,
  LEFT = 46,
  BOTTOM = 30,
  TOP = 12;

app.start({
  ui: { set: null, picked: null, hover: null },
  view: (data, ui) => {
    ui.set = ui.set || app.options.sets[0].id;
    const set = app.options.sets.find((s) => s.id === ui.set),
      kind = data.kinds[ui.set];
    const shown = set.series.filter((s) => !data.hidden.includes(`${set.id}/${s.name}`));
    return [
      h(
        "header",
        { class: "topbar" },
        h("div", { class: "brand" }, icon("chart"), app.options.brand),
        h(
          "nav",
          { class: "row grow tabs" },
          app.options.sets.map((s) =>
            button(s.name, {
              k: "set:" + s.id,
              kind: "quiet",
              pressed: s.id === ui.set,
              onclick: () => {
                ui.set = s.id;
                ui.picked = null;
              },
            }),
          ),
        ),
        h(
          "div",
          { class: "row kinds" },
          KINDS.map((k) =>
            button("", {
              k: "kind:" + k,
              kind: "quiet",
              icon: { bar: "chart", line: "line", pie: "pie" }[k],
              title: k + " chart",
              pressed: k === kind,
              onclick: () => {
                data.kinds[ui.set] = k;
                ui.picked = null;
              },
            }),
          ),
        ),
      ),
      h(
        "main",
        { class: "page scroll grow", "data-k": "page" },
        h(
          "section",
          { class: "panel" },
          h(
            "div",
            { class: "row between" },
            h("h2", null, set.name, h("span", { class: "muted" }, ` in ${set.unit}`)),
            h(
              "div",
              { class: "row wrap legend" },
              set.series.map((s) => legend(data, set, s)),
            ),
          ),
          shown.length
            ? h(
                "svg",
                { viewBox: `0 0 ${W} ${H}`, class: "plot", role: "img", "aria-label": set.name, "data-k": "plot" },
                DRAW[kind](data, ui, set, shown),
              )
            : empty("chart", "All series are hidden"),
        ),
        details(data, ui, set),
      ),
      toastView(ui),
    ];
  },
});

function legend(data, set, s) {
  const id = `${set.id}/${s.name}`,
    off = data.hidden.includes(id);
  return h(
    "button",
    {
      class: `key ${off ? "off" : ""}`,
      "data-k": "series:" + id,
      "aria-pressed": String(!off),
      onclick: () => {
        data.hidden = off ? data.hidden.filter((x) => x !== id) : [...data.hidden, id].sort();
      },
    },
    h("i", { style: `background:${s.color}` }),
    s.name,
  );
}

function nice(max) {
  const power = 10 ** Math.floor(Math.log10(max || 1));
  return [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m >= max) || max;
}

/** The props of a part that can be pointed at and picked: `${set}/${series}/${label}`. */
function part(data, ui, set, s, i) {
  const id = `${set.id}/${s.name}/${set.labels[i]}`;
  return {
    "data-k": "part:" + id,
    class: `part ${ui.picked === id ? "on" : ""} ${data.flagged.includes(id) ? "flagged" : ""}`,
    onclick: () => {
      ui.picked = id;
    },
    style: `--color:${s.color}`,
  };
}

function axes(set, top) {
  const y = (v) => H - BOTTOM - (v / top) * (H - BOTTOM - TOP),
    step = (W - LEFT) / set.labels.length;
  return {
    y,
    step,
    nodes: [
      [0, 0.25, 0.5, 0.75, 1].map((f) => [
        h("line", { x1: LEFT, x2: W, y1: y(top * f), y2: y(top * f), class: "grid" }),
        h("text", { x: LEFT - 6, y: y(top * f) + 4, class: "tick end" }, top * f),
      ]),
      set.labels.map((label, i) => h("text", { x: LEFT + step * (i + 0.5), y: H - 10, class: "tick mid" }, label)),
    ],
  };
}

const DRAW = {
  bar(data, ui, set, shown) {
    const top = nice(Math.max(...shown.flatMap((s) => s.values))),
      { y, step, nodes } = axes(set, top),
      wide = (step * 0.72) / shown.length;
    return [
      nodes,
      shown.map((s, n) =>
        s.values.map((v, i) =>
          h("rect", {
            ...part(data, ui, set, s, i),
            x: LEFT + step * (i + 0.14) + wide * n,
            width: Math.max(2, wide - 2),
            y: y(v),
            height: H - BOTTOM - y(v),
            rx: 2,
          }),
        ),
      ),
    ];
  },
  line(data, ui, set, shown) {
    const top = nice(Math.max(...shown.flatMap((s) => s.values))),
      { y, step, nodes } = axes(set, top),
      x = (i) => LEFT + step * (i + 0.5);
    return [
      nodes,
      shown.map((s) => [
        h("polyline", {
          points: s.values.map((v, i) => `${x(i)},${y(v)}`).join(" "),
          class: "curve",
          style: `--color:${s.color}`,
        }),
        s.values.map((v, i) => h("circle", { ...part(data, ui, set, s, i), cx: x(i), cy: y(v), r: 6 })),
      ]),
    ];
  },
  pie(data, ui, set, shown) {
    const s = shown[0],
      total = s.values.reduce((a, b) => a + b, 0),
      tones = set.labels.map((_, i) => `hsl(${(i * 360) / set.labels.length + 20} 58% 52%)`);
    let turn = 0;
    return set.labels.map((label, i) => {
      const from = turn,
        to = (turn += (s.values[i] / total) * 2 * Math.PI),
        at = (a, r) => `${(W * 0.36 + r * Math.sin(a)).toFixed(2)} ${(H / 2 - r * Math.cos(a)).toFixed(2)}`;
      return [
        h("path", {
          ...part(data, ui, set, s, i),
          style: `--color:${tones[i]}`,
          d: `M${at(from, 0)}L${at(from, 132)}A132 132 0 ${to - from > Math.PI ? 1 : 0} 1 ${at(to, 132)}Z`,
        }),
        h("rect", { x: W * 0.68, y: 20 + i * 24, width: 13, height: 13, rx: 3, style: `fill:${tones[i]}` }),
        h("text", { x: W * 0.68 + 20, y: 31 + i * 24, class: "tick big" }, label),
      ];
    });
  },
};

function details(data, ui, set) {
  if (!ui.picked) return h("p", { class: "muted hint" }, "Click a part of the chart to see its value.");
  const [, name, label] = ui.picked.split("/"),
    value = set.series.find((s) => s.name === name).values[set.labels.indexOf(label)],
    flagged = data.flagged.includes(ui.picked);
  return h(
    "section",
    { class: "panel row between details" },
    h(
      "div",
      null,
      h("div", { class: "muted" }, `${name} · ${label}`),
      h("b", { class: "figure" }, `${value} ${set.unit}`),
    ),
    button(flagged ? "Remove flag" : "Flag", {
      k: "flag",
      kind: flagged ? "" : "primary",
      icon: "flag",
      onclick: () => {
        data.flagged = flagged ? data.flagged.filter((x) => x !== ui.picked) : [...data.flagged, ui.picked].sort();
      },
    }),
  );
}
