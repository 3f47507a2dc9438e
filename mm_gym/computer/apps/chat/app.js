// Chat: channels, people and messages. data.channels: {id: {name, kind, muted, pinned, messages: [{id, from, text, time, reactions}]}}.
"use strict";

const REACTIONS = ["thumb", "check", "heart", "star", "bolt"];

app.start({
  ui: { channel: null, text: "", hover: null, editing: null, query: "", reacting: null },
  view: (data, ui) => {
    ui.channel = ui.channel || app.options.first;
    const c = data.channels[ui.channel];
    return [
      h(
        "header",
        { class: "topbar" },
        h("div", { class: "brand" }, icon("chat"), app.options.brand),
        h("span", { class: "grow" }),
        h(
          "div",
          { class: "search" },
          icon("search"),
          input({ ...bound(ui, "query", "search"), placeholder: "Search here", label: "Search messages" }),
        ),
        avatar(app.options.me),
      ),
      h(
        "div",
        { class: "body" },
        h(
          "nav",
          { class: "side", "data-k": "side" },
          ["channel", "person"].map((kind) => [
            h("div", { class: "muted head" }, kind === "channel" ? "Channels" : "People"),
            app.options.order
              .filter((id) => data.channels[id].kind === kind)
              .map((id) =>
                h(
                  "button",
                  {
                    class: `nav ${ui.channel === id ? "on" : ""}`,
                    "data-k": "go:" + id,
                    onclick: () => {
                      Object.assign(ui, { channel: id, editing: null, query: "", text: "", reacting: null });
                    },
                  },
                  kind === "channel" ? icon("hash") : avatar(data.channels[id].name),
                  h("span", { class: "clip" }, data.channels[id].name),
                  data.channels[id].muted && icon("mute", "muted small"),
                ),
              ),
          ]),
        ),
        h(
          "main",
          { class: "main" },
          h(
            "div",
            { class: "tools" },
            h("h2", { class: "clip" }, (c.kind === "channel" ? "# " : "") + c.name),
            c.pinned && h("span", { class: "muted clip grow pin" }, icon("flag"), textOf(c, c.pinned)),
            h("span", { class: "grow" }),
            button("", {
              k: "mute",
              kind: "quiet",
              icon: c.muted ? "mute" : "bell",
              title: c.muted ? "Unmute" : "Mute",
              pressed: c.muted,
              onclick: () => {
                c.muted = !c.muted;
              },
            }),
          ),
          h(
            "div",
            { class: "scroll grow messages", "data-k": "messages", key: ui.channel },
            shown(ui, c).map((m) => message(ui, c, m)),
          ),
          composer(ui, c),
        ),
      ),
      toastView(ui),
    ];
  },
});

const textOf = (c, id) => c.messages.find((m) => m.id === id)?.text || "";
const shown = (ui, c) => c.messages.filter((m) => m.text.toLowerCase().includes(ui.query.trim().toLowerCase()));

function message(ui, c, m) {
  const mine = m.from === app.options.me,
    react = (id) => {
      const who = m.reactions[id] || [];
      m.reactions[id] = who.includes(app.options.me)
        ? who.filter((x) => x !== app.options.me)
        : [...who, app.options.me];
      if (!m.reactions[id].length) delete m.reactions[id];
      ui.reacting = null;
    };
  return h(
    "article",
    { class: "message", key: m.id, "data-k": "message:" + m.id },
    avatar(m.from),
    h(
      "div",
      { class: "grow" },
      h("div", { class: "row" }, h("b", null, m.from), h("time", { class: "muted" }, m.time)),
      ui.editing === m.id
        ? h(
            "div",
            { class: "col" },
            input({ ...bound(ui, "draft", "edit"), focus: true, onenter: () => saveEdit(ui, m) }),
            h(
              "div",
              { class: "row" },
              button("Save", { k: "edit:save", kind: "primary", onclick: () => saveEdit(ui, m) }),
              button("Cancel", {
                k: "edit:cancel",
                kind: "quiet",
                onclick: () => {
                  ui.editing = null;
                },
              }),
            ),
          )
        : h("p", null, m.text, m.edited && h("small", { class: "muted" }, " (edited)")),
      h(
        "div",
        { class: "row wrap marks" },
        REACTIONS.filter((r) => m.reactions[r]).map((r) =>
          h(
            "button",
            {
              class: `mark ${r} ${m.reactions[r].includes(app.options.me) ? "on" : ""}`,
              "data-k": `mark:${m.id}:${r}`,
              title: r,
              onclick: () => react(r),
            },
            icon(r),
            m.reactions[r].length,
          ),
        ),
      ),
    ),
    h(
      "div",
      { class: "acts" },
      h(
        "div",
        { class: "menu-host" },
        button("", {
          k: "react:" + m.id,
          kind: "quiet",
          icon: "smile",
          title: "React",
          onclick: () => {
            ui.reacting = ui.reacting === m.id ? null : m.id;
          },
        }),
        ui.reacting === m.id &&
          h(
            "div",
            { class: "menu end picker" },
            REACTIONS.map((r) =>
              h(
                "button",
                { class: `btn quiet square ${r}`, title: r, "data-k": `pick:${r}`, onclick: () => react(r) },
                icon(r),
              ),
            ),
          ),
      ),
      menu({
        k: "more:" + m.id,
        button: { icon: "more", kind: "quiet", title: "More" },
        align: "end",
        items: [
          {
            k: "pin:" + m.id,
            label: c.pinned === m.id ? "Unpin" : "Pin",
            icon: "flag",
            onclick: () => {
              c.pinned = c.pinned === m.id ? null : m.id;
            },
          },
          ...(mine
            ? [
                {
                  k: "edit:" + m.id,
                  label: "Edit",
                  icon: "edit",
                  onclick: () => {
                    ui.editing = m.id;
                    ui.draft = m.text;
                  },
                },
                {
                  k: "delete:" + m.id,
                  label: "Delete",
                  icon: "trash",
                  danger: true,
                  onclick: () => {
                    c.messages = c.messages.filter((x) => x !== m);
                    if (c.pinned === m.id) c.pinned = null;
                  },
                },
              ]
            : []),
        ],
      }),
    ),
  );
}

function saveEdit(ui, m) {
  if (!ui.draft.trim()) return;
  if (m.text !== ui.draft.trim()) Object.assign(m, { text: ui.draft.trim(), edited: true });
  ui.editing = null;
}

function composer(ui, c) {
  const send = () => {
    const text = ui.text.trim();
    if (!text) return;
    c.messages.push({
      id: "new" + (c.messages.filter((m) => m.id.startsWith("new")).length + 1),
      from: app.options.me,
      text,
      time: app.options.now,
      reactions: {},
    });
    ui.text = "";
    ui.query = "";
    requestAnimationFrame(() => {
      const list = document.querySelector(".messages");
      list.scrollTop = list.scrollHeight;
    });
  };
  return h(
    "div",
    { class: "composer" },
    input({ ...bound(ui, "text"), placeholder: `Message ${c.name}`, label: "Message", onenter: send }),
    button("Send", { k: "send", kind: "primary", icon: "send", onclick: send }),
  );
}
