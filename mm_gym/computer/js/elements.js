// Lists what a person can see or use on the page, in document order, with stable ids.
// () => [{id, role, name, value, x, y, width, height, interactive, focused, disabled, checked, depth}]
(() => {
  const INTERACTIVE = new Set(["a", "button", "input", "select", "textarea", "option", "summary", "area"]);
  const ROLES = { a: "link", button: "button", select: "combobox", textarea: "textbox", option: "option", img: "image",
    summary: "button", table: "table", tr: "row", td: "cell", th: "columnheader", li: "listitem", h1: "heading",
    h2: "heading", h3: "heading", h4: "heading", label: "label", canvas: "canvas", dialog: "dialog", area: "link" };
  const INPUTS = { checkbox: "checkbox", radio: "radio", button: "button", submit: "button", reset: "button",
    range: "slider", number: "spinbutton", image: "button" };
  const SHAPES = new Set(["rect", "circle", "ellipse", "polygon", "polyline", "line", "path", "text"]);
  const short = (text) => (text || "").replace(/\s+/g, " ").trim().slice(0, 120);
  const own = (el) => [...el.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join(" ");

  window.__mm_gym_next_id = window.__mm_gym_next_id || 1;
  const idOf = (el) => {
    if (!el.dataset.mmGymId) el.dataset.mmGymId = String(window.__mm_gym_next_id++);
    return el.dataset.mmGymId;
  };
  const roleOf = (el, tag) => {
    if (el.getAttribute("role")) return el.getAttribute("role");
    if (tag === "input") return INPUTS[el.type] || "textbox";
    if (el.isContentEditable && (!el.parentElement || !el.parentElement.isContentEditable)) return "textbox";
    const computed = el.computedRole;
    return computed && computed !== "generic" && computed !== "none" ? computed
      : ROLES[tag] || (SHAPES.has(tag) ? "graphic" : "");
  };
  const nameOf = (el, tag) => {
    const labelled = (el.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean)
      .map((id) => document.getElementById(id)).filter(Boolean).map((n) => n.textContent).join(" ");
    const label = el.labels && el.labels.length ? el.labels[0].textContent : "";
    const text = ["input", "select", "textarea", "table", "tr", "ul"].includes(tag) ? "" : el.textContent;
    const button = tag === "input" && ["button", "submit", "reset"].includes(el.type) ? el.value : "";
    return short(el.computedName || el.getAttribute("aria-label") || labelled || label || button || el.alt ||
      el.title || el.placeholder || text);
  };

  const found = [];
  const visit = (el, depth, inside) => {
    const tag = el.tagName.toLowerCase();
    if (["script", "style", "noscript", "template", "head"].includes(tag)) return;
    const style = getComputedStyle(el);
    if (style.display === "none" || el.getAttribute("aria-hidden") === "true") return;
    const box = el.getBoundingClientRect();
    const visible = style.visibility === "visible" && box.width > 0 && box.height > 0 &&
      box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight;
    const role = roleOf(el, tag);
    const pointer = style.cursor === "pointer" && !inside;
    const interactive = INTERACTIVE.has(tag) || el.isContentEditable || pointer || el.tabIndex >= 0 ||
      el.draggable && tag !== "img" && tag !== "a" || el.onclick !== null || SHAPES.has(tag);
    const text = short(own(el));
    let next = depth;
    if (visible && (interactive || role || (text && !inside))) {
      const item = { id: idOf(el), role: role || (interactive ? "clickable" : "text"),
        name: role || interactive ? nameOf(el, tag) : text, x: box.x, y: box.y, width: box.width, height: box.height,
        interactive, depth };
      if (tag === "input" && el.type === "password") item.value = "•".repeat(el.value.length);
      else if (["input", "textarea", "select"].includes(tag)) item.value = short(
        tag === "select" ? [...el.selectedOptions].map((o) => o.label).join(", ") : el.value);
      if (el === document.activeElement && el !== document.body) item.focused = true;
      if (el.disabled) item.disabled = true;
      if (el.checked || el.getAttribute("aria-checked") === "true" || el.getAttribute("aria-selected") === "true")
        item.checked = true;
      found.push(item);
      next = depth + 1;
    }
    const leaf = INTERACTIVE.has(tag) && tag !== "select" || role === "button" || role === "link";
    for (const child of el.children) visit(child, next, inside || leaf);
  };
  if (document.body) visit(document.body, 0, false);
  return found;
})()
