// Controls that the apps share. Each takes `k`, a stable name that becomes data-k for solvers and tests.
"use strict";

/** Button with text, an icon or both; kind is "", "primary", "danger" or "quiet". */
function button(label, { k, kind, icon: name, onclick, disabled, title, pressed, type, cls } = {}) {
  return h(
    "button",
    {
      type: type || "button",
      "data-k": k,
      class: `btn ${kind || ""} ${label ? "" : "square"} ${cls || ""}`,
      onclick,
      disabled,
      title,
      "aria-label": label ? null : title,
      "aria-pressed": pressed == null ? null : String(pressed),
    },
    name && icon(name),
    label && h("span", null, label),
  );
}

/** What ties a control to a property of `object`: its name, its value and what a new value does. */
function bound(object, property, k = property) {
  const set = (value) => {
    object[property] = value;
  };
  return { k, value: object[property], oninput: set, onchange: set };
}

/** One line of text; `oninput` gets the new text. */
function input({ k, value, oninput, placeholder, onenter, focus, type, label, cls, max }) {
  return h("input", {
    "data-k": k,
    class: "input " + (cls || ""),
    value: value ?? "",
    placeholder,
    type: type || "text",
    "aria-label": label,
    autocomplete: "off",
    spellcheck: "false",
    autofocus: focus || null,
    maxlength: max || null,
    oninput: (event) => oninput(event.target.value),
    onkeydown: onenter
      ? (event) => {
          if (event.key === "Enter") onenter();
        }
      : null,
  });
}

function textarea({ k, value, oninput, placeholder, rows, label, focus }) {
  return h("textarea", {
    "data-k": k,
    class: "input area",
    value: value ?? "",
    placeholder,
    rows: rows || 4,
    "aria-label": label,
    spellcheck: "false",
    autofocus: focus || null,
    oninput: (event) => oninput(event.target.value),
  });
}

/** A label above a control, with help or a complaint below. */
function field(label, control, { error, help, cls } = {}) {
  return h(
    "label",
    { class: `field ${error ? "bad" : ""} ${cls || ""}` },
    h("span", { class: "field-name" }, label),
    control,
    error
      ? h("span", { class: "field-error", role: "alert" }, error)
      : help && h("span", { class: "field-help" }, help),
  );
}

function checkbox({ k, checked, onchange, label, disabled }) {
  return h(
    "label",
    { class: "check", "data-k": k },
    h("input", { type: "checkbox", checked: !!checked, disabled, onchange: (event) => onchange(event.target.checked) }),
    h("span", { class: "check-box" }, icon("check")),
    label && h("span", null, label),
  );
}

function radio({ k, name, checked, onchange, label, note }) {
  return h(
    "label",
    { class: "check", "data-k": k },
    h("input", { type: "radio", name, checked: !!checked, onchange: () => onchange() }),
    h("span", { class: "check-box round" }),
    h("span", null, label, note && h("small", { class: "muted" }, note)),
  );
}

function toggle({ k, checked, onchange, label }) {
  return h(
    "button",
    {
      type: "button",
      role: "switch",
      "aria-checked": String(!!checked),
      "aria-label": label,
      "data-k": k,
      class: "toggle",
      onclick: () => onchange(!checked),
    },
    h("span", { class: "knob" }),
  );
}

/** Whether a list of at most 216 px that opens at this button must open upwards to be seen whole. */
function opensUp(node) {
  const box = node.getBoundingClientRect(),
    host = (node.closest(".scroll, .dialog") || document.body).getBoundingClientRect();
  return (
    box.bottom + 216 > Math.min(host.bottom, innerHeight) && box.top - Math.max(host.top, 0) > host.bottom - box.bottom
  );
}

/** A drop-down list; options are strings or {value, label}. The list opens inside the page. */
function select({ k, value, options, onchange, label }) {
  const items = options.map((o) => (typeof o === "object" ? o : { value: o, label: o }));
  const chosen = items.find((o) => o.value === value);
  const open = app.ui.menu === k;
  return h(
    "div",
    { class: "menu-host select" },
    h(
      "button",
      {
        type: "button",
        class: "btn select-button",
        "data-k": k,
        "aria-haspopup": "listbox",
        "aria-expanded": String(open),
        "aria-label": label,
        onclick: (event) => {
          app.ui.menu = open ? null : k;
          app.ui.menuUp = opensUp(event.currentTarget);
        },
      },
      h("span", null, chosen ? chosen.label : label || "Choose"),
      icon("down"),
    ),
    open &&
      h(
        "div",
        { class: `menu ${app.ui.menuUp ? "up" : ""}`, role: "listbox", "data-k": k + ":list" },
        items.map((o) =>
          h(
            "button",
            {
              type: "button",
              role: "option",
              "aria-selected": String(o.value === value),
              class: "menu-item",
              "data-k": `${k}:${o.value}`,
              onclick: () => {
                app.ui.menu = null;
                onchange(o.value);
              },
            },
            h("span", null, o.label),
            o.value === value && icon("check"),
          ),
        ),
      ),
  );
}

