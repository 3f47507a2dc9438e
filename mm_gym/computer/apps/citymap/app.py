"""Tasks of the city map: panning, zooming, finding places, directions, layers and a marker to drag."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from mm_gym.computer.actions import Answer, Scroll
from mm_gym.computer.apps.content import CITIES, LAST_NAMES, Rng, between, phrase, pick, some, words
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, at, press, write
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec, click, drag

WORLD = (1600, 1200)
KINDS = {
    "cafe": ("Café {n}", "{n} Coffee"),
    "park": ("{n} Park", "{n} Gardens"),
    "museum": ("{n} Museum", "{n} Gallery"),
    "station": ("{n} Station", "{n} Square Stop"),
    "hotel": ("Hotel {n}", "{n} Inn"),
    "pharmacy": ("{n} Pharmacy", "{n} Chemist"),
}
COUNTS = {1: 8, 2: 14, 3: 20}
MODES = {"walk": "on foot", "bike": "by bicycle", "bus": "by bus", "car": "by car"}
STREET_WORDS = words("Mill Elm King Queen Station Harbour Orchard Bridge Church Market Castle Garden")

Place = dict[str, Any]


def _places(rng: Rng, count: int) -> list[Place]:
    """Places on a jittered grid, so that pins and their names stay apart."""
    cells = some(rng, [(c, r) for c in range(6) for r in range(5)], count)
    names = some(rng, LAST_NAMES, count)
    places = []
    for index, (column, row) in enumerate(cells):
        kind = list(KINDS)[index % len(KINDS)]
        opens = between(rng, 7, 10)
        places.append(
            {
                "id": f"p{index + 1}",
                "name": pick(rng, KINDS[kind]).format(n=names[index]),
                "kind": kind,
                "x": 170 + column * 252 + between(rng, -40, 40),
                "y": 150 + row * 225 + between(rng, -40, 40),
                "rating": between(rng, 30, 50) / 10,
                "hours": f"{opens:02d}:{pick(rng, ('00', '30'))} to {between(rng, 16, 22)}:00",
                "address": f"{between(rng, 1, 90)} {pick(rng, STREET_WORDS)} Street",
            }
        )
    return places


def _ground(rng: Rng) -> dict[str, Any]:
    """Roads, blocks, parks, a river and two tram lines: the picture under the places."""
    xs = [between(rng, 40, 120) + 250 * i for i in range(7)]
    ys = [between(rng, 40, 110) + 225 * i for i in range(6)]
    names = some(rng, STREET_WORDS, len(STREET_WORDS))
    roads = []
    for index, x in enumerate(xs):
        bend = x + between(rng, -60, 60)
        label = [x, 520 + 60 * (index % 3)]
        roads.append(
            {
                "d": f"M{x} -200Q{bend} 600 {x} 1400",
                "width": 14 + 6 * (index % 2),
                "name": f"{names[index % 12]} Road",
                "label": label,
            }
        )
    for index, y in enumerate(ys):
        label = [640 + 120 * (index % 3), y]
        roads.append(
            {
                "d": f"M-200 {y}L1800 {y}",
                "width": 14 + 6 * (index % 2),
                "name": f"{names[(index + 7) % 12]} Street",
                "label": label,
            }
        )
    blocks = [
        {
            "x": x + 24 + 72 * c,
            "y": y + 24 + 62 * r,
            "width": between(rng, 40, 60),
            "height": between(rng, 36, 50),
        }
        for x in xs[:-1]
        for y in ys[:-1]
        for c in range(3)
        for r in range(3)
        if rng.random() < 0.75
    ]
    parks = [
        f"{x},{y} {x + 170},{y + 12} {x + 150},{y + 140} {x + 10},{y + 120}"
        for x, y in ((xs[1] + 30, ys[2] + 30), (xs[4] + 30, ys[0] + 30), (xs[3] + 20, ys[3] + 30))
    ]
    level = between(rng, 350, 850)
    river = f"M-200 {level}C400 {level + 200} 900 {level - 260} 1800 {level + 80}"
    lines = [
        {
            "d": "M-100 {}L700 {}L1700 {}".format(*(between(rng, 200, 1000) for _ in range(3))),
            "color": c,
        }
        for c in ("#e03131", "#1c7ed6")
    ]
    return {"roads": roads, "blocks": blocks, "parks": parks, "river": river, "lines": lines}


def _map(rng: Rng, level: int) -> Draft:
    places = _places(rng, COUNTS[level])
    options = {
        "city": pick(rng, CITIES),
        "places": places,
        **_ground(rng),
        "start": [800, 600] if level == 1 else [between(rng, 400, 1200), between(rng, 350, 850)],
        "zoom": 0.64 if level == 1 else 1,
    }
    options["markerStart"] = [options["start"][0] + 60, options["start"][1] + 90]
    layers = {"Places": True, "Transit": bool(rng.random() < 0.5), "Bicycles": bool(rng.random() < 0.5)}
    return Draft(rng, {"saved": [], "route": None, "marker": None, "layers": layers}, options)


def _find(page: PageQuery, draft_place: Place) -> Moves:
    """By the search box: the map moves to the place and its card opens."""
    yield from write(page, "search", draft_place["name"])
    yield from press(page, f"hit:{draft_place['id']}")


def save(rng: Rng, level: int) -> Instance:
    draft = _map(rng, level)
    places = some(rng, draft.options["places"], 1 if level < 3 else 2)
    draft.after["saved"] = sorted(p["id"] for p in places)
    goal = phrase(
        rng,
        ("Save {x} on the map.", "Find {x} and press Save."),
        x=" and ".join(p["name"] for p in places),
    )
    return draft.make(goal, partial(_solve_save, places=tuple(places)))


def _solve_save(page: PageQuery, places: tuple[Place, ...]) -> Moves:
    for place in places:
        yield from _find(page, place)
        yield from press(page, "save")


def pin(rng: Rng, level: int) -> Instance:
    """Only a kind and a neighbour are named: the map itself must be looked at, panned and zoomed."""
    draft = _map(rng, level)
    places = draft.options["places"]
    pairs = []
    for anchor in places:
        for kind in KINDS:
            found = sorted(
                (math.dist((p["x"], p["y"]), (anchor["x"], anchor["y"])), p["id"])
                for p in places
                if p["kind"] == kind and p is not anchor
            )
            if found and (len(found) == 1 or found[1][0] > 1.3 * found[0][0]):
                pairs.append((anchor, kind, found[0][1]))
    anchor, kind, target = pick(rng, pairs)
    draft.after["saved"] = [target]
    goal = phrase(
        rng,
        (
            "Save the {k} that is nearest to {a}.",
            "Which {k} is closest to {a} on the map? Click it and save it.",
        ),
        k=kind,
        a=anchor["name"],
    )
    place = next(p for p in places if p["id"] == target)
    return draft.make(goal, partial(_solve_pin, place=place))


def _solve_pin(page: PageQuery, place: Place) -> Moves:
    yield from _pan_to(page, f"pin:{place['id']}")
    yield click(page.find(at(f"pin:{place['id']}")))
    yield from press(page, "save")


def _pan_to(page: PageQuery, k: str) -> Moves:
    """Drag the map until a pin is well clear of the panels at the edges."""
    width, height = page.size
    for _ in range(12):
        x, y = page.find(at(k)).center
        if 280 < x < width - 130 and 70 < y < height - 90:
            return
        dx, dy = (width + 150) // 2 - x, height // 2 - y
        start = _bare_ground(page)
        end = (
            max(2, min(width - 3, start[0] + dx)),
            max(2, min(height - 3, start[1] + dy)),
        )
        yield drag(start, end)
    raise LookupError(f"{k} could not be brought into view")


def _bare_ground(page: PageQuery) -> tuple[int, int]:
    """A point near the middle where nothing but the map lies."""
    x, y = page.evaluate(
        "(() => { for (let r = 0; r < 400; r += 15) for (let a = 0; a < 12; a++) {"
        " const x = Math.round(innerWidth / 2 + r * Math.cos(a));"
        " const y = Math.round(innerHeight / 2 + r * Math.sin(a));"
        " if (document.elementFromPoint(x, y)?.closest('svg.ground')) return [x, y]; }"
        " return [5, innerHeight - 5]; })()"
    )
    return int(x), int(y)


def route(rng: Rng, level: int) -> Instance:
    draft = _map(rng, level)
    start, end = some(rng, draft.options["places"], 2)
    mode = "walk" if level == 1 else pick(rng, tuple(MODES))
    draft.after["route"] = {"from": start["id"], "to": end["id"], "mode": mode}
    goal = phrase(
        rng,
        ("Start a route from {a} to {b}, {m}.", "Get directions {m} from {a} to {b} and press Start."),
        a=start["name"],
        b=end["name"],
        m=MODES[mode],
    )
    return draft.make(goal, partial(_solve_route, start=start, end=end, mode=mode))


def _solve_route(page: PageQuery, start: Place, end: Place, mode: str) -> Moves:
    yield from press(page, "directions")
    yield from _find(page, start)
    yield from _find(page, end)
    if mode != "walk":
        yield from press(page, f"mode:{mode}")
    yield from press(page, "start")


def hours(rng: Rng, level: int) -> Instance:
    draft = _map(rng, level)
    place = pick(rng, draft.options["places"])
    question, answer = pick(
        rng,
        (
            ("When does {x} open? Answer as HH:MM.", place["hours"][:5]),
            ("When does {x} close? Answer as HH:MM.", place["hours"][-5:]),
            ("What is the rating of {x}? Answer with the number.", f"{place['rating']:.1f}"),
            ("What is the address of {x}? Answer with the address as written.", place["address"]),
        ),
    )
    return draft.make(
        question.format(x=place["name"]), partial(_solve_hours, place=place, answer=answer), answer=answer
    )


def _solve_hours(page: PageQuery, place: Place, answer: str) -> Moves:
    yield from _find(page, place)
    yield Answer(answer)


def layers(rng: Rng, level: int) -> Instance:
    draft = _map(rng, level)
    names = some(rng, tuple(draft.after["layers"]), min(level, 2))
    for name in names:
        draft.after["layers"][name] = not draft.after["layers"][name]
    what = " and ".join(f"{'show' if draft.after['layers'][n] else 'hide'} the layer {n}" for n in names)
    goal = phrase(rng, ("On the map, {w}.", "Please {w}."), w=what)
    return draft.make(goal, partial(_solve_layers, names=tuple(names)))


def _solve_layers(page: PageQuery, names: tuple[str, ...]) -> Moves:
    for name in names:
        yield from press(page, f"layer:{name}")


def marker(rng: Rng, level: int) -> Instance:
    """The marker and its goal start in one view at level 1; above, the map must be zoomed out first."""
    draft = _map(rng, level)
    place = pick(rng, draft.options["places"])
    draft.after["marker"] = place["id"]
    goal = phrase(
        rng,
        ("Drag the red marker onto {x}.", "Put the red marker on {x} with the mouse."),
        x=place["name"],
    )
    return draft.make(goal, partial(_solve_marker, place=place))


def _solve_marker(page: PageQuery, place: Place) -> Moves:
    yield from _gather(page, f"pin:{place['id']}")
    tip = page.find(at("marker"))
    grip, target = tip.center, page.find(at(f"pin:{place['id']}")).center
    foot = (grip[0], int(tip.y + 34))  # the marker's tip is what counts
    yield drag(grip, (target[0], target[1] - (foot[1] - grip[1])))


def _gather(page: PageQuery, k: str) -> Moves:
    """Zoom out and pan until the marker and a pin are both in view, clear of the panels."""
    width, height = page.size
    for _ in range(14):
        a, b = page.find(at("marker")).center, page.find(at(k)).center
        low, high = (min(a[0], b[0]), min(a[1], b[1])), (max(a[0], b[0]), max(a[1], b[1]))
        if low[0] > 20 and low[1] > 70 and high[0] < width - 130 and high[1] < height - 30:
            return
        if high[0] - low[0] > width - 170 or high[1] - low[1] > height - 130:
            yield Scroll(0, 120, *_bare_ground(page))
            continue
        dx, dy = (width - 110) // 2 - (low[0] + high[0]) // 2, (height + 40) // 2 - (low[1] + high[1]) // 2
        start = _bare_ground(page)
        yield drag(start, (max(2, min(width - 3, start[0] + dx)), max(2, min(height - 3, start[1] + dy))))
    raise LookupError(f"the marker and {k} do not fit one view")


_task = partial(TaskSpec, app="citymap", min_size=(640, 480))

TASKS = [
    _task("save", generate=save, tags=("typing", "navigation")),
    _task("pin", generate=pin, tags=("reading", "drag", "grounding")),
    _task("route", generate=route, tags=("forms", "typing")),
    _task("hours", generate=hours, tags=("reading", "typing")),
    _task("layers", generate=layers, tags=("grounding",)),
    _task("marker", generate=marker, tags=("drag",)),
]
