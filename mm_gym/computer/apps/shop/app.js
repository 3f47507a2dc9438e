// Shop: a catalogue, a cart and a checkout. options.products is fixed; data holds cart, wishlist and orders.
"use strict";

const GLYPHS = {
  mug: "M5 6h11v10a3 3 0 0 1-3 3H8a3 3 0 0 1-3-3zM16 9h2a2 2 0 0 1 0 6h-2",
  lamp: "M8 4h8l3 8H5zM12 12v7M8 20h8",
  clock: "M12 4a8 8 0 1 1 0 16a8 8 0 0 1 0-16M12 8v4l3 2",
  pillow: "M5 6c4 1 10 1 14 0c-1 4-1 8 0 12c-4-1-10-1-14 0c1-4 1-8 0-12",
  notebook: "M6 4h12v16H6zM9 4v16M12 8h3",
  pen: "M5 19l1-4L16 5l3 3L9 18z",
  tray: "M4 10h16l-2 8H6zM8 10V6h8v4",
  stapler: "M4 15h16v3H4zM5 12l13-6 1 3-13 6z",
  tent: "M12 5l9 14H3zM12 11l4 8M12 11l-4 8",
  bottle: "M10 3h4v4l2 3v11H8V10l2-3z",
  backpack: "M7 9a5 5 0 0 1 10 0v11H7zM9 14h6v4H9zM10 5V3h4v2",
  lantern: "M9 8h6l1 11H8zM10 8V5h4v3M8 21h8M12 12v3",
  pan: "M4 9h11v2a5 5 0 0 1-11 0zM15 10h6",
  kettle: "M6 10h10l2 9H5zM9 10V7h5v3M18 12l3-2",
  knife: "M4 14L17 5c2 3 1 6-2 8l-5 3zM4 14l3 5",
  bowl: "M4 11h16c0 5-3 8-8 8s-8-3-8-8zM9 20h6",
};
const product = (id) => app.options.products.find((p) => p.id === id);
const emptyAddress = () => ({ name: "", street: "", city: "", zip: "" });
const SHIPPING = [
  ["standard", "Standard", "3 to 5 days", 490],
  ["express", "Express", "Next day", 1290],
  ["pickup", "Pick up in store", "From tomorrow", 0],
];
const PAYMENT = [
  ["card", "Credit card"],
  ["invoice", "Invoice"],
  ["transfer", "Bank transfer"],
];

app.start({
  ui: {
    page: "list",
    product: null,
    variant: null,
    count: 1,
    category: "All",
    sort: "featured",
    query: "",
    address: emptyAddress(),
    shipping: "standard",
    payment: "card",
    code: "",
    tried: false,
  },
  view: (data, ui) => {
    const inCart = data.cart.reduce((n, line) => n + line.count, 0);
    return [
      h(
        "header",
        { class: "topbar" },
        h(
          "button",
          {
            class: "brand btn quiet",
            "data-k": "home",
            onclick: () => {
              ui.page = "list";
              ui.query = "";
            },
          },
          icon("tag"),
          app.options.brand,
        ),
        h(
          "div",
          { class: "search" },
          icon("search"),
          input({
            k: "search",
            value: ui.query,
            placeholder: "Search products",
            label: "Search products",
            oninput: (text) => {
              ui.query = text;
              ui.page = "list";
            },
          }),
        ),
        h("span", { class: "grow" }),
        button(`Cart (${inCart})`, {
          k: "cart",
          icon: "cart",
          onclick: () => {
            ui.page = "cart";
          },
        }),
      ),
      h(
        "div",
        { class: "scroll grow page", "data-k": "page", key: ui.page + (ui.product || "") },
        PAGES[ui.page](data, ui),
      ),
      toastView(ui),
    ];
  },
});

function add(data, id, variant, count) {
  const line = data.cart.find((l) => l.id === id && l.variant === variant);
  if (line) line.count += count;
  else data.cart.push({ id, variant, count });
  app.toast("Added to cart");
}

const picture = (p, big) =>
  h(
    "div",
    { class: `picture ${big ? "big" : ""}`, style: `--hue:${p.hue}` },
    h("svg", { class: "icon", viewBox: "0 0 24 24" }, h("path", { d: GLYPHS[p.thing] })),
  );
