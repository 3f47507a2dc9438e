"""Tasks of the spreadsheet: entering, correcting, summing, formatting, sorting and reading a table."""

from __future__ import annotations

from functools import partial
from typing import Any

from mm_gym.computer.actions import Answer, Keys, Type
from mm_gym.computer.apps.content import (
    CITIES,
    FIRST_NAMES,
    FRUIT,
    PROJECTS,
    Rng,
    between,
    phrase,
    pick,
    some,
)
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, at, press
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec, click, drag, reveal

COLUMNS = "ABCDEFGHIJ"
ROWS = {1: 5, 2: 9, 3: 18}
WIDTHS = {1: 3, 2: 4, 3: 6}
HEADINGS = (
    ("Person", FIRST_NAMES, ("Hours", "Trips", "Calls", "Points", "Days", "Shifts")),
    ("City", CITIES, ("Visits", "Orders", "Returns", "Stores", "Staff", "Vans")),
    ("Project", PROJECTS, ("Budget", "Spent", "Team", "Tasks", "Weeks", "Risks")),
    ("Fruit", tuple(f.capitalize() for f in FRUIT), ("Boxes", "Price", "Sold", "Left", "Weight", "Crates")),
)


def _sheet(rng: Rng, level: int) -> Draft:
    """A table: headings in row 1, names in column A, numbers in the rest (each column without ties)."""
    first, names, labels = pick(rng, HEADINGS)
    count, width = min(ROWS[level], len(names) - 1), WIDTHS[level]
    cells = {"A1": first}
    for c in range(1, width):
        cells[f"{COLUMNS[c]}1"] = labels[c - 1]
        for r, value in enumerate(some(rng, range(3, 400), count)):
            cells[f"{COLUMNS[c]}{r + 2}"] = str(value)
    for r, name in enumerate(some(rng, names, count)):
        cells[f"A{r + 2}"] = name
    options = {
        "brand": pick(rng, ("Gridly", "Tabula", "Ledger")),
        "file": f"{pick(rng, PROJECTS).lower()}.tab",
        "tab": pick(rng, ("Sheet 1", "Table", "Data")),
    }
    formats = {f"{COLUMNS[c]}1": {"bold": True} for c in range(width)} if rng.random() < 0.5 else {}
    return Draft(rng, {"cells": cells, "formats": formats}, options)


def _shape(draft: Draft) -> tuple[int, int]:
    """(last row, number of columns) of the table."""
    names = draft.data["cells"]
    return max(int(n[1:]) for n in names), len([n for n in names if n[1:] == "1"])


def _show(page: PageQuery, name: str) -> Moves:
    """Scroll a cell into view, clear of the headings (31 px high, 38 px wide)."""
    yield from reveal(page, at(f"cell:{name}"), within=at("sheet"), margin=40)


def _select(page: PageQuery, start: str, end: str | None = None) -> Moves:
    """Click a cell, and shift-click another for a range."""
    yield from _show(page, start)
    yield click(page.find(at(f"cell:{start}")))
    if end is not None and end != start:
        yield from _show(page, end)
        yield click(page.find(at(f"cell:{end}")), modifiers=("Shift",))


def cell(rng: Rng, level: int) -> Instance:
    draft = _sheet(rng, level)
    last, width = _shape(draft)
    name = f"{COLUMNS[between(rng, 0, width)]}{last + between(rng, 1, 1 + level)}"
    value = pick(rng, (str(between(rng, 1, 999)), pick(rng, PROJECTS), pick(rng, FRUIT)))
    draft.after["cells"][name] = value
    goal = phrase(
        rng, ("Enter {v} in cell {n}.", "Type {v} into {n}.", "Cell {n} should say {v}."), v=value, n=name
    )
    return draft.make(goal, partial(_solve_enter, name=name, values=(value,)))


def _solve_enter(page: PageQuery, name: str, values: tuple[str, ...]) -> Moves:
    yield from _select(page, name)
    yield Type("\t".join(values) + "\n")


