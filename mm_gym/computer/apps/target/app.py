"""Very small screens, from 96 x 96 pixels, for tiny models: press what is named, look again, remember.

`reveal`, `recall` and `told` can't be done from the first picture: what counts appears after a press.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from mm_gym.computer.apps.content import COLORS, FRUIT, Rng, phrase, pick, shuffled, some, words
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, carry, press, write
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec

SMALL = (96, 96)
LABELS = words("Save Cancel OK No Yes Back Send Help Edit Stop Open Close")
SHAPES = ("circle", "square", "triangle", "diamond", "star", "cross")
BRIGHT = ("red", "yellow", "green", "blue", "pink", "gray")
TITLES = ("Notes", "Setup", "Untitled", "Printer", "Paint", "Update")
FORWARD = ("Next", "Start", "Go on", "Show")
HOW_MANY = {1: 2, 2: 3, 3: 4}

Screen = dict[str, Any]


def _draft(rng: Rng, screens: list[Screen], **data: Any) -> Draft:
    return Draft(rng, {"done": [], **data}, {"screens": screens})


def _screen(rng: Rng, kind: str, items: list[dict[str, Any]], **more: Any) -> Screen:
    return {"title": pick(rng, TITLES), "kind": kind, "grid": [2, 2], "items": items, **more}


def _placed(rng: Rng, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    cells = some(rng, [[c, r] for r in range(2) for c in range(2)], len(items))
    return [{**item, "cell": cell} for item, cell in zip(items, cells, strict=True)]


def _colored(rng: Rng, names: list[str]) -> list[dict[str, Any]]:
    return _placed(rng, [{"id": n, "name": n, "color": COLORS[n]} for n in names])


def _labelled(rng: Rng, labels: list[str]) -> list[dict[str, Any]]:
    return _placed(rng, [{"id": label, "label": label} for label in labels])


def _solve_presses(page: PageQuery, ids: tuple[str, ...]) -> Moves:
    for name in ids:
        yield from press(page, name)


def _presses(draft: Draft, goal: str, *ids: str) -> Instance:
    draft.after["done"].extend(ids)
    return draft.make(goal, partial(_solve_presses, ids=ids), irreversible=("done",))


def label(rng: Rng, level: int) -> Instance:
    labels = some(rng, LABELS, HOW_MANY[level])
    draft = _draft(rng, [_screen(rng, "buttons", _labelled(rng, labels))])
    goal = phrase(rng, ("Click {x}.", "Press the {x} button.", "Choose “{x}”."), x=labels[0])
    return _presses(draft, goal, labels[0])


def color(rng: Rng, level: int) -> Instance:
    names = some(rng, BRIGHT, HOW_MANY[level])
    draft = _draft(rng, [_screen(rng, "buttons", _colored(rng, names))])
    goal = phrase(rng, ("Click the {x} button.", "Press {x}.", "Pick the {x} one."), x=names[0])
    return _presses(draft, goal, names[0])


def shape(rng: Rng, level: int) -> Instance:
    names = some(rng, SHAPES, HOW_MANY[level])
    hues = some(rng, BRIGHT, len(names))
    items = [{"id": n, "name": n, "shape": n, "color": COLORS[c]} for n, c in zip(names, hues, strict=True)]
    draft = _draft(rng, [_screen(rng, "buttons", _placed(rng, items))])
    goal = phrase(rng, ("Click the {x}.", "Press the {x}.", "Where is the {x}? Click it."), x=names[0])
    return _presses(draft, goal, names[0])


def order(rng: Rng, level: int) -> Instance:
    names = some(rng, BRIGHT, HOW_MANY[level])
    draft = _draft(rng, [_screen(rng, "buttons", _colored(rng, names))])
    ids = names[: max(2, level)]
    goal = phrase(
        rng, ("Click {x}, in this order.", "Press one after the other: {x}."), x=", then ".join(ids)
    )
    return _presses(draft, goal, *ids)


def _opening(rng: Rng, **more: Any) -> tuple[str, Screen]:
    go = pick(rng, FORWARD)
    return go, _screen(rng, "buttons", _labelled(rng, [go]), go=go, **more)


def reveal(rng: Rng, level: int) -> Instance:
    """What to press appears only after the first press."""
    go, first = _opening(rng)
    if rng.random() < 0.5:
        names = some(rng, BRIGHT, HOW_MANY[level])
        items, what = _colored(rng, names), f"the {names[0]} button"
    else:
        names = some(rng, LABELS, HOW_MANY[level])
        items, what = _labelled(rng, names), names[0]
    draft = _draft(rng, [first, _screen(rng, "buttons", items)])
    goal = phrase(rng, ("Click {go}, then {x}.", "Press {go}; on the next screen press {x}."), go=go, x=what)
    return _presses(draft, goal, go, names[0])


def recall(rng: Rng, level: int) -> Instance:
    """A colour is shown on the first screen and must be picked on the second."""
    names = some(rng, BRIGHT, HOW_MANY[level])
    go, first = _opening(rng, swatch=COLORS[names[0]])
    draft = _draft(
        rng,
        [
            {**first, "grid": [1, 1], "items": [{"id": go, "label": go}]},
            _screen(rng, "buttons", _colored(rng, names)),
        ],
    )
    goal = phrase(
        rng,
        (
            "Look at the colour, click {go}, then click the same colour.",
            "Remember the colour. Press {go} and pick it again.",
        ),
        go=go,
    )
    return _presses(draft, goal, go, names[0])


def told(rng: Rng, level: int) -> Instance:
    """The screen itself says what to press, after the first press."""
    names = some(rng, LABELS, HOW_MANY[level])
    go, first = _opening(rng)
    draft = _draft(rng, [first, _screen(rng, "buttons", _labelled(rng, names), note=f"Press {names[0]}")])
    goal = phrase(
        rng, ("Click {go}, then do what the screen says.", "Press {go} and follow the note."), go=go
    )
    return _presses(draft, goal, go, names[0])


def scroll(rng: Rng, level: int) -> Instance:
    names = [n.capitalize() for n in shuffled(rng, FRUIT)[: 5 + 3 * level]]
    draft = _draft(rng, [_screen(rng, "list", [{"id": n, "label": n} for n in names])])
    chosen = pick(rng, names[-2 - 2 * level :])
    draft.after["done"].append(chosen)
    goal = phrase(rng, ("Click {x} in the list.", "Choose {x}; it may be further down."), x=chosen)
    return draft.make(goal, partial(press, k=chosen, within="place"), irreversible=("done",))


def tick(rng: Rng, level: int) -> Instance:
    names = [n.capitalize() for n in some(rng, FRUIT, HOW_MANY[level])]
    chosen = sorted(names[: max(1, level - 1)])
    items = [{"id": n, "label": n} for n in shuffled(rng, names)] + [{"id": "ok", "label": "OK", "go": True}]
    draft = _draft(rng, [_screen(rng, "checks", items)], ticked=[])
    draft.after.update(ticked=chosen, done=[" ".join(chosen)])
    goal = phrase(rng, ("Tick {x} and press OK.", "Select {x}, then click OK."), x=" and ".join(chosen))
    return draft.make(goal, partial(_solve_presses, ids=(*chosen, "ok")), irreversible=("done",))


def word(rng: Rng, level: int) -> Instance:
    text = " ".join(some(rng, FRUIT, level))
    items: list[dict[str, Any]] = [{"id": "field"}, {"id": "ok", "label": "OK", "go": True}]
    draft = _draft(rng, [_screen(rng, "field", items)])
    draft.after["done"].append(text)
    goal = phrase(rng, ("Type “{x}” and press OK.", "Enter {x} in the field, then OK."), x=text)
    return draft.make(goal, partial(_solve_word, text=text), irreversible=("done",))


def _solve_word(page: PageQuery, text: str) -> Moves:
    yield from write(page, "field", text)
    yield from press(page, "ok")


def drag(rng: Rng, level: int) -> Instance:
    names = some(rng, BRIGHT, level)
    items = _placed(rng, [{"id": "block"}, *({"id": n, "slot": True, "color": COLORS[n]} for n in names)])
    draft = _draft(rng, [_screen(rng, "drag", items)])
    draft.after["done"].append(names[0])
    goal = phrase(
        rng, ("Drag the block onto the {x} field.", "Move the block to {x} with the mouse."), x=names[0]
    )
    return draft.make(goal, partial(carry, k="block", target=names[0]), irreversible=("done",))


def _spec(name: str, generate: Any, *tags: str) -> TaskSpec:
    return TaskSpec(name, "target", generate, tags=tags, min_size=SMALL)


TASKS = [
    _spec("label", label, "grounding", "tiny"),
    _spec("color", color, "grounding", "tiny"),
    _spec("shape", shape, "grounding", "tiny"),
    _spec("order", order, "grounding", "tiny"),
    _spec("reveal", reveal, "grounding", "navigation", "tiny"),
    _spec("recall", recall, "memory", "tiny"),
    _spec("told", told, "reading", "tiny"),
    _spec("scroll", scroll, "scrolling", "tiny"),
    _spec("tick", tick, "forms", "tiny"),
    _spec("word", word, "typing", "tiny"),
    _spec("drag", drag, "drag", "tiny"),
]
