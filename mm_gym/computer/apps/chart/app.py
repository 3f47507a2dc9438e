"""Tasks of the charts: reading bars, lines and slices, marking them, and answering from them."""

from __future__ import annotations

from functools import partial
from typing import Any

from mm_gym.computer.actions import Answer, Click
from mm_gym.computer.apps.content import (
    CITIES,
    COLORS,
    FRUIT,
    PROJECTS,
    Rng,
    between,
    phrase,
    pick,
    some,
    words,
)
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, at, press
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec, reveal

MONTHS = words("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec")
SUBJECTS = (
    ("Sales", "units"),
    ("Visitors", "people"),
    ("Energy", "kWh"),
    ("Rainfall", "mm"),
    ("Orders", "items"),
    ("Calls", "calls"),
)
SERIES_COLORS = ("blue", "orange", "green", "purple", "red", "teal")
SIZES = {1: (4, 1), 2: (6, 2), 3: (9, 3)}  # labels, series

Set = dict[str, Any]


def _sets(rng: Rng, level: int, count: int) -> list[Set]:
    """Data sets over the same labels; within a set all values differ, by enough to be seen."""
    length, width = SIZES[level]
    names = pick(rng, (tuple(FRUIT), tuple(CITIES), tuple(PROJECTS)))
    labels = (
        MONTHS[(start := between(rng, 0, 12 - length)) : start + length]
        if rng.random() < 0.6
        else [n[:8].capitalize() for n in some(rng, [n for n in names if len(n) < 8], length)]
    )
    sets = []
    for index, (subject, unit) in enumerate(some(rng, SUBJECTS, count)):
        values = some(rng, range(12, 12 + 7 * length * width * 2, 7), length * width)
        owners = some(rng, ["North", "South", "East", "West", "2024", "2025"], width)
        hues = some(rng, SERIES_COLORS, width)
        series = [
            {"name": o, "color": COLORS[c], "values": [int(v) for v in values[i * length : (i + 1) * length]]}
            for i, (o, c) in enumerate(zip(owners, hues, strict=True))
        ]
        sets.append(
            {"id": f"s{index + 1}", "name": subject, "unit": unit, "labels": labels, "series": series}
        )
    return sets


def _charts(rng: Rng, level: int, kind: str = "bar", count: int = 2) -> Draft:
    sets = _sets(rng, level, count)
    data = {"kinds": {s["id"]: kind for s in sets}, "hidden": [], "flagged": []}
    return Draft(rng, data, {"brand": pick(rng, ("Insight", "Figures", "Pulse")), "sets": sets})


def _enter(page: PageQuery, set_id: str) -> Moves:
    if page.state()["ui"]["set"] != set_id:
        yield from press(page, f"set:{set_id}")


def _pick_part(page: PageQuery, part: str) -> Moves:
    """Click where the part is not covered: a pie's slice off its bounding box's middle."""
    yield from _enter(page, part.split("/")[0])
    k = f"part:{part}"
    yield from reveal(page, at(k), within=at("page"))
    x, y = page.evaluate(_POINT_ON.replace("SELECTOR", at(k)))
    yield Click(int(x), int(y))


_POINT_ON = """(() => {
  const node = document.querySelector('SELECTOR'), box = node.getBoundingClientRect();
  const parts = [0.5, 0.35, 0.65, 0.2, 0.8, 0.1, 0.9];
  for (const f of parts) for (const g of parts) {
    const x = Math.floor(box.x + box.width * f), y = Math.floor(box.y + box.height * g);
    if (document.elementFromPoint(x, y) === node) return [x, y];
  }
  throw new Error('covered: ' + node.dataset.k);
})()"""


def _flag(draft: Draft, goal: str, part: str) -> Instance:
    draft.after["flagged"].append(part)
    return draft.make(goal, partial(_solve_flag, part=part))


def _solve_flag(page: PageQuery, part: str) -> Moves:
    yield from _pick_part(page, part)
    yield from press(page, "flag", within="page")


def extreme(rng: Rng, level: int) -> Instance:
    """The highest or lowest bar (or point) of a series."""
    draft = _charts(rng, level, pick(rng, ("bar", "line")), count=1 if level == 1 else 2)
    chosen = draft.options["sets"][0 if level < 3 else 1]
    series = pick(rng, chosen["series"])
    word, best = pick(rng, (("highest", max), ("lowest", min)))
    label = chosen["labels"][series["values"].index(best(series["values"]))]
    goal = phrase(
        rng,
        (
            "Flag the {w} value of {s} in the chart {c}.",
            "In {c}, find where {s} is {w}, click it and flag it.",
        ),
        w=word,
        s=series["name"],
        c=chosen["name"],
    )
    return _flag(draft, goal, f"{chosen['id']}/{series['name']}/{label}")