def correct(rng: Rng, level: int) -> Instance:
    """The cell is named by its row and column heading."""
    draft = _sheet(rng, level)
    last, width = _shape(draft)
    column, row = COLUMNS[between(rng, 1, width - 1)], between(rng, 2, last)
    value = str(between(rng, 400, 999))
    draft.after["cells"][f"{column}{row}"] = value
    cells = draft.data["cells"]
    goal = phrase(
        rng,
        (
            "Change {h} of {who} to {v}.",
            "The {h} of {who} is wrong: it should be {v}. Correct it.",
            "Set {who}'s {h} to {v}.",
        ),
        h=cells[f"{column}1"],
        who=cells[f"A{row}"],
        v=value,
    )
    return draft.make(goal, partial(_solve_enter, name=f"{column}{row}", values=(value,)))


def append(rng: Rng, level: int) -> Instance:
    """A whole row below the table."""
    draft = _sheet(rng, level)
    last, width = _shape(draft)
    taken = {draft.data["cells"][f"A{r}"] for r in range(2, last + 1)}
    values = [pick(rng, [n for n in FIRST_NAMES if n not in taken])]
    values += [str(between(rng, 1, 400)) for _ in range(width - 1)]
    for c, value in enumerate(values):
        draft.after["cells"][f"{COLUMNS[c]}{last + 1}"] = value
    goal = phrase(
        rng,
        ("Add a row below the table: {v}.", "Append this line directly under the last row: {v}."),
        v=", ".join(values),
    )
    return draft.make(goal, partial(_solve_enter, name=f"A{last + 1}", values=tuple(values)))


def formula(rng: Rng, level: int) -> Instance:
    draft = _sheet(rng, level)
    last, width = _shape(draft)
    column = COLUMNS[between(rng, 1, width - 1)]
    function, word = pick(
        rng, (("SUM", "sum"), ("AVERAGE", "average"), ("MAX", "largest value"), ("MIN", "smallest value"))
    )
    text, name = f"={function}({column}2:{column}{last})", f"{column}{last + 2}"
    draft.after["cells"][name] = text
    goal = phrase(
        rng,
        (
            "Put the {w} of the column {h} into cell {n} with the formula {f}(first:last) over its numbers.",
            "In {n}, calculate the {w} of all {h} values; use {f} over the range from first to last row.",
        ),
        w=word,
        h=draft.data["cells"][f"{column}1"],
        n=name,
        f=function,
    )
    return draft.make(goal, partial(_solve_enter, name=name, values=(text,)))


def bold(rng: Rng, level: int) -> Instance:
    draft = _sheet(rng, level)
    draft.data["formats"].clear()
    draft.after["formats"].clear()
    last, width = _shape(draft)
    row = 1 if level == 1 else between(rng, 2, last)
    start, end = f"A{row}", f"{COLUMNS[width - 1]}{row}"
    for c in range(width):
        draft.after["formats"][f"{COLUMNS[c]}{row}"] = {"bold": True}
    what = "the row of headings" if row == 1 else f"the row of {draft.data['cells'][start]}"
    goal = phrase(
        rng,
        ("Make {w} ({a} to {b}) bold.", "Set {w}, cells {a} to {b}, in bold type."),
        w=what,
        a=start,
        b=end,
    )
    return draft.make(goal, partial(_solve_bold, start=start, end=end))


def _solve_bold(page: PageQuery, start: str, end: str) -> Moves:
    yield from _select(page, start, end)
    yield from press(page, "bold")


def fill(rng: Rng, level: int) -> Instance:
    """A range selected by dragging, then a colour."""
    draft = _sheet(rng, level)
    last, width = _shape(draft)
    c1, r1 = between(rng, 0, width - 2), between(rng, 2, last - 1)
    c2, r2 = between(rng, c1, min(width - 1, c1 + 2)), between(rng, r1 + 1, min(last, r1 + 4))
    color = pick(rng, ("yellow", "green", "red", "blue"))
    for r in range(r1, r2 + 1):
        for c in range(c1, c2 + 1):
            draft.after["formats"][f"{COLUMNS[c]}{r}"] = {"fill": color}
    start, end = f"{COLUMNS[c1]}{r1}", f"{COLUMNS[c2]}{r2}"
    goal = phrase(
        rng, ("Fill the cells {a} to {b} with {c}.", "Colour the range {a}:{b} {c}."), a=start, b=end, c=color
    )
    return draft.make(goal, partial(_solve_fill, start=start, end=end, color=color))


