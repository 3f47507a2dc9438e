"""Tasks of the text editor: selecting by mouse and keyboard, formatting, replacing and rewriting."""

from __future__ import annotations

from functools import partial
from typing import Any

from mm_gym.computer.actions import Click, Keys, Type
from mm_gym.computer.apps.content import NOUNS, PROJECTS, Rng, between, phrase, pick, some
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, at, choose, press, write
from mm_gym.computer.tasks import Instance, PageQuery, Rect, TaskSpec, click, reveal

Block = dict[str, Any]
SENTENCES = (
    "The {p} team met on Tuesday to discuss the {n}.",
    "Nobody had read the {n} before the meeting.",
    "We agreed to send the {n} to all partners.",
    "A second draft of the {n} is due next month.",
    "The costs of {p} remain below the plan.",
    "Visitors praised the quiet rooms and the garden.",
    "Rain delayed the work on the roof by a week.",
    "Every member may propose one topic.",
    "The library lends laptops for three days.",
    "Questions go to the front desk.",
)
TITLES = ("Notes on {p}", "{p}: a short report", "Minutes of the {p} group", "Plan for {p}")
COUNTS = {1: 3, 2: 5, 3: 9}
STYLES = {"h1": "Title", "h2": "Heading", "quote": "Quote"}
MARKS = {"b": ("bold", "bold"), "i": ("italic", "italic"), "u": ("underline", "underlined")}


def _run(text: str, marks: str = "") -> dict[str, str]:
    return {"text": text, "marks": marks}


def _document(rng: Rng, level: int) -> Draft:
    """A title and paragraphs of one or two sentences; no sentence comes twice."""
    project = pick(rng, PROJECTS)
    sentences = [s.format(p=project, n=pick(rng, NOUNS)) for s in some(rng, SENTENCES, COUNTS[level])]
    blocks: list[Block] = [_block("h1", pick(rng, TITLES).format(p=project))]
    blocks += [_block("p", s) for s in sentences]
    options = {"brand": pick(rng, ("Papyrus", "Scribe", "Writer's Desk")), "file": f"{project.lower()}.doc"}
    return Draft(rng, {"blocks": blocks}, options)


def _block(kind: str, text: str) -> Block:
    return {"kind": kind, "align": "", "runs": [_run(text)]}


def _paragraph(rng: Rng, draft: Draft) -> int:
    return between(rng, 1, len(draft.data["blocks"]) - 1)


def _text(draft: Draft, index: int) -> str:
    return str(draft.data["blocks"][index]["runs"][0]["text"])


def _word(rng: Rng, draft: Draft, index: int) -> tuple[int, str]:
    """A word that comes once in the document, and where it starts in the block."""
    text, whole = _text(draft, index), " ".join(_text(draft, i) for i in range(len(draft.data["blocks"])))
    words = [w.strip(".,:") for w in text.split()]
    once = [w for w in words if len(w) > 3 and "-" not in w and whole.count(w) == 1]
    chosen = pick(rng, once or [max(words, key=len)])
    return text.index(chosen), chosen


def _short(text: str) -> str:
    return " ".join(text.split()[:4]) + "…"


def _marked(text: str, start: int, word: str, marks: str) -> list[dict[str, str]]:
    parts = [_run(text[:start]), _run(word, marks), _run(text[start + len(word) :])]
    return [p for p in parts if p["text"]]


def _place(page: PageQuery, index: int, start: int, end: int) -> Rect:
    """Where a stretch of a block's text stands on the screen."""
    box = page.evaluate(
        f"(() => {{ const t = document.querySelector('{at(f'block:{index}')}').firstChild;"
        " const r = document.createRange();"
        f" r.setStart(t, {start}); r.setEnd(t, {end}); const b = r.getClientRects()[0];"
        " return [b.x, b.y, b.width, b.height]; })()"
    )
    return Rect(*box)


def _show(page: PageQuery, index: int) -> Moves:
    yield from reveal(page, at(f"block:{index}"), within=at("desk"), margin=30)


def _select_word(page: PageQuery, index: int, start: int, word: str) -> Moves:
    yield from _show(page, index)
    yield click(_place(page, index, start, start + len(word)), count=2)


