"""Tasks of the board: dragging cards, and changing what stands on them."""

from __future__ import annotations

from functools import partial
from typing import Any

from mm_gym.computer.apps.content import NOUNS, PROJECTS, Rng, between, people, phrase, pick, some, words
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, at, choose, press, write
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec, drag, reveal

LABELS = ("bug", "design", "docs", "feature", "urgent")
COLUMN_SETS = (
    ("Ideas", "Next", "Doing", "Done"),
    ("Backlog", "In progress", "Review", "Released"),
    ("To do", "This week", "Waiting", "Finished"),
)
VERBS = words("Write Fix Plan Test Draft Review Update Print Send Translate Check Archive")


def _board(rng: Rng, level: int) -> Draft:
    names = pick(rng, COLUMN_SETS)[: 3 if level == 1 else 4]
    count = len(names) * (2 + level)
    owners = sorted(people(rng, 5))
    topics = some(rng, [(v, p, n) for v in VERBS for p in PROJECTS for n in NOUNS[:12]], count)
    cards: dict[str, Any] = {}
    columns: list[dict[str, Any]] = [
        {"id": f"c{i + 1}", "name": name, "cards": []} for i, name in enumerate(names)
    ]
    for index, (verb, project, noun) in enumerate(topics):
        card_id = f"k{index + 1}"
        cards[card_id] = {
            "title": f"{verb} {project} {noun}",
            "labels": sorted(some(rng, LABELS, between(rng, 0, 2))),
            "owner": pick(rng, owners) if rng.random() < 0.5 else None,
        }
        columns[index % len(columns)]["cards"].append(card_id)
    options = {
        "brand": pick(rng, ("Taskwall", "Cardflow", "Lanes")),
        "people": owners,
        "board": f"{pick(rng, PROJECTS)} team",
    }
    return Draft(rng, {"columns": columns, "cards": cards}, options)


def _some_card(rng: Rng, draft: Draft) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A card's id, the card and its column (of the expected data)."""
    column = pick(rng, [c for c in draft.after["columns"] if c["cards"]])
    card_id = pick(rng, column["cards"])
    return card_id, draft.after["cards"][card_id], column


def _drag(page: PageQuery, card_id: str, target: str, fy: float) -> Moves:
    yield from reveal(page, at(f"card:{card_id}"), within=at(f"cards:{_lane(page, card_id)}"))
    rect = page.find(at(target))
    yield drag(page.find(at(f"card:{card_id}")), rect.at(0.5, fy))


def _lane(page: PageQuery, card_id: str) -> str:
    columns = page.state()["data"]["columns"]
    return str(next(c["id"] for c in columns if card_id in c["cards"]))


def move(rng: Rng, level: int) -> Instance:
    """Drop on the column's lower end: the card becomes its last."""
    draft = _board(rng, level)
    moves: list[tuple[str, str]] = []
    parts = []
    for _ in range(level):
        card_id, card, column = _some_card(rng, draft)
        if card_id in [m[0] for m in moves]:
            continue
        target = pick(rng, [c for c in draft.after["columns"] if c is not column])
        column["cards"].remove(card_id)
        target["cards"].append(card_id)
        moves.append((card_id, target["id"]))
        parts.append(f"“{card['title']}” to the end of {target['name']}")
    goal = phrase(
        rng,
        ("Move {what}.", "Drag {what}.", "On the board, move {what}."),
        what=", then ".join(parts),
    )
    return draft.make(goal, partial(_solve_move, moves=tuple(moves)))


def _solve_move(page: PageQuery, moves: tuple[tuple[str, str], ...]) -> Moves:
    for card_id, column in moves:  # the strip with "Add a card" belongs to the column's end
        yield from _drag(page, card_id, f"adder:{column}", 0.5)