def _solve_fill(page: PageQuery, start: str, end: str, color: str) -> Moves:
    yield from _show(page, end)
    yield from _show(page, start)
    yield drag(page.find(at(f"cell:{start}")), page.find(at(f"cell:{end}")))
    yield from press(page, "fill")
    yield from press(page, f"fill:{color}")


def clear(rng: Rng, level: int) -> Instance:
    draft = _sheet(rng, level)
    last, width = _shape(draft)
    column = COLUMNS[between(rng, 1, width - 1)]
    for r in range(2, last + 1):
        del draft.after["cells"][f"{column}{r}"]
    goal = phrase(
        rng,
        ("Empty the column {h} but keep its heading.", "Delete all values of {h}; the heading stays."),
        h=draft.data["cells"][f"{column}1"],
    )
    return draft.make(goal, partial(_solve_clear, start=f"{column}2", end=f"{column}{last}"))


def _solve_clear(page: PageQuery, start: str, end: str) -> Moves:
    yield from _select(page, start, end)
    yield Keys(("Delete",))


def sort(rng: Rng, level: int) -> Instance:
    draft = _sheet(rng, level)
    last, width = _shape(draft)
    c, down = between(rng, 0 if level > 1 else 1, width - 1), bool(rng.random() < 0.5)
    cells: dict[str, Any] = draft.data["cells"]
    rows = [[cells[f"{COLUMNS[k]}{r}"] for k in range(width)] for r in range(2, last + 1)]
    rows.sort(key=lambda row: int(row[c]) if c else row[c], reverse=down)
    for r, row in enumerate(rows):
        for k, value in enumerate(row):
            draft.after["cells"][f"{COLUMNS[k]}{r + 2}"] = value
    if draft.after["cells"] == cells:  # in order already
        return sort(rng, level)
    how = ("Z to A" if down else "A to Z") if c == 0 else ("largest first" if down else "smallest first")
    goal = phrase(
        rng,
        ("Sort the table by {h}, {how}.", "Order the rows by {h} ({how})."),
        h=cells[f"{COLUMNS[c]}1"],
        how=how,
    )
    return draft.make(goal, partial(_solve_sort, name=f"{COLUMNS[c]}1", k="sort:down" if down else "sort:up"))


def _solve_sort(page: PageQuery, name: str, k: str) -> Moves:
    yield from _select(page, name)
    yield from press(page, "sort")
    yield from press(page, k)


def lookup(rng: Rng, level: int) -> Instance:
    """Read the table and answer."""
    draft = _sheet(rng, level)
    last, width = _shape(draft)
    cells, c = draft.data["cells"], between(rng, 1, width - 1)
    heading = cells[f"{COLUMNS[c]}1"]
    row = between(rng, 2, last)
    if level == 1:
        answer, goal = (
            cells[f"{COLUMNS[c]}{row}"],
            f"What is the {heading} of {cells[f'A{row}']}? Answer with the number.",
        )
    else:
        word, best = pick(rng, (("highest", max), ("lowest", min)))
        row = best(range(2, last + 1), key=lambda r: int(cells[f"{COLUMNS[c]}{r}"]))
        answer, goal = (
            cells[f"A{row}"],
            f"Which {cells['A1'].lower()} has the {word} {heading}? Answer with the name.",
        )
    return draft.make(goal, partial(_solve_lookup, name=f"{COLUMNS[c]}{row}", answer=answer), answer=answer)


def _solve_lookup(page: PageQuery, name: str, answer: str) -> Moves:
    yield from _select(page, name)
    yield Answer(answer)


_task = partial(TaskSpec, app="sheet", min_size=(640, 480))

TASKS = [
    _task("cell", generate=cell, tags=("grounding", "typing")),
    _task("correct", generate=correct, tags=("reading", "typing", "scrolling")),
    _task("append", generate=append, tags=("typing", "keyboard")),
    _task("formula", generate=formula, tags=("typing", "reading")),
    _task("bold", generate=bold, tags=("grounding",)),
    _task("fill", generate=fill, tags=("drag",)),
    _task("clear", generate=clear, tags=("grounding", "keyboard")),
    _task("sort", generate=sort, tags=("grounding",)),
    _task("lookup", generate=lookup, tags=("reading", "scrolling")),
]
