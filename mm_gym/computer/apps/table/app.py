"""Tasks of the data table: sort, filter and page to the rows in question, then act on them alone."""

from __future__ import annotations

from functools import partial
from typing import Any

from mm_gym.computer.actions import Answer
from mm_gym.computer.apps.content import CITIES, Rng, between, people, phrase, pick, shuffled, some, some_day
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, choose, press, write
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec

STATUS = ("open", "approved", "rejected", "on hold")
ACTIONS = {
    "approved": ("approve", "Approve"),
    "rejected": ("reject", "Reject"),
    "on hold": ("hold", "Put on hold"),
}
COUNTS = {1: 7, 2: 18, 3: 40}

Row = dict[str, Any]


def _table(rng: Rng, level: int) -> Draft:
    count = COUNTS[level]
    refs = some(rng, range(1000, 9999), count)
    amounts = some(rng, range(1200, 980_000, 25), count)
    customers, cities = people(rng, max(5, count // 2)), some(rng, CITIES, 6)
    rows = [
        {
            "id": f"r{i + 1}",
            "ref": f"{pick(rng, ('INV', 'ORD', 'REQ'))}-{refs[i]}",
            "who": customers[i % len(customers)],
            "city": pick(rng, cities),
            "amount": int(amounts[i]),
            "day": some_day(rng).isoformat(),
            "status": pick(rng, ("open", "open", *STATUS)),
        }
        for i in range(count)
    ]
    options = {
        "brand": pick(rng, ("Backoffice", "Records", "Ledgerly")),
        "title": pick(rng, ("Invoices", "Requests", "Orders")),
    }
    return Draft(rng, {"rows": shuffled(rng, rows)}, options)


def _target(rng: Rng, draft: Draft, level: int) -> Row:
    """A row; at level 1 anywhere, above that beyond the first page."""
    return pick(rng, draft.after["rows"] if level == 1 else draft.after["rows"][8:])


def _find(page: PageQuery, row_id: str) -> Moves:
    """Turn pages until the row is shown."""
    rows = [r["id"] for r in page.state()["data"]["rows"]]
    wanted, now = rows.index(row_id) // 8, page.state()["ui"]["page"]
    for _ in range(abs(wanted - now)):
        yield from press(page, "next" if wanted > now else "prev")


def status(rng: Rng, level: int) -> Instance:
    draft = _table(rng, level)
    row = _target(rng, draft, level)
    new = pick(rng, [s for s in ACTIONS if s != row["status"]])
    row["status"] = new
    goal = phrase(
        rng,
        ("{v}: {x}.", "{v} the entry {x} and no other.", "Please deal with {x}: {v}."),
        v=ACTIONS[new][1],
        x=row["ref"],
    )
    return draft.make(goal, partial(_solve_act, row_id=row["id"], k=ACTIONS[new][0]))


def _solve_act(page: PageQuery, row_id: str, k: str) -> Moves:
    yield from _find(page, row_id)
    yield from press(page, f"pick:{row_id}", within="page")
    yield from press(page, k)


def delete(rng: Rng, level: int) -> Instance:
    draft = _table(rng, level)
    row = _target(rng, draft, level)
    draft.after["rows"].remove(row)
    goal = phrase(rng, ("Delete {x} from the table.", "Remove the row {x}."), x=row["ref"])
    return draft.make(goal, partial(_solve_act, row_id=row["id"], k="delete"), keeps=("rows",))


def extreme(rng: Rng, level: int) -> Instance:
    """The row is named by its place in an order."""
    draft = _table(rng, level)
    column, words = pick(rng, (("amount", ("lowest", "highest")), ("day", ("oldest", "most recent"))))
    rows = draft.after["rows"]
    if column == "day":  # no ties
        for row, day in zip(rows, some(rng, range(300), len(rows)), strict=True):
            value = some_day(rng, f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}", 0).isoformat()
            row["day"] = value
            next(r for r in draft.data["rows"] if r["id"] == row["id"])["day"] = value
    down = bool(rng.random() < 0.5)
    count = 1 if level < 3 else 3
    ordered = sorted(rows, key=lambda r: r[column], reverse=down)[:count]
    new = pick(rng, [s for s in ACTIONS if any(r["status"] != s for r in ordered)])
    for row in ordered:
        row["status"] = new
    what = f"{words[down]} {'amount' if column == 'amount' else 'entry'}"
    one = f"the entry with the {what}" if column == "amount" else f"the {what}"
    many = (
        f"the three entries with the {words[down]} amounts"
        if column == "amount"
        else f"the three {words[down]} entries"
    )
    goal = phrase(
        rng,
        ("{v} {x}.", "Sort the table and find {x}: {v}."),
        v=ACTIONS[new][1],
        x=one if count == 1 else many,
    )
    solve = partial(
        _solve_extreme, column=column, down=down, ids=tuple(r["id"] for r in ordered), k=ACTIONS[new][0]
    )
    return draft.make(goal, solve)


def _solve_extreme(page: PageQuery, column: str, down: bool, ids: tuple[str, ...], k: str) -> Moves:
    for _ in range(1 + down):
        yield from press(page, f"sort:{column}", within="page")
    for row_id in ids:
        yield from press(page, f"pick:{row_id}", within="page")
    yield from press(page, k)


def group(rng: Rng, level: int) -> Instance:
    """All rows of one status and city: filter, search, select."""
    draft = _table(rng, level)
    row = pick(rng, draft.after["rows"])
    old = row["status"]
    chosen = [r for r in draft.after["rows"] if r["status"] == old and r["city"] == row["city"]]
    new = pick(rng, [s for s in ACTIONS if s != old])
    for r in chosen:
        r["status"] = new
    goal = phrase(
        rng,
        ("{v} every entry from {c} that is “{s}”.", "All entries with the status “{s}” in {c}: {v}."),
        v=ACTIONS[new][1],
        c=row["city"],
        s=old,
    )
    solve = partial(_solve_group, status=old, city=row["city"], count=len(chosen), k=ACTIONS[new][0])
    return draft.make(goal, solve)


def _solve_group(page: PageQuery, status: str, city: str, count: int, k: str) -> Moves:
    yield from press(page, f"filter:{status}")
    yield from write(page, "search", city)
    for n in range((count + 7) // 8):
        if n:
            yield from press(page, "next")
        yield from press(page, "pick-page", within="page")
    yield from press(page, k)


def edit(rng: Rng, level: int) -> Instance:
    draft = _table(rng, level)
    row = _target(rng, draft, level)
    row["amount"] = between(rng, 10, 9000) * 100
    values = {"amount": f"{row['amount'] / 100:.2f}"}
    parts = [f"the amount is {values['amount']}"]
    if level > 1:
        row["city"] = values["city"] = pick(rng, [c for c in CITIES if c != row["city"]])
        parts.append(f"the city is {row['city']}")
    new = pick(rng, [s for s in STATUS if s != row["status"]]) if level > 2 else None
    if new:
        row["status"] = new
        parts.append(f"the status is {new}")
    goal = phrase(
        rng,
        ("Edit {x}: {w}.", "Correct the entry {x} so that {w}."),
        x=row["ref"],
        w=", ".join(parts),
    )
    return draft.make(goal, partial(_solve_edit, row_id=row["id"], values=values, status=new))


def _solve_edit(page: PageQuery, row_id: str, values: dict[str, str], status: str | None) -> Moves:
    yield from _find(page, row_id)
    yield from press(page, f"edit:{row_id}", within="page")
    for k, value in values.items():
        yield from write(page, k, value)
    if status:
        yield from choose(page, "status", status)
    yield from press(page, "save")


def count(rng: Rng, level: int) -> Instance:
    """A question that the filter answers."""
    draft = _table(rng, level)
    wanted = pick(rng, STATUS)
    number = sum(r["status"] == wanted for r in draft.data["rows"])
    goal = phrase(
        rng,
        (
            "How many entries are “{s}”? Answer with the number.",
            "Count the entries with the status “{s}” and answer with the number.",
        ),
        s=wanted,
    )
    return draft.make(goal, partial(_solve_count, status=wanted, answer=str(number)), answer=str(number))


def _solve_count(page: PageQuery, status: str, answer: str) -> Moves:
    yield from press(page, f"filter:{status}")
    yield Answer(answer)


_task = partial(TaskSpec, app="table", min_size=(640, 480))

TASKS = [
    _task("status", generate=status, tags=("grounding", "navigation")),
    _task("delete", generate=delete, tags=("grounding", "navigation")),
    _task("extreme", generate=extreme, tags=("reading",)),
    _task("group", generate=group, tags=("reading", "typing")),
    _task("edit", generate=edit, tags=("forms", "typing", "navigation")),
    _task("count", generate=count, tags=("reading",)),
]