const rating = (p) =>
  h(
    "span",
    { class: "rating" },
    icon("star", "fill"),
    p.rating.toFixed(1),
    h("span", { class: "muted" }, ` (${p.reviews})`),
  );
const heart = (data, p) =>
  button("", {
    k: "wish:" + p.id,
    kind: "quiet",
    icon: "star",
    title: "Wish list",
    pressed: data.wishlist.includes(p.id),
    cls: "heart",
    onclick: () => {
      data.wishlist = data.wishlist.includes(p.id)
        ? data.wishlist.filter((x) => x !== p.id)
        : [...data.wishlist, p.id].sort();
    },
  });

function listed(ui) {
  const words = ui.query.trim().toLowerCase();
  const found = app.options.products.filter((p) =>
    words ? p.name.toLowerCase().includes(words) : ui.category === "All" || p.category === ui.category,
  );
  const by = {
    cheap: (a, b) => a.price - b.price,
    dear: (a, b) => b.price - a.price,
    rated: (a, b) => b.rating - a.rating || a.price - b.price,
  }[ui.sort];
  return by ? [...found].sort(by) : found;
}

const PAGES = {
  list: (data, ui) => [
    h(
      "div",
      { class: "row wrap filters" },
      ["All", ...app.options.categories].map((c) =>
        button(c, {
          k: "category:" + c,
          pressed: ui.category === c && !ui.query,
          onclick: () => {
            ui.category = c;
            ui.query = "";
          },
        }),
      ),
      h("span", { class: "grow" }),
      select({
        ...bound(ui, "sort"),
        label: "Sort",
        options: [
          { value: "featured", label: "Featured" },
          { value: "cheap", label: "Price: low to high" },
          { value: "dear", label: "Price: high to low" },
          { value: "rated", label: "Best rated" },
        ],
      }),
    ),
    h(
      "div",
      { class: "cards" },
      listed(ui).map((p) =>
        h(
          "article",
          { class: "card", key: p.id },
          h(
            "button",
            {
              class: "card-open",
              "data-k": "open:" + p.id,
              onclick: () => {
                ui.page = "product";
                ui.product = p.id;
                ui.variant = p.variants[0] || null;
                ui.count = 1;
              },
            },
            picture(p),
            h("span", { class: "name" }, p.name),
            rating(p),
          ),
          h(
            "div",
            { class: "row between" },
            h("b", { class: "price" }, money(p.price)),
            h(
              "span",
              { class: "row tight" },
              heart(data, p),
              p.variants.length
                ? null
                : button("Add", { k: "add:" + p.id, icon: "plus", onclick: () => add(data, p.id, null, 1) }),
            ),
          ),
        ),
      ),
    ),
    listed(ui).length === 0 && empty("search", "No products found"),
  ],

  product: (data, ui) => {
    const p = product(ui.product);
    return [
      button("Back", {
        k: "back",
        kind: "quiet",
        icon: "back",
        onclick: () => {
          ui.page = "list";
        },
      }),
      h(
        "div",
        { class: "detail" },
        picture(p, true),
        h(
          "div",
          { class: "col grow" },
          h("h1", null, p.name),
          rating(p),
          h("b", { class: "price big" }, money(p.price)),
          h("p", { class: "muted" }, p.text),
          p.variants.length > 0 &&
            h(
              "div",
              { class: "row wrap" },
              p.variants.map((v) =>
                button(v, {
                  k: "variant:" + v,
                  pressed: v === ui.variant,
                  onclick: () => {
                    ui.variant = v;
                  },
                }),
              ),
            ),
          h(
            "div",
            { class: "row wrap" },
            stepper("count", ui.count, (n) => {
              ui.count = n;
            }),
            button("Add to cart", {
              k: "add",
              kind: "primary",
              icon: "cart",
              onclick: () => add(data, p.id, ui.variant, ui.count),
            }),
            heart(data, p),
          ),
        ),
      ),
    ];
  },

  cart: (data, ui) => [
    h("h1", null, "Your cart"),
    data.cart.length === 0
      ? empty("cart", "Your cart is empty")
      : [
          data.cart.map((line) => {
            const p = product(line.id),
              key = p.id + (line.variant ? ":" + line.variant : "");
            return h(
              "div",
              { class: "line", key },
              picture(p),
              h(
                "div",
                { class: "grow" },
                h("b", null, p.name),
                h("div", { class: "muted" }, [line.variant, money(p.price) + " each"].filter(Boolean).join(" · ")),
              ),
              stepper("line:" + key, line.count, (n) => {
                line.count = n;
              }),
              h("b", { class: "sum" }, money(p.price * line.count)),
              button("", {
                k: "remove:" + key,
                kind: "quiet",
                icon: "trash",
                title: "Remove",
                onclick: () => {
                  data.cart = data.cart.filter((l) => l !== line);
                },
              }),
            );
          }),
          h(
            "div",
            { class: "row between totals" },
            h("b", null, "Total ", money(total(data))),
            button("Check out", {
              k: "checkout",
              kind: "primary",
              onclick: () => {
                ui.page = "checkout";
                ui.tried = false;
              },
            }),
          ),
        ],
  ],

  checkout: (data, ui) => {
    const a = ui.address,
      missing = (name) => (ui.tried && !a[name].trim() ? "Please fill this in" : null);
    const cost = SHIPPING.find(([k]) => k === ui.shipping)[3];
    return [
      h("h1", null, "Checkout"),
      h(
        "div",
        { class: "two" },
        h(
          "section",
          { class: "panel col" },
          h("h2", null, "Deliver to"),
          [
            ["name", "Full name"],
            ["street", "Street and number"],
            ["city", "City"],
            ["zip", "Postal code"],
          ].map(([name, label]) =>
            field(
              label,
              input({
                k: "address:" + name,
                value: a[name],
                oninput: (v) => {
                  a[name] = v;
                },
              }),
              { error: missing(name) },
            ),
          ),
        ),
        h(
          "div",
          { class: "col" },
          h(
            "section",
            { class: "panel col" },
            h("h2", null, "Delivery"),
            SHIPPING.map(([key, label, note, price]) =>
              radio({
                k: "shipping:" + key,
                name: "shipping",
                checked: ui.shipping === key,
                label,
                note: `${note} · ${price ? money(price) : "free"}`,
                onchange: () => {
                  ui.shipping = key;
                },
              }),
            ),
          ),
          h(
            "section",
            { class: "panel col" },
            h("h2", null, "Payment"),
            PAYMENT.map(([key, label]) =>
              radio({
                k: "payment:" + key,
                name: "payment",
                checked: ui.payment === key,
                label,
                onchange: () => {
                  ui.payment = key;
                },
              }),
            ),
            field("Voucher", input({ ...bound(ui, "code"), placeholder: "Optional" })),
          ),
        ),
      ),
      h(
        "div",
        { class: "row between totals" },
        h("b", null, "To pay ", money(total(data) + cost)),
        button("Place order", {
          k: "place",
          kind: "primary",
          icon: "check",
          onclick: () => {
            ui.tried = true;
            if (Object.values(a).some((v) => !v.trim())) return;
            const address = Object.fromEntries(Object.entries(a).map(([k, v]) => [k, v.trim()]));
            data.orders.push({
              lines: data.cart,
              address,
              shipping: ui.shipping,
              payment: ui.payment,
              voucher: ui.code.trim().toUpperCase(),
            });
            data.cart = [];
            ui.page = "done";
          },
        }),
      ),
    ];
  },

  done: (data, ui) => [
    h(
      "div",
      { class: "empty" },
      icon("truck"),
      h("h1", null, "Thank you for your order"),
      h("p", null, "We have sent a confirmation by mail."),
      button("Continue shopping", {
        k: "continue",
        onclick: () => {
          ui.page = "list";
          ui.address = emptyAddress();
          ui.code = "";
        },
      }),
    ),
  ],
};

const total = (data) => data.cart.reduce((sum, line) => sum + product(line.id).price * line.count, 0);

const stepper = (k, count, onchange) =>
  h(
    "div",
    { class: "stepper" },
    button("", {
      k: k + ":less",
      kind: "quiet",
      icon: "minus",
      title: "Fewer",
      disabled: count <= 1,
      onclick: () => onchange(count - 1),
    }),
    h("b", null, count),
    button("", {
      k: k + ":more",
      kind: "quiet",
      icon: "plus",
      title: "More",
      disabled: count >= 9,
      onclick: () => onchange(count + 1),
    }),
  );