def before(rng: Rng, level: int) -> Instance:
    """Drop on a card: the moved card takes the place before it."""
    draft = _board(rng, level)
    card_id, card, column = _some_card(rng, draft)
    target = pick(rng, [c for c in draft.after["columns"] if c is not column])
    other = target["cards"][0]
    column["cards"].remove(card_id)
    target["cards"].insert(0, card_id)
    goal = phrase(
        rng,
        (
            "Move “{x}” to {c}, directly above “{y}” (drop it on that card).",
            "Drag “{x}” onto “{y}” in {c}, so that it stands above it.",
        ),
        x=card["title"],
        c=target["name"],
        y=draft.after["cards"][other]["title"],
    )
    return draft.make(goal, partial(_solve_before, card_id=card_id, other=other))


def _solve_before(page: PageQuery, card_id: str, other: str) -> Moves:
    yield from _drag(page, card_id, f"card:{other}", 0.5)


def add(rng: Rng, level: int) -> Instance:
    draft = _board(rng, level)
    columns = some(rng, draft.after["columns"], min(level, 2))
    made = []
    for index, column in enumerate(columns):
        title = f"{pick(rng, VERBS)} the {pick(rng, NOUNS)}"
        draft.after["cards"][f"new{index + 1}"] = {"title": title, "labels": [], "owner": None}
        column["cards"].append(f"new{index + 1}")
        made.append((column["id"], title))
    what = ", then ".join(f"“{t}” to {c['name']}" for (_, t), c in zip(made, columns, strict=True))
    goal = phrase(rng, ("Add new cards: {what}.", "Create on the board: {what}."), what=what)
    return draft.make(goal, partial(_solve_add, made=tuple(made)))


def _solve_add(page: PageQuery, made: tuple[tuple[str, str], ...]) -> Moves:
    for column, title in made:
        yield from press(page, f"adder:{column}")
        yield from write(page, "title", title, end="\n")


def _open(page: PageQuery, card_id: str) -> Moves:
    yield from press(page, f"card:{card_id}", within=f"cards:{_lane(page, card_id)}")


def delete(rng: Rng, level: int) -> Instance:
    draft = _board(rng, level)
    card_id, card, column = _some_card(rng, draft)
    column["cards"].remove(card_id)
    del draft.after["cards"][card_id]
    goal = phrase(rng, ("Delete the card “{x}”.", "Remove “{x}” from the board."), x=card["title"])
    return draft.make(goal, partial(_solve_delete, card_id=card_id), keeps=("cards",))


def _solve_delete(page: PageQuery, card_id: str) -> Moves:
    yield from _open(page, card_id)
    yield from press(page, "delete")


def assign(rng: Rng, level: int) -> Instance:
    draft = _board(rng, level)
    card_id, card, _ = _some_card(rng, draft)
    card["owner"] = pick(rng, [p for p in draft.options["people"] if p != card["owner"]])
    labels = some(rng, [x for x in LABELS if x not in card["labels"]], level - 1)
    card["labels"] = sorted([*card["labels"], *labels])
    extra = f" and add the label{'s' * (len(labels) > 1)} {' and '.join(labels)}" if labels else ""
    goal = phrase(
        rng,
        ("Make {who} the owner of the card “{x}”{extra}.", "Assign “{x}” to {who}{extra}."),
        who=card["owner"],
        x=card["title"],
        extra=extra,
    )
    return draft.make(
        goal, partial(_solve_assign, card_id=card_id, owner=card["owner"], labels=tuple(labels))
    )


def _solve_assign(page: PageQuery, card_id: str, owner: str, labels: tuple[str, ...]) -> Moves:
    yield from _open(page, card_id)
    for label in labels:
        yield from press(page, f"label:{label}")
    yield from choose(page, "owner", owner)


_task = partial(TaskSpec, app="kanban", min_size=(640, 480))

SCENES = {"board": _board}
"""What the tasks of tasks.yaml start from."""

TASKS = [
    _task("move", generate=move, tags=("drag",)),
    _task("before", generate=before, tags=("drag",)),
    _task("add", generate=add, tags=("forms", "typing")),
    _task("delete", generate=delete, tags=("grounding", "scrolling")),
    _task("assign", generate=assign, tags=("forms",)),
]
