// Runs in every frame before the page's own scripts. It makes what a page can see of time and chance
// deterministic, and keeps on the page what a headless browser would draw outside of it.
(() => {
  // One clock, in whole virtual milliseconds: the browser's finer ones jitter by 0.1 ms between runs.
  const start = Date.now();
  const now = () => Date.now() - start;
  Object.defineProperty(performance, "now", { value: now, configurable: true, writable: true });
  Object.defineProperty(Event.prototype, "timeStamp", { get: now, configurable: true });

  // Animation frames at 60 Hz of virtual time, however many frames the compositor is asked for.
  let due = new Map();
  let last = 0;
  const run = () => {
    const batch = due;
    due = new Map();
    for (const callback of batch.values()) {
      try { callback(now()); } catch (error) { reportError(error); }
    }
  };
  window.requestAnimationFrame = (callback) => {
    if (due.size === 0) setTimeout(run, 16);
    due.set(++last, callback);
    return last;
  };
  window.cancelAnimationFrame = (id) => { due.delete(id); };

  // Math.random from a seed; pages that seed themselves (MiniWoB++) still can.
  let seed = __SEED__ >>> 0;
  Math.random = () => {
    seed = (seed + 0x6d2b79f5) >>> 0;
    let t = seed;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };

  // A caret that does not blink, and drop-down lists drawn inside the page.
  const sheet = new CSSStyleSheet();
  const single = "select:not([multiple]):not([size])";
  sheet.replaceSync(
    "*{caret-animation:manual}" +
    `${single},${single}::picker(select){appearance:base-select!important}` +
    `${single}{padding:0 2px;min-height:0;border-radius:2px;border-color:#767676}` +
    "::picker(select){font:inherit;max-height:60vh;overflow:auto;border:1px solid #767676}" +
    "::-webkit-calendar-picker-indicator{display:none!important}"
  );
  document.adoptedStyleSheets = [sheet];
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) {
    const root = attach.call(this, options);
    root.adoptedStyleSheets = [sheet];
    return root;
  };

  // Native pickers and full screen are windows of their own, for which no frame ever comes.
  const PICKERS = new Set(["date", "time", "datetime-local", "month", "week", "color"]);
  const picks = (event) => event.composedPath().some((el) => el.tagName === "INPUT" && PICKERS.has(el.type));
  window.addEventListener("click", (event) => { if (picks(event)) event.preventDefault(); }, true);
  window.addEventListener("keydown", (event) => {
    const opens = event.key === "F4" || event.key === " " || event.altKey ||
      event.key === "Enter" && event.target.type === "color";
    if (opens && picks(event)) event.preventDefault();
  }, true);
  HTMLInputElement.prototype.showPicker = HTMLSelectElement.prototype.showPicker = () => {};
  const refuse = () => Promise.reject(new TypeError("not available here"));
  Element.prototype.requestFullscreen = Element.prototype.webkitRequestFullscreen = refuse;
  HTMLVideoElement.prototype.requestPictureInPicture = refuse;

  // The episode's own clipboard: the browser's is shared by all episodes on it.
  const take = (event) => {
    let text = event.clipboardData && event.clipboardData.getData("text/plain");
    if (!text) {
      const field = document.activeElement;
      text = field && typeof field.selectionStart === "number"
        ? field.value.slice(field.selectionStart, field.selectionEnd)
        : String(getSelection());
    }
    top.__mm_gym_clipboard = text;
  };
  for (const type of ["copy", "cut"]) window.addEventListener(type, take);

  // file choosers, printing and new windows have no place in an episode
  window.print = () => {};
  window.open = () => null;
})();