/** A button that opens a list of commands: items are {k, label, icon, onclick} or null for a line. */
function menu({ k, button: face, items, align }) {
  const open = app.ui.menu === k;
  return h(
    "div",
    { class: "menu-host" },
    button(face.label, {
      ...face,
      k,
      onclick: () => {
        app.ui.menu = open ? null : k;
      },
    }),
    open && h("div", { class: "menu " + (align || ""), role: "menu" }, menuItems(items)),
  );
}

function menuItems(items) {
  return items.map((item) =>
    item
      ? h(
          "button",
          {
            type: "button",
            role: "menuitem",
            class: "menu-item " + (item.danger ? "danger" : ""),
            "data-k": item.k,
            onclick: () => {
              app.ui.menu = null;
              item.onclick();
            },
          },
          item.icon && icon(item.icon),
          h("span", null, item.label),
        )
      : h("hr", null),
  );
}

/** A window over the page. */
function dialog({ title, body, actions, onclose, wide }) {
  return h(
    "div",
    { class: "overlay" },
    h(
      "div",
      { class: "dialog " + (wide ? "wide" : ""), role: "dialog", "aria-label": title },
      h(
        "header",
        null,
        h("h2", null, title),
        onclose && button("", { k: "dialog:close", kind: "quiet", icon: "close", title: "Close", onclick: onclose }),
      ),
      h("div", { class: "dialog-body", "data-k": "dialog:body" }, body),
      h("footer", null, actions),
    ),
  );
}

function avatar(name) {
  return h("span", { class: "avatar", style: `--hue:${hue(name)}`, "aria-hidden": "true" }, initials(name));
}

const chip = (text, color) => h("span", { class: "chip", style: color ? `--chip:${color}` : null }, text);

const empty = (name, text) => h("div", { class: "empty" }, icon(name), h("p", null, text));

const toastView = (ui) =>
  ui.toast && h("div", { class: "toast", role: "status" }, icon("check"), h("span", null, ui.toast));

/** A month to pick a day from; `shown` is "YYYY-MM", `marks` are days to draw filled. */
function monthGrid({ k, shown, marks, within, onshow, onpick, weekStart, min, today }) {
  const [year, month] = shown.split("-").map(Number);
  const first = new Date(Date.UTC(year, month - 1, 1));
  const lead = (first.getUTCDay() - (weekStart || 0) + 7) % 7;
  const count = new Date(Date.UTC(year, month, 0)).getUTCDate();
  const shift = (n) => onshow(day.make(year, month - 1 + n, 1).slice(0, 7));
  const cells = [];
  for (let i = 0; i < lead; i++) cells.push(h("span", { class: "day blank" }));
  for (let d = 1; d <= count; d++) {
    const text = `${shown}-${two(d)}`;
    const state = `${marks.includes(text) ? "on" : ""} ${within && within(text) ? "within" : ""} ${text === today ? "today" : ""}`;
    cells.push(
      h(
        "button",
        {
          type: "button",
          class: "day " + state,
          "data-k": `${k}:${text}`,
          disabled: !!min && text < min,
          "aria-label": day.long(text),
          onclick: () => onpick(text),
        },
        String(d),
      ),
    );
  }
  return h(
    "div",
    { class: "month" },
    h(
      "div",
      { class: "month-head" },
      button("", { k: k + ":prev", kind: "quiet", icon: "back", title: "Previous month", onclick: () => shift(-1) }),
      h("strong", null, `${MONTHS[month - 1]} ${year}`),
      button("", { k: k + ":next", kind: "quiet", icon: "next", title: "Next month", onclick: () => shift(1) }),
    ),
    h(
      "div",
      { class: "month-grid" },
      DAYS.map((_, i) => h("span", { class: "day-name" }, DAYS[(i + (weekStart || 0)) % 7].slice(0, 2))),
      cells,
    ),
  );
}

/** Follow the mouse from a press until its release: move(x, y) as it goes, drop(x, y) at the end. */
function follow({ move, drop }) {
  const onmove = (event) => {
    move(event.clientX, event.clientY);
    app.render();
  };
  const onup = (event) => {
    document.removeEventListener("mousemove", onmove);
    document.removeEventListener("mouseup", onup);
    drop(event.clientX, event.clientY);
    app.render();
  };
  document.addEventListener("mousemove", onmove);
  document.addEventListener("mouseup", onup);
}

/** The data-drop name of the place under a point, or null. */
function dropAt(x, y) {
  for (const node of document.elementsFromPoint(x, y)) {
    const host = node.closest("[data-drop]");
    if (host) return host.dataset.drop;
  }
  return null;
}
