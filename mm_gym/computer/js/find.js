// The rectangles of the visible matches of a CSS selector: (selector, text) => [[x, y, width, height], ...]
((selector, text) => {
  const label = (el) => (typeof el.value === "string" && el.tagName !== "LI" ? el.value : el.textContent);
  return [...document.querySelectorAll(selector)]
    .filter((el) => text === null || label(el).trim() === text || (el.textContent || "").trim() === text)
    .map((el) => el.getBoundingClientRect())
    .filter((box) => box.width > 0 && box.height > 0)
    .map((box) => [box.x, box.y, box.width, box.height]);
})
