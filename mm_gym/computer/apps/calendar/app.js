// Calendar: a week of events to read, move, change and create. data.events; times are minutes of the day.
"use strict";

const FIRST = 8 * 60,
  LAST = 19 * 60,
  STEP = 30,
  HOUR = 44;
const KINDS = { work: "#1c7ed6", private: "#2f9e44", travel: "#e8590c", team: "#9c36b5" };
const clock = (minutes) => `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
const monday = (text) => day.add(text, -((day.parse(text).getUTCDay() + 6) % 7));
const times = (from) => {
  const out = [];
  for (let t = from; t <= LAST; t += STEP) out.push({ value: t, label: clock(t) });
  return out;
};

app.start({
  ui: { week: null, open: null, draft: null, held: null, picking: false },
  view: (data, ui) => {
    ui.week = ui.week || monday(app.options.today);
    const days = [0, 1, 2, 3, 4].map((n) => day.add(ui.week, n));
    return [
      h(
        "header",
        { class: "topbar" },
        h("div", { class: "brand" }, icon("calendar"), app.options.brand),
        button("Today", {
          k: "today",
          onclick: () => {
            ui.week = monday(app.options.today);
          },
        }),
        button("", {
          k: "prev",
          kind: "quiet",
          icon: "back",
          title: "Previous week",
          onclick: () => {
            ui.week = day.add(ui.week, -7);
          },
        }),
        button("", {
          k: "next",
          kind: "quiet",
          icon: "next",
          title: "Next week",
          onclick: () => {
            ui.week = day.add(ui.week, 7);
          },
        }),
        h("strong", { class: "clip grow" }, `${MONTHS[Number(ui.week.slice(5, 7)) - 1]} ${ui.week.slice(0, 4)}`),
        button("New event", {
          k: "new",
          kind: "primary",
          icon: "plus",
          onclick: () => {
            ui.draft = {
              id: null,
              title: "",
              day: app.options.today,
              start: 540,
              end: 600,
              place: "",
              kind: "work",
              guests: [],
              status: "mine",
            };
          },
        }),
      ),
      h(
        "div",
        { class: "days" },
        h("span", null),
        days.map((d) =>
          h(
            "div",
            { class: d === app.options.today ? "today" : "" },
            DAYS[day.parse(d).getUTCDay()].slice(0, 3),
            " ",
            h("b", null, Number(d.slice(8))),
          ),
        ),
      ),
      h("div", { class: "scroll grow grid-host", "data-k": "grid" }, grid(data, ui, days)),
      ui.open && !ui.draft && details(data, ui),
      ui.draft && editor(data, ui),
      toastView(ui),
    ];
  },
});

function grid(data, ui, days) {
  const hours = [];
  for (let t = FIRST; t < LAST; t += 60)
    hours.push(h("div", { class: "hour", style: `top:${((t - FIRST) / 60) * HOUR}px` }, h("span", null, clock(t))));
  return h(
    "div",
    { class: "grid", style: `height:${((LAST - FIRST) / 60) * HOUR}px` },
    hours,
    days.map((d, column) =>
      h(
        "div",
        { class: "column", "data-drop": d, "data-k": "column:" + d, style: `--column:${column}`, key: d },
        data.events.filter((e) => e.day === d && e.status !== "declined").map((e) => block(data, ui, e)),
      ),
    ),
  );
}

function block(data, ui, e) {
  const held = ui.held && ui.held.id === e.id ? ui.held : null;
  const top = ((e.start - FIRST) / 60) * HOUR,
    height = ((e.end - e.start) / 60) * HOUR - 2,
    brief = height < HOUR, // no room for a third line
    times = `${clock(e.start)}–${clock(e.end)}`;
  return h(
    "div",
    {
      class: `event ${e.status === "invited" ? "invited" : ""} ${held ? "held" : ""}`,
      key: e.id,
      "data-k": "event:" + e.id,
      role: "button",
      "aria-label": `${e.title}, ${clock(e.start)}`,
      style:
        `top:${top}px;height:${height}px;--chip:${KINDS[e.kind]};` +
        (held ? `transform:translate(${held.dx}px,${held.dy}px)` : ""),
      onmousedown: (event) => grab(event, ui, e),
    },
    h("b", null, e.title),
    h("span", { class: "clip" }, brief && e.place ? `${times}, ${e.place}` : times),
    !brief && e.place && h("span", { class: "clip" }, e.place),
  );
}

function grab(event, ui, e) {
  if (event.button !== 0) return;
  const from = [event.clientX, event.clientY];
  follow({
    move: (x, y) => {
      ui.held = { id: e.id, dx: x - from[0], dy: y - from[1] };
    },
    drop: (x, y) => {
      const far = Math.hypot(x - from[0], y - from[1]) > 6,
        target = dropAt(x, y);
      ui.held = null;
      if (!far) ui.open = e.id;
      else if (target) {
        const start = e.start + Math.round((((y - from[1]) / HOUR) * 60) / STEP) * STEP;
        if (start >= FIRST && start + e.end - e.start <= LAST) {
          e.end += start - e.start;
          e.start = start;
          e.day = target;
        }
      }
    },
  });
}

function details(data, ui) {
  const e = data.events.find((x) => x.id === ui.open),
    close = () => {
      ui.open = null;
    };
  const answer = (status) => {
    e.status = status;
    close();
    app.toast(status === "accepted" ? "Accepted" : "Declined");
  };
  const line = (name, text) => text && h("div", { class: "row" }, icon(name, "muted"), h("span", null, text));
  return dialog({
    title: e.title,
    onclose: close,
    body: [
      line("clock", `${day.long(e.day)}, ${clock(e.start)} – ${clock(e.end)}`),
      line("pin", e.place),
      line("user", e.guests.join(", ")),
      h("div", null, chip(e.kind, KINDS[e.kind])),
    ],
    actions:
      e.status === "invited"
        ? [
            button("Decline", { k: "decline", onclick: () => answer("declined") }),
            button("Accept", { k: "accept", kind: "primary", onclick: () => answer("accepted") }),
          ]
        : [
            button("Delete", {
              k: "delete",
              kind: "danger",
              icon: "trash",
              onclick: () => {
                data.events = data.events.filter((x) => x !== e);
                close();
                app.toast("Event deleted");
              },
            }),
            button("Edit", {
              k: "edit",
              icon: "edit",
              onclick: () => {
                ui.draft = { ...e, guests: [...e.guests] };
              },
            }),
          ],
  });
}

function editor(data, ui) {
  const d = ui.draft,
    close = () => {
      ui.draft = null;
      ui.open = null;
      ui.picking = false;
    };
  const save = () => {
    if (!d.title.trim() || d.end <= d.start) return;
    const event = {
      ...d,
      title: d.title.trim(),
      place: d.place.trim(),
      id: d.id || "new" + (data.events.filter((e) => e.id.startsWith("new")).length + 1),
    };
    if (d.id)
      Object.assign(
        data.events.find((e) => e.id === d.id),
        event,
      );
    else data.events.push(event);
    ui.week = monday(d.day);
    close();
    app.toast("Event saved");
  };
  return dialog({
    title: d.id ? "Edit event" : "New event",
    onclose: close,
    body: [
      field("Title", input({ ...bound(d, "title"), focus: true })),
      h(
        "div",
        { class: "row when" },
        field(
          "Date",
          h(
            "div",
            { class: "menu-host" },
            button(day.long(d.day), {
              k: "date",
              icon: "calendar",
              onclick: () => {
                ui.picking = ui.picking ? false : d.day.slice(0, 7);
              },
            }),
          ),
        ),
        field(
          "From",
          select({
            k: "start",
            value: d.start,
            label: "From",
            options: times(FIRST).slice(0, -1),
            onchange: (v) => {
              d.end = Math.min(LAST, d.end + v - d.start);
              d.start = v;
            },
          }),
        ),
        field("To", select({ ...bound(d, "end"), label: "To", options: times(d.start + STEP) })),
      ),
      ui.picking &&
        h(
          "div",
          { class: "panel picker" },
          monthGrid({
            k: "pick",
            shown: ui.picking,
            marks: [d.day],
            today: app.options.today,
            weekStart: 1,
            onshow: (m) => {
              ui.picking = m;
            },
            onpick: (text) => {
              d.day = text;
              ui.picking = false;
            },
          }),
        ),
      field("Place", input(bound(d, "place"))),
      field(
        "Guests",
        h(
          "div",
          { class: "row wrap" },
          app.options.people.map((p) =>
            button(p, {
              k: "guest:" + p,
              pressed: d.guests.includes(p),
              onclick: () => {
                d.guests = d.guests.includes(p) ? d.guests.filter((g) => g !== p) : [...d.guests, p].sort();
              },
            }),
          ),
        ),
      ),
      field(
        "Calendar",
        h(
          "div",
          { class: "row wrap" },
          Object.keys(KINDS).map((kind) =>
            radio({
              k: "kind:" + kind,
              name: "kind",
              checked: d.kind === kind,
              label: kind,
              onchange: () => {
                d.kind = kind;
              },
            }),
          ),
        ),
      ),
    ],
    actions: [
      button("Cancel", { k: "cancel", onclick: close }),
      button("Save", { k: "save", kind: "primary", onclick: save }),
    ],
  });
}
