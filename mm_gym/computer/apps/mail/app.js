// Mail: folders, a list, reading, writing. data.mails in order of arrival (newest first); data.sent in order of sending.
"use strict";

const FOLDERS = [
  ["inbox", "Inbox"],
  ["starred", "Starred"],
  ["archive", "Archive"],
  ["spam", "Spam"],
  ["trash", "Trash"],
];
const folderName = (key) => (FOLDERS.find(([k]) => k === key) || [key, key])[1];

app.start({
  ui: { folder: "inbox", open: null, query: "", checked: [], draft: null },
  view: (data, ui) => [
    h(
      "header",
      { class: "topbar" },
      h("div", { class: "brand" }, icon("inbox"), app.options.brand),
      h(
        "div",
        { class: "search" },
        icon("search"),
        input({
          k: "search",
          value: ui.query,
          placeholder: "Search mail",
          label: "Search mail",
          oninput: (text) => {
            ui.query = text;
            ui.open = null;
          },
        }),
      ),
      h("span", { class: "grow" }),
      avatar(app.options.owner),
    ),
    h(
      "div",
      { class: "body" },
      sidebar(data, ui),
      h("main", { class: "main" }, ui.open ? reading(data, ui) : listing(data, ui)),
    ),
    ui.draft && composer(data, ui),
    toastView(ui),
  ],
});

function sidebar(data, ui) {
  const unread = data.mails.filter((m) => m.folder === "inbox" && !m.read).length;
  const go = (key) => {
    ui.folder = key;
    ui.open = null;
    ui.checked = [];
    ui.query = "";
  };
  return h(
    "nav",
    { class: "side" },
    button("Compose", {
      k: "compose",
      kind: "primary",
      icon: "edit",
      cls: "compose",
      onclick: () => {
        ui.draft = { kind: "new", to: "", subject: "", body: "", ref: null };
      },
    }),
    [...FOLDERS, ["sent", "Sent"]].map(([key, name]) =>
      h(
        "button",
        { class: `nav ${ui.folder === key ? "on" : ""}`, "data-k": "folder:" + key, onclick: () => go(key) },
        icon({ starred: "star", sent: "send" }[key] || key),
        name,
        key === "inbox" && unread > 0 && h("span", { class: "count" }, unread),
      ),
    ),
  );
}

function shown(data, ui) {
  const words = ui.query.trim().toLowerCase();
  return data.mails.filter((m) =>
    words
      ? `${m.from} ${m.subject} ${m.body}`.toLowerCase().includes(words)
      : ui.folder === "starred"
        ? m.starred && m.folder !== "trash"
        : m.folder === ui.folder,
  );
}

function move(ui, mails, folder) {
  for (const m of mails) m.folder = folder;
  app.toast(`${mails.length === 1 ? "Mail" : mails.length + " mails"} moved to ${folderName(folder)}`);
  ui.checked = [];
  ui.open = null;
}

function toolbar(ui, mails, lead) {
  return h(
    "div",
    { class: "tools" },
    lead,
    button("", {
      k: "archive",
      kind: "quiet",
      icon: "archive",
      title: "Archive",
      onclick: () => move(ui, mails, "archive"),
    }),
    button("", { k: "delete", kind: "quiet", icon: "trash", title: "Delete", onclick: () => move(ui, mails, "trash") }),
    button("", {
      k: "unread",
      kind: "quiet",
      icon: "inbox",
      title: "Mark as unread",
      onclick: () => {
        for (const m of mails) m.read = false;
        ui.checked = [];
        ui.open = null;
        app.toast("Marked as unread");
      },
    }),
    menu({
      k: "move",
      button: { label: "Move to", icon: "move", kind: "quiet" },
      items: FOLDERS.filter(([key]) => key !== "starred").map(([key, name]) => ({
        k: "move:" + key,
        label: name,
        icon: key,
        onclick: () => move(ui, mails, key),
      })),
    }),
  );
}

function listing(data, ui) {
  if (ui.folder === "sent" && !ui.query) return sentList(data);
  const mails = shown(data, ui),
    checked = mails.filter((m) => ui.checked.includes(m.id));
  return [
    checked.length
      ? toolbar(ui, checked, h("span", { class: "muted picked" }, `${checked.length} selected`))
      : h(
          "div",
          { class: "tools" },
          h("h2", null, ui.query ? `Results for “${ui.query}”` : folderName(ui.folder)),
          h("span", { class: "muted" }, `${mails.length} mails`),
        ),
    mails.length === 0
      ? empty("inbox", "Nothing here")
      : h(
          "div",
          { class: "scroll grow list", "data-k": "list", key: ui.folder },
          mails.map((m) => line(ui, m)),
        ),
  ];
}