def slice_(rng: Rng, level: int) -> Instance:
    draft = _charts(rng, level, "pie", count=1)
    chosen = draft.options["sets"][0]
    chosen["series"] = chosen["series"][:1]
    values = chosen["series"][0]["values"]
    word, place = pick(
        rng,
        (("largest", -1), ("smallest", 0)) if level < 3 else (("second largest", -2), ("second smallest", 1)),
    )
    label = chosen["labels"][values.index(sorted(values)[place])]
    goal = phrase(rng, ("Flag the {w} slice.", "Click the {w} slice of the pie and flag it."), w=word)
    return _flag(draft, goal, f"{chosen['id']}/{chosen['series'][0]['name']}/{label}")


def value(rng: Rng, level: int) -> Instance:
    """A number that shows exactly only after a click."""
    draft = _charts(rng, level, pick(rng, ("bar", "line")))
    chosen, index = pick(rng, draft.options["sets"]), between(rng, 0, SIZES[level][0] - 1)
    series = pick(rng, chosen["series"])
    goal = phrase(
        rng,
        (
            "What is the value of {s} for {x} in the chart {c}? Answer with the number.",
            "Chart {c}: how many {u} has {s} at {x}? Answer with the number.",
        ),
        s=series["name"],
        x=chosen["labels"][index],
        c=chosen["name"],
        u=chosen["unit"],
    )
    part = f"{chosen['id']}/{series['name']}/{chosen['labels'][index]}"
    answer = str(series["values"][index])
    return draft.make(goal, partial(_solve_answer, parts=(part,), answer=answer), answer=answer)


def add(rng: Rng, level: int) -> Instance:
    """Two numbers from two charts: the first must be remembered."""
    draft = _charts(rng, level, "bar")
    index = between(rng, 0, SIZES[level][0] - 1)
    picks = [(s, pick(rng, s["series"])) for s in draft.options["sets"]]
    label = draft.options["sets"][0]["labels"][index]
    answer = str(sum(series["values"][index] for _, series in picks))
    goal = phrase(
        rng,
        (
            "Add up, for {x}: {w}. Answer with the sum.",
            "What is the sum of these values at {x}: {w}? Answer with the number.",
        ),
        x=label,
        w=" and ".join(f"{series['name']} in {s['name']}" for s, series in picks),
    )
    parts = tuple(f"{s['id']}/{series['name']}/{label}" for s, series in picks)
    return draft.make(goal, partial(_solve_answer, parts=parts, answer=answer), answer=answer)


def _solve_answer(page: PageQuery, parts: tuple[str, ...], answer: str) -> Moves:
    for part in parts:
        yield from _pick_part(page, part)
    yield Answer(answer)


def view(rng: Rng, level: int) -> Instance:
    """Another kind of chart, and series hidden by the legend."""
    draft = _charts(rng, max(2, level), "bar")
    chosen = draft.options["sets"][0 if level == 1 else 1]
    kind = pick(rng, ("line", "pie"))
    draft.after["kinds"][chosen["id"]] = kind
    hidden = some(rng, [s["name"] for s in chosen["series"]], level - 1)
    draft.after["hidden"] = sorted(f"{chosen['id']}/{n}" for n in hidden)
    extra = f" and hide the series {' and '.join(hidden)}" if hidden else ""
    goal = phrase(
        rng,
        ("Show {c} as a {k} chart{e}.", "Switch the chart {c} to a {k} chart{e}."),
        c=chosen["name"],
        k=kind,
        e=extra,
    )
    ks = tuple([f"kind:{kind}", *(f"series:{chosen['id']}/{n}" for n in hidden)])
    return draft.make(goal, partial(_solve_view, set_id=chosen["id"], ks=ks))


def _solve_view(page: PageQuery, set_id: str, ks: tuple[str, ...]) -> Moves:
    yield from _enter(page, set_id)
    for k in ks:
        yield from press(page, k)


_task = partial(TaskSpec, app="chart", min_size=(640, 480))

TASKS = [
    _task("extreme", generate=extreme, tags=("reading", "grounding")),
    _task("slice", generate=slice_, tags=("reading", "grounding")),
    _task("value", generate=value, tags=("reading",)),
    _task("add", generate=add, tags=("reading", "memory")),
    _task("view", generate=view, tags=("grounding",)),
]