def _select_block(page: PageQuery, index: int) -> Moves:
    yield from _show(page, index)
    yield click(_place(page, index, 0, 3), count=3)


# -- formatting ----------------------------------------------------------------------------------------


def emphasis(rng: Rng, level: int) -> Instance:
    draft = _document(rng, level)
    index = _paragraph(rng, draft)
    start, word = _word(rng, draft, index)
    marks = some(rng, tuple(MARKS), 1 if level < 3 else 2)
    kept = "".join(m for m in "biu" if m in marks)
    draft.after["blocks"][index]["runs"] = _marked(_text(draft, index), start, word, kept)
    goal = phrase(
        rng,
        ("Make the word “{w}” {m}.", "Set “{w}” in {m} type; leave the rest as it is."),
        w=word,
        m=" and ".join(MARKS[m][1] for m in kept),
    )
    return draft.make(
        goal,
        partial(_solve_emphasis, index=index, start=start, word=word, ks=tuple(MARKS[m][0] for m in kept)),
    )


def _solve_emphasis(page: PageQuery, index: int, start: int, word: str, ks: tuple[str, ...]) -> Moves:
    yield from _select_word(page, index, start, word)
    for k in ks:
        yield from press(page, k)


def style(rng: Rng, level: int) -> Instance:
    draft = _document(rng, level)
    index = _paragraph(rng, draft)
    kind = pick(rng, tuple(STYLES))
    draft.after["blocks"][index]["kind"] = kind
    goal = phrase(
        rng,
        ("Give the paragraph “{t}” the style {s}.", "Turn the paragraph that begins “{t}” into a {s}."),
        t=_short(_text(draft, index)),
        s=STYLES[kind],
    )
    return draft.make(goal, partial(_solve_style, index=index, kind=kind))


def _solve_style(page: PageQuery, index: int, kind: str) -> Moves:
    yield from _show(page, index)
    yield click(_place(page, index, 0, 5))
    yield from choose(page, "style", kind)


def align(rng: Rng, level: int) -> Instance:
    draft = _document(rng, level)
    index = between(rng, 0, len(draft.data["blocks"]) - 1)
    side, words = pick(rng, (("center", "Centre"), ("right", "Align to the right")))
    draft.after["blocks"][index]["align"] = side
    goal = phrase(rng, ("{w}: “{t}”.", "{w} the line “{t}”."), w=words, t=_short(_text(draft, index)))
    return draft.make(goal, partial(_solve_align, index=index, side=side))


def _solve_align(page: PageQuery, index: int, side: str) -> Moves:
    yield from _show(page, index)
    yield click(_place(page, index, 0, 5))
    yield from press(page, f"align:{side}")


def bullets(rng: Rng, level: int) -> Instance:
    """Some paragraphs in a row become a list: a selection over several blocks."""
    draft = _document(rng, level)
    last = len(draft.data["blocks"]) - 1
    first = between(rng, 1, last - 1)
    end = min(last, first + level)
    for index in range(first, end + 1):
        draft.after["blocks"][index]["kind"] = "li"
    goal = phrase(
        rng,
        (
            "Make a bulleted list of the paragraphs from “{a}” to “{b}”.",
            "Turn “{a}” to “{b}” into bullet points.",
        ),
        a=_short(_text(draft, first)),
        b=_short(_text(draft, end)),
    )
    return draft.make(goal, partial(_solve_bullets, first=first, end=end))


def _solve_bullets(page: PageQuery, first: int, end: int) -> Moves:
    yield from _show(page, first)
    yield click(_place(page, first, 2, 5))
    yield from _show(page, end)
    yield click(_place(page, end, 2, 5), modifiers=("Shift",))
    yield from press(page, "list")


# -- rewriting -----------------------------------------------------------------------------------------


def replace_word(rng: Rng, level: int) -> Instance:
    draft = _document(rng, level)
    index = _paragraph(rng, draft)
    start, word = _word(rng, draft, index)
    new = pick(rng, [p for p in PROJECTS if p != word])
    text = _text(draft, index)
    draft.after["blocks"][index]["runs"] = [_run(text[:start] + new + text[start + len(word) :])]
    goal = phrase(
        rng,
        ("Replace the word “{a}” by “{b}”.", "Where it says “{a}”, write “{b}” instead."),
        a=word,
        b=new,
    )
    return draft.make(goal, partial(_solve_replace_word, index=index, start=start, word=word, new=new))