function line(ui, m) {
  const checked = ui.checked.includes(m.id);
  return h(
    "div",
    { class: `mail ${m.read ? "" : "unread"} ${checked ? "checked" : ""}`, key: m.id },
    checkbox({
      k: "check:" + m.id,
      checked,
      onchange: (on) => {
        ui.checked = on ? [...ui.checked, m.id] : ui.checked.filter((id) => id !== m.id);
      },
    }),
    star(m),
    h(
      "button",
      {
        class: "mail-open",
        "data-k": "mail:" + m.id,
        onclick: () => {
          ui.open = m.id;
          m.read = true;
          ui.checked = [];
        },
      },
      avatar(m.from),
      h("span", { class: "who clip" }, m.from),
      h("span", { class: "what clip" }, h("b", null, m.subject), h("span", { class: "muted" }, " – " + m.body)),
      h("time", { class: "muted" }, m.time),
    ),
  );
}

const star = (m) =>
  h(
    "button",
    {
      class: `star ${m.starred ? "on" : ""}`,
      "data-k": "star:" + m.id,
      title: m.starred ? "Remove star" : "Star",
      onclick: () => {
        m.starred = !m.starred;
      },
    },
    icon("star", m.starred ? "fill" : ""),
  );

function reading(data, ui) {
  const m = data.mails.find((x) => x.id === ui.open);
  const write = (kind, prefix) => {
    ui.draft = { kind, to: kind === "reply" ? m.address : "", subject: prefix + m.subject, body: "", ref: m.id };
  };
  return [
    toolbar(
      ui,
      [m],
      button("", {
        k: "back",
        kind: "quiet",
        icon: "back",
        title: "Back",
        onclick: () => {
          ui.open = null;
        },
      }),
    ),
    h(
      "article",
      { class: "scroll grow read", key: m.id, "data-k": "article" },
      h("div", { class: "row" }, h("h1", { class: "grow" }, m.subject), star(m)),
      h(
        "div",
        { class: "row sender" },
        avatar(m.from),
        h("div", { class: "grow" }, h("b", null, m.from), h("div", { class: "muted clip" }, `<${m.address}> to me`)),
        h("time", { class: "muted" }, m.time),
      ),
      m.body.split("\n").map((p) => h("p", null, p)),
      h(
        "div",
        { class: "row" },
        button("Reply", { k: "reply", icon: "reply", onclick: () => write("reply", "Re: ") }),
        button("Forward", { k: "forward", icon: "forward", onclick: () => write("forward", "Fwd: ") }),
      ),
    ),
  ];
}

function sentList(data) {
  return [
    h("div", { class: "tools" }, h("h2", null, "Sent")),
    data.sent.length === 0
      ? empty("send", "Nothing sent yet")
      : h(
          "div",
          { class: "scroll grow list" },
          data.sent.map((s) =>
            h(
              "div",
              { class: "mail sent" },
              avatar(s.to),
              h("span", { class: "who clip" }, "To: " + s.to),
              h("span", { class: "what clip" }, h("b", null, s.subject), h("span", { class: "muted" }, " – " + s.body)),
            ),
          ),
        ),
  ];
}

function composer(data, ui) {
  const d = ui.draft,
    valid = /^\S+@\S+\.\S+$/.test(d.to.trim());
  const send = () => {
    data.sent.unshift({
      kind: d.kind,
      to: d.to.trim().toLowerCase(),
      subject: d.subject.trim(),
      body: d.body.trim(),
      ref: d.ref,
    });
    ui.draft = null;
    app.toast("Mail sent");
  };
  return dialog({
    title: { new: "New mail", reply: "Reply", forward: "Forward" }[d.kind],
    wide: true,
    onclose: () => {
      ui.draft = null;
    },
    body: [
      field("To", input({ ...bound(d, "to"), placeholder: "name@example.com", focus: d.kind !== "reply" }), {
        error: d.to && !valid && d.tried ? "This is not a mail address." : null,
      }),
      field("Subject", input(bound(d, "subject"))),
      field("Message", textarea({ ...bound(d, "body"), rows: 5, focus: d.kind === "reply" })),
    ],
    actions: [
      button("Discard", {
        k: "discard",
        onclick: () => {
          ui.draft = null;
        },
      }),
      button("Send", {
        k: "send",
        kind: "primary",
        icon: "send",
        onclick: () => {
          if (valid) send();
          else d.tried = true;
        },
      }),
    ],
  });
}
