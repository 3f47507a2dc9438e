// A data table: sort, filter, search, pages, selection, bulk actions and editing. data.rows in their stored order.
"use strict";

const STATUS = { open: "#1c7ed6", approved: "#2f9e44", rejected: "#e03131", "on hold": "#e8590c" };
const COLUMNS = [
  ["ref", "Number"],
  ["who", "Customer"],
  ["city", "City"],
  ["amount", "Amount"],
  ["day", "Date"],
  ["status", "Status"],
];
const PAGE = 8;

app.start({
  ui: { query: "", status: "all", sort: null, down: false, page: 0, picked: [], open: null, draft: null },
  view: (data, ui) => {
    const rows = listed(data, ui),
      pages = Math.max(1, Math.ceil(rows.length / PAGE));
    ui.page = Math.min(ui.page, pages - 1);
    const shown = rows.slice(ui.page * PAGE, ui.page * PAGE + PAGE);
    return [
      h(
        "header",
        { class: "topbar" },
        h("div", { class: "brand" }, icon("list"), app.options.brand),
        h("span", { class: "muted clip grow" }, app.options.title),
        h(
          "div",
          { class: "search" },
          icon("search"),
          input({
            k: "search",
            value: ui.query,
            placeholder: "Search",
            label: "Search",
            oninput: (v) => {
              ui.query = v;
              ui.page = 0;
            },
          }),
        ),
      ),
      h(
        "div",
        { class: "tools" },
        ui.picked.length
          ? bulk(data, ui)
          : [
              icon("filter", "muted"),
              ["all", ...Object.keys(STATUS)].map((s) =>
                button(s, {
                  k: "filter:" + s,
                  pressed: ui.status === s,
                  onclick: () => {
                    ui.status = s;
                    ui.page = 0;
                    ui.picked = [];
                  },
                }),
              ),
              h("span", { class: "grow" }),
            ],
      ),
      h(
        "div",
        { class: "scroll grow main", "data-k": "page" },
        h(
          "table",
          null,
          heads(ui, shown),
          h(
            "tbody",
            null,
            shown.map((r) => line(ui, r)),
          ),
        ),
        shown.length === 0 && empty("search", "No rows match"),
      ),
      h(
        "footer",
        { class: "pager" },
        h("span", { class: "muted grow" }, `${rows.length} rows`),
        button("", {
          k: "prev",
          icon: "back",
          title: "Previous page",
          disabled: ui.page === 0,
          onclick: () => {
            ui.page -= 1;
          },
        }),
        h("span", null, `Page ${ui.page + 1} of ${pages}`),
        button("", {
          k: "next",
          icon: "next",
          title: "Next page",
          disabled: ui.page >= pages - 1,
          onclick: () => {
            ui.page += 1;
          },
        }),
      ),
      ui.draft && editor(data, ui),
      toastView(ui),
    ];
  },
});

function listed(data, ui) {
  const words = ui.query.trim().toLowerCase();
  const rows = data.rows.filter(
    (r) =>
      (ui.status === "all" || r.status === ui.status) &&
      (!words || `${r.ref} ${r.who} ${r.city}`.toLowerCase().includes(words)),
  );
  if (!ui.sort) return rows;
  const sign = ui.down ? -1 : 1;
  return [...rows].sort((a, b) => sign * (a[ui.sort] < b[ui.sort] ? -1 : a[ui.sort] > b[ui.sort] ? 1 : 0));
}

function heads(ui, shown) {
  const all = shown.length > 0 && shown.every((r) => ui.picked.includes(r.id)),
    ids = shown.map((r) => r.id);
  return h(
    "thead",
    null,
    h(
      "tr",
      null,
      h(
        "th",
        null,
        checkbox({
          k: "pick-page",
          checked: all,
          onchange: (on) => {
            ui.picked = on ? [...new Set([...ui.picked, ...ids])] : ui.picked.filter((id) => !ids.includes(id));
          },
        }),
      ),
      COLUMNS.map(([key, name]) =>
        h(
          "th",
          {
            class: key === "amount" ? "amount" : null,
            "aria-sort": ui.sort === key ? (ui.down ? "descending" : "ascending") : null,
          },
          h(
            "button",
            {
              class: "head",
              "data-k": "sort:" + key,
              onclick: () => {
                ui.down = ui.sort === key ? !ui.down : false;
                ui.sort = key;
                ui.page = 0;
              },
            },
            name,
            ui.sort === key && icon(ui.down ? "down" : "up"),
          ),
        ),
      ),
      h("th", null),
    ),
  );
}

function line(ui, r) {
  const picked = ui.picked.includes(r.id);
  return h(
    "tr",
    { class: picked ? "on" : "", key: r.id, "data-k": "row:" + r.id },
    h(
      "td",
      null,
      checkbox({
        k: "pick:" + r.id,
        checked: picked,
        onchange: (on) => {
          ui.picked = on ? [...ui.picked, r.id] : ui.picked.filter((x) => x !== r.id);
        },
      }),
    ),
    h("td", { class: "strong" }, r.ref),
    h("td", null, r.who),
    h("td", { class: "city" }, r.city),
    h("td", { class: "amount" }, money(r.amount)),
    h("td", { class: "muted" }, r.day),
    h("td", null, chip(r.status, STATUS[r.status])),
    h(
      "td",
      null,
      button("", {
        k: "edit:" + r.id,
        kind: "quiet",
        icon: "edit",
        title: "Edit",
        onclick: () => {
          ui.draft = { ...r, amount: (r.amount / 100).toFixed(2) };
        },
      }),
    ),
  );
}

function bulk(data, ui) {
  const set = (status) => {
    for (const r of data.rows) if (ui.picked.includes(r.id)) r.status = status;
    app.toast(`${ui.picked.length} ${status}`);
    ui.picked = [];
  };
  return [
    h("b", null, `${ui.picked.length} selected`),
    button("Approve", { k: "approve", icon: "check", onclick: () => set("approved") }),
    button("Reject", { k: "reject", icon: "close", onclick: () => set("rejected") }),
    button("Hold", { k: "hold", icon: "clock", onclick: () => set("on hold") }),
    button("Delete", {
      k: "delete",
      kind: "danger",
      icon: "trash",
      onclick: () => {
        data.rows = data.rows.filter((r) => !ui.picked.includes(r.id));
        ui.picked = [];
      },
    }),
    h("span", { class: "grow" }),
    button("Clear", {
      k: "clear",
      kind: "quiet",
      onclick: () => {
        ui.picked = [];
      },
    }),
  ];
}

function editor(data, ui) {
  const d = ui.draft,
    close = () => {
      ui.draft = null;
    },
    cents = Math.round(Number(d.amount.replace(/,/g, "")) * 100);
  const valid = d.who.trim() && Number.isFinite(cents);
  return dialog({
    title: "Edit " + d.ref,
    onclose: close,
    body: [
      field("Customer", input(bound(d, "who"))),
      field("City", input(bound(d, "city"))),
      field("Amount", input(bound(d, "amount")), { error: valid ? null : "A number, please." }),
      field("Status", select({ ...bound(d, "status"), options: Object.keys(STATUS) })),
    ],
    actions: [
      button("Cancel", { k: "cancel", onclick: close }),
      button("Save", {
        k: "save",
        kind: "primary",
        disabled: !valid,
        onclick: () => {
          Object.assign(
            data.rows.find((r) => r.id === d.id),
            { who: d.who.trim(), city: d.city.trim(), amount: cents, status: d.status },
          );
          close();
          app.toast("Saved");
        },
      }),
    ],
  });
}
