// Booking by date: options.form says what is asked; ui holds the choice, data.bookings what was booked.
//   kind: "day" | "range" | "birthday" | "slot" | "repeat" | "typed"
"use strict";

const WEEK = [1, 2, 3, 4, 5, 6, 0];

app.start({
  ui: {
    shown: null,
    day: null,
    from: null,
    to: null,
    slot: null,
    days: [],
    every: 1,
    open: false,
    text: "",
    year: null,
    month: null,
    guests: 1,
    done: false,
  },
  view: (data, ui) => {
    const o = app.options;
    ui.shown = ui.shown || o.today.slice(0, 7);
    return [
      h(
        "header",
        { class: "topbar" },
        h("div", { class: "brand" }, icon("calendar"), o.brand),
        h("span", { class: "grow" }),
        h("span", { class: "muted" }, "Today is " + day.long(o.today)),
      ),
      h(
        "main",
        { class: "scroll grow page", "data-k": "page" },
        ui.done
          ? h(
              "div",
              { class: "empty" },
              icon("check"),
              h("h1", null, "Booked"),
              h("p", null, "You will receive a confirmation."),
              button("Book another", {
                k: "again",
                onclick: () => {
                  Object.assign(ui, { done: false, day: null, from: null, to: null, slot: null, days: [], text: "" });
                },
              }),
            )
          : h(
              "section",
              { class: "panel booking" },
              h("h1", null, o.title),
              h("p", { class: "muted" }, o.text),
              FORMS[o.kind](data, ui),
            ),
      ),
    ];
  },
});

const month = (ui, more) =>
  monthGrid({
    k: "day",
    shown: ui.shown,
    today: app.options.today,
    weekStart: app.options.weekStart,
    onshow: (m) => {
      ui.shown = m;
    },
    ...more,
  });
const book = (data, label, record, ready) =>
  h(
    "div",
    { class: "row between end" },
    h("span", { class: "muted" }, ready ? label : "Nothing chosen yet"),
    button(app.options.verb, {
      k: "book",
      kind: "primary",
      icon: "check",
      disabled: !ready,
      onclick: () => {
        data.bookings.push(record);
        app.ui.done = true;
      },
    }),
  );