def _solve_replace_word(page: PageQuery, index: int, start: int, word: str, new: str) -> Moves:
    yield from _select_word(page, index, start, word)
    if page.evaluate("getSelection().toString()").endswith(" "):
        yield Keys(("Shift", "ArrowLeft"))
    yield Type(new)


def replace_all(rng: Rng, level: int) -> Instance:
    draft = _document(rng, level)
    old = pick(rng, [p for p in PROJECTS if p in _text(draft, 0)])
    new = pick(rng, [p for p in PROJECTS if p != old])
    for block in draft.after["blocks"]:
        block["runs"] = [_run(r["text"].replace(old, new)) for r in block["runs"]]
    goal = phrase(
        rng,
        (
            "Replace every “{a}” in the document by “{b}”.",
            "The project is now called {b}: change {a} everywhere.",
        ),
        a=old,
        b=new,
    )
    return draft.make(goal, partial(_solve_replace_all, old=old, new=new))


def _solve_replace_all(page: PageQuery, old: str, new: str) -> Moves:
    yield from press(page, "find-open")
    yield from write(page, "find", old)
    yield from write(page, "replace", new)
    yield from press(page, "replace-all")


def append(rng: Rng, level: int) -> Instance:
    """New paragraphs below the last one."""
    draft = _document(rng, level)
    used = {_text(draft, i) for i in range(len(draft.data["blocks"]))}
    lines = [
        f"Next {w} at the {n}."
        for w, n in zip(("step", "stop", "talk"), some(rng, ("harbour", "station", "school"), 3), strict=True)
    ]
    lines = [line for line in lines if line not in used][: 1 if level < 3 else 2]
    draft.after["blocks"] += [_block("p", line) for line in lines]
    goal = phrase(
        rng,
        (
            "Add below the last paragraph, each on a line of its own: {t}",
            "Write at the end of the document, as new paragraphs: {t}",
        ),
        t=" / ".join(lines),
    )
    return draft.make(goal, partial(_solve_append, index=len(draft.data["blocks"]) - 1, lines=tuple(lines)))


def _solve_append(page: PageQuery, index: int, lines: tuple[str, ...]) -> Moves:
    yield from _show(page, index)
    yield Click(*_place(page, index, 0, 5).center)
    yield Keys(("Control", "End"))
    yield Type("".join("\n" + line for line in lines))


def remove(rng: Rng, level: int) -> Instance:
    draft = _document(rng, level)
    index = _paragraph(rng, draft)
    text = _text(draft, index)
    del draft.after["blocks"][index]
    goal = phrase(
        rng, ("Delete the paragraph “{t}”.", "Remove the paragraph that begins with “{t}”."), t=_short(text)
    )
    return draft.make(goal, partial(_solve_remove, index=index))


def _solve_remove(page: PageQuery, index: int) -> Moves:
    yield from _show(page, index)
    yield click(_place(page, index, 0, 3))
    yield Keys(("Home",))
    while True:  # a paragraph may take several lines
        yield Keys(("Shift", "End"))
        yield Keys(("Delete",))
        left = page.evaluate(f"document.querySelector('{at(f'block:{index}')}')?.textContent.trim() ?? ''")
        if not left:
            return


_task = partial(TaskSpec, app="editor", min_size=(640, 480))

TASKS = [
    _task("emphasis", generate=emphasis, tags=("grounding",)),
    _task("style", generate=style, tags=("grounding",)),
    _task("align", generate=align, tags=("grounding",)),
    _task("bullets", generate=bullets, tags=("grounding", "scrolling")),
    _task("word", generate=replace_word, tags=("typing",)),
    _task("replace", generate=replace_all, tags=("forms", "typing")),
    _task("append", generate=append, tags=("typing", "keyboard", "scrolling")),
    _task("remove", generate=remove, tags=("keyboard",)),
]
