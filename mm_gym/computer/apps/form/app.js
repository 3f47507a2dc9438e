// A form in several steps. options.steps lists fields; what is entered stays in ui until it is sent; data.sent holds what was.
//   step: {title, note, fields: [{id, label, kind: "text" | "number" | "email" | "select" | "radio" | "check" | "checks" | "rate" | "long", options, help, required, pattern}]}
"use strict";

app.start({
  ui: { step: 0, values: {}, tried: false },
  view: (data, ui) => {
    if (!ui.ready) {
      ui.ready = true;
      ui.values = { ...app.options.start, ...ui.values };
    }
    const steps = app.options.steps,
      last = steps.length,
      step = steps[Math.min(ui.step, last - 1)];
    if (data.sent.length && ui.step > last)
      return [
        bar(),
        h(
          "div",
          { class: "main" },
          h(
            "div",
            { class: "empty" },
            icon("check"),
            h("h1", null, app.options.thanks),
            h("p", null, "Reference " + app.options.reference),
          ),
        ),
      ];
    return [
      bar(),
      h(
        "ol",
        { class: "steps" },
        [...steps.map((s) => s.title), "Review"].map((title, i) =>
          h(
            "li",
            { class: i === ui.step ? "on" : i < ui.step ? "done" : "" },
            h("b", null, i < ui.step ? icon("check") : i + 1),
            h("span", null, title),
          ),
        ),
      ),
      h(
        "main",
        { class: "main scroll grow", "data-k": "page", key: ui.step },
        h("div", { class: "sheet" }, ui.step === last ? review(ui) : fields(ui, step)),
      ),
      h(
        "footer",
        { class: "foot" },
        button("Back", {
          k: "back",
          icon: "back",
          disabled: ui.step === 0,
          onclick: () => {
            ui.step -= 1;
            ui.tried = false;
          },
        }),
        h("span", { class: "muted" }, `Step ${ui.step + 1} of ${last + 1}`),
        ui.step === last
          ? button("Send", {
              k: "send",
              kind: "primary",
              icon: "send",
              onclick: () => {
                data.sent.push(collected(ui));
                ui.step = last + 1;
              },
            })
          : button("Continue", {
              k: "continue",
              kind: "primary",
              onclick: () => {
                ui.tried = true;
                if (step.fields.every((f) => !problem(f, ui.values[f.id]))) {
                  ui.step += 1;
                  ui.tried = false;
                }
              },
            }),
      ),
      toastView(ui),
    ];
  },
});

const bar = () =>
  h(
    "header",
    { class: "topbar" },
    h("div", { class: "brand" }, icon("draft"), app.options.brand),
    h("span", { class: "muted clip" }, app.options.title),
  );

function problem(f, value) {
  const text = String(value ?? "").trim();
  if (f.required && (!text || (Array.isArray(value) && value.length === 0))) return "Please fill this in.";
  if (text && f.kind === "email" && !/^\S+@\S+\.\S+$/.test(text)) return "This is not a mail address.";
  if (text && f.kind === "number" && !/^\d+$/.test(text)) return "Digits only, please.";
  return null;
}

/** What is sent: trimmed texts, and only fields that were filled in. */
function collected(ui) {
  const out = {};
  for (const f of app.options.steps.flatMap((s) => s.fields)) {
    const value = typeof ui.values[f.id] === "string" ? ui.values[f.id].trim() : ui.values[f.id];
    if (value !== undefined && value !== "" && value !== false && !(Array.isArray(value) && !value.length))
      out[f.id] = value;
  }
  return out;
}

function fields(ui, step) {
  return [
    h("h1", null, step.title),
    step.note &&
      h(
        "aside",
        { class: "panel note" },
        icon("info"),
        h(
          "div",
          null,
          step.note.split("\n").map((line) => h("div", null, line)),
        ),
      ),
    step.fields.map((f) => {
      const value = ui.values[f.id],
        set = (v) => {
          ui.values[f.id] = v;
        },
        error = ui.tried ? problem(f, value) : null;
      const control = CONTROLS[f.kind](f, value, set);
      return ["text", "number", "email", "long"].includes(f.kind)
        ? field(f.label + (f.required ? " *" : ""), control, { error, help: f.help })
        : h(
            "div",
            { class: "field", role: "group", "aria-label": f.label },
            f.kind !== "check" && h("span", { class: "field-name" }, f.label + (f.required ? " *" : "")),
            control,
            error && h("span", { class: "field-error" }, error),
          );
    }),
  ];
}

const line = (f, value, set) => input({ k: f.id, value, oninput: set });
const CONTROLS = {
  text: line,
  number: line,
  email: line,
  long: (f, value, set) => textarea({ k: f.id, value, rows: 3, oninput: set }),
  select: (f, value, set) => select({ k: f.id, value, options: f.options, label: "Choose…", onchange: set }),
  radio: (f, value, set) =>
    h(
      "div",
      { class: "row wrap" },
      f.options.map((o) =>
        radio({ k: `${f.id}:${o}`, name: f.id, label: o, checked: value === o, onchange: () => set(o) }),
      ),
    ),
  check: (f, value, set) => checkbox({ k: f.id, label: f.label, checked: value, onchange: set }),
  checks: (f, value, set) =>
    h(
      "div",
      { class: "row wrap" },
      f.options.map((o) =>
        checkbox({
          k: `${f.id}:${o}`,
          label: o,
          checked: (value || []).includes(o),
          onchange: (on) => set(on ? [...(value || []), o].sort() : value.filter((x) => x !== o)),
        }),
      ),
    ),
  rate: (f, value, set) =>
    h(
      "div",
      { class: "row rate" },
      f.options.map((o) => button(o, { k: `${f.id}:${o}`, pressed: value === o, onclick: () => set(o) })),
    ),
};

const review = (ui) => [
  h("h1", null, "Review"),
  h(
    "dl",
    null,
    app.options.steps
      .flatMap((s) => s.fields)
      .filter((f) => f.id in collected(ui))
      .map((f) => {
        const value = ui.values[f.id];
        return [
          h("dt", { class: "muted" }, f.label),
          h("dd", null, Array.isArray(value) ? value.join(", ") : value === true ? "Yes" : value),
        ];
      }),
  ),
];