const FORMS = {
  day: (data, ui) => [
    h(
      "div",
      { class: "center" },
      month(ui, {
        marks: ui.day ? [ui.day] : [],
        min: app.options.today,
        onpick: (d) => {
          ui.day = d;
        },
      }),
    ),
    book(data, ui.day && day.long(ui.day), { day: ui.day }, ui.day),
  ],

  range: (data, ui) => {
    const pickDay = (d) => {
      if (!ui.from || ui.to || d <= ui.from) {
        ui.from = d;
        ui.to = null;
      } else ui.to = d;
    };
    const nights = ui.from && ui.to ? Math.round((day.parse(ui.to) - day.parse(ui.from)) / 86400000) : 0;
    return [
      h(
        "div",
        { class: "center" },
        month(ui, {
          marks: [ui.from, ui.to].filter(Boolean),
          within: (d) => ui.from && ui.to && d > ui.from && d < ui.to,
          min: app.options.today,
          onpick: pickDay,
        }),
      ),
      h(
        "div",
        { class: "row between" },
        h("span", { class: "strong" }, "Guests"),
        h(
          "div",
          { class: "row" },
          button("", {
            k: "guests:less",
            icon: "minus",
            title: "Fewer",
            disabled: ui.guests <= 1,
            onclick: () => {
              ui.guests -= 1;
            },
          }),
          h("b", null, ui.guests),
          button("", {
            k: "guests:more",
            icon: "plus",
            title: "More",
            disabled: ui.guests >= 8,
            onclick: () => {
              ui.guests += 1;
            },
          }),
        ),
      ),
      book(
        data,
        `${nights} nights, ${ui.from && day.long(ui.from)} – ${ui.to && day.long(ui.to)}`,
        { from: ui.from, to: ui.to, guests: ui.guests },
        ui.from && ui.to,
      ),
    ];
  },

  birthday: (data, ui) => {
    const years = [];
    for (let y = 2015; y >= 1930; y--) years.push(y);
    const shown = ui.year && ui.month !== null ? `${ui.year}-${two(ui.month + 1)}` : null;
    return [
      h(
        "div",
        { class: "row" },
        select({
          k: "year",
          value: ui.year,
          label: "Year",
          options: years.map((y) => ({ value: y, label: String(y) })),
          onchange: (y) => {
            ui.year = y;
            ui.day = null;
          },
        }),
        select({
          k: "month",
          value: ui.month,
          label: "Month",
          options: MONTHS.map((m, i) => ({ value: i, label: m })),
          onchange: (m) => {
            ui.month = m;
            ui.day = null;
          },
        }),
      ),
      h(
        "div",
        { class: "center tall" },
        shown
          ? monthGrid({
              k: "day",
              shown,
              marks: ui.day ? [ui.day] : [],
              weekStart: app.options.weekStart,
              onshow: (m) => {
                ui.year = Number(m.slice(0, 4));
                ui.month = Number(m.slice(5)) - 1;
              },
              onpick: (d) => {
                ui.day = d;
              },
            })
          : empty("calendar", "Choose year and month first"),
      ),
      book(data, ui.day && day.long(ui.day), { day: ui.day }, ui.day),
    ];
  },

  slot: (data, ui) => {
    const free = ui.day ? app.options.slots[ui.day] || [] : [];
    return [
      h(
        "div",
        { class: "two" },
        month(ui, {
          marks: ui.day ? [ui.day] : [],
          min: app.options.today,
          onpick: (d) => {
            ui.day = d;
            ui.slot = null;
          },
        }),
        h(
          "div",
          { class: "slots scroll", "data-k": "slots" },
          ui.day
            ? free.length
              ? free.map((s) =>
                  button(s.time, {
                    k: "slot:" + s.time,
                    disabled: s.taken,
                    pressed: ui.slot === s.time,
                    onclick: () => {
                      ui.slot = s.time;
                    },
                  }),
                )
              : h("p", { class: "muted" }, "No free times that day")
            : h("p", { class: "muted" }, "Pick a day to see its times"),
        ),
      ),
      book(data, `${ui.day && day.long(ui.day)} at ${ui.slot}`, { day: ui.day, slot: ui.slot }, ui.slot),
    ];
  },

  repeat: (data, ui) => [
    field(
      "On",
      h(
        "div",
        { class: "row" },
        WEEK.map((d) =>
          button(DAYS[d].slice(0, 2), {
            k: "weekday:" + d,
            title: DAYS[d],
            pressed: ui.days.includes(d),
            onclick: () => {
              ui.days = ui.days.includes(d) ? ui.days.filter((x) => x !== d) : [...ui.days, d].sort();
            },
          }),
        ),
      ),
    ),
    field(
      "Every",
      select({
        k: "every",
        value: ui.every,
        options: [1, 2, 3, 4].map((n) => ({ value: n, label: n === 1 ? "week" : `${n} weeks` })),
        onchange: (n) => {
          ui.every = n;
        },
      }),
    ),
    field(
      "Until",
      h(
        "div",
        null,
        button(ui.day ? day.long(ui.day) : "Choose a date", {
          k: "until",
          icon: "calendar",
          onclick: () => {
            ui.open = !ui.open;
          },
        }),
      ),
    ),
    ui.open &&
      h(
        "div",
        { class: "panel picker" },
        month(ui, {
          marks: ui.day ? [ui.day] : [],
          min: app.options.today,
          onpick: (d) => {
            ui.day = d;
            ui.open = false;
          },
        }),
      ),
    book(
      data,
      "Repeats on " + ui.days.map((d) => DAYS[d].slice(0, 3)).join(", "),
      { days: ui.days, every: ui.every, until: ui.day },
      ui.days.length && ui.day,
    ),
  ],

  typed: (data, ui) => {
    const parts = ui.text.trim().match(/^(\d{1,2})([./-])(\d{1,2})\2(\d{4})$/),
      order = app.options.order;
    const at = (letter) => Number(parts[[1, 3, 4][order.indexOf(letter)]]);
    const text = parts && `${parts[4]}-${two(at("m"))}-${two(at("d"))}`,
      valid = parts && at("m") <= 12 && at("d") >= 1 && day.text(day.parse(text)) === text;
    return [
      field("Date", input({ ...bound(ui, "text", "date"), placeholder: app.options.placeholder, focus: true }), {
        error: ui.text && !valid ? `Please write it as ${app.options.placeholder}` : null,
        help: `Written as ${app.options.placeholder}`,
      }),
      book(data, valid && day.long(text), { day: text }, valid),
    ];
  },
};
