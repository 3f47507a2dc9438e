"""Tasks of the calendar: reading a week, creating, moving, changing and answering events."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from functools import partial
from typing import Any

from mm_gym.computer.actions import Answer, Scroll
from mm_gym.computer.apps.content import (
    FIRST_NAMES,
    NOUNS,
    PROJECTS,
    Rng,
    between,
    phrase,
    pick,
    some,
    some_day,
    spoken,
)
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, at, choose, press, write
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec, click, drag, reveal

FIRST, LAST = 8 * 60, 19 * 60
PER_DAY = {1: 1, 2: 2, 3: 3}
SMALL_TITLES = ("Dentist", "Gym", "Lunch", "Piano", "Haircut", "Choir", "Bank", "Doctor")
PLACES = ("Room 1", "Room 2", "Room 7", "Lobby", "Studio", "Library", "Online", "Canteen")
KINDS = ("work", "private", "travel", "team")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")

Event = dict[str, Any]


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _free(events: list[Event], day: str, start: int, end: int) -> bool:
    return all(e["day"] != day or e["end"] <= start or end <= e["start"] for e in events)


def _titles(rng: Rng, count: int) -> list[str]:
    topics = [f"{p} {n}" for p, n in zip(some(rng, PROJECTS, 20), some(rng, NOUNS, 20), strict=True)]
    return some(rng, [*topics, *SMALL_TITLES], count)


def _slot(rng: Rng, events: list[Event], days: list[str], length: int) -> tuple[str, int]:
    """A free day and start time."""
    free = [
        (day, start)
        for day in days
        for start in range(FIRST, LAST - length + 1, 30)
        if _free(events, day, start, start + length)
    ]
    return pick(rng, free)


def _week(rng: Rng, level: int) -> Draft:
    today = some_day(rng)
    today -= timedelta(days=max(0, today.weekday() - 4))
    monday = today - timedelta(days=today.weekday())
    days = [(monday + timedelta(days=n)).isoformat() for n in range(5)]
    names = sorted(some(rng, FIRST_NAMES, 4 + level))
    events: list[Event] = []
    for index, title in enumerate(_titles(rng, 5 * PER_DAY[level])):
        length = pick(rng, (60, 60, 90, 120))
        day, start = _slot(rng, events, [days[index % 5]], length)
        events.append(
            {
                "id": f"e{index + 1}",
                "title": title,
                "day": day,
                "start": start,
                "end": start + length,
                "place": pick(rng, PLACES),
                "kind": pick(rng, KINDS),
                "guests": sorted(some(rng, names, between(rng, 0, 2))),
                "status": "mine",
            }
        )
    options = {
        "brand": pick(rng, ("Weekly", "Dayplan", "Agenda")),
        "today": today.isoformat(),
        "people": names,
    }
    return Draft(rng, {"events": events}, options)


def _days(draft: Draft) -> list[str]:
    today = date.fromisoformat(draft.options["today"])
    monday = today - timedelta(days=today.weekday())
    return [(monday + timedelta(days=n)).isoformat() for n in range(5)]


def _said(day: str) -> str:
    parsed = date.fromisoformat(day)
    return f"{parsed:%A}, {spoken(parsed)}"


def _solve_open(page: PageQuery, event_id: str, *ks: str) -> Moves:
    """Open an event and press the named buttons. The middle may be scrolled away: aim at its head."""
    yield from _show(page, event_id)
    yield click(page.find(at(f"event:{event_id}")))
    for k in ks:
        yield from press(page, k)


def _show(page: PageQuery, event_id: str) -> Moves:
    yield from reveal(page, at(f"event:{event_id}"), within=at("grid"))


# -- reading and answering -----------------------------------------------------------------------------


def invitation(rng: Rng, level: int) -> Instance:
    draft = _week(rng, level)
    chosen = some(rng, range(len(draft.data["events"])), level)
    status, verb = pick(rng, (("accepted", "Accept"), ("declined", "Decline")))
    for index in chosen:
        draft.data["events"][index]["status"] = draft.after["events"][index]["status"] = "invited"
    event = draft.after["events"][chosen[0]]
    event["status"] = status
    goal = phrase(
        rng,
        ("{v} the invitation to “{x}”.", "{v} “{x}” and leave the other invitations open."),
        v=verb,
        x=event["title"],
    )
    k = "accept" if status == "accepted" else "decline"
    return draft.make(goal, partial(_solve_answer, event_id=event["id"], k=k))


def _solve_answer(page: PageQuery, event_id: str, k: str) -> Moves:
    yield from _solve_open(page, event_id, k)


def when(rng: Rng, level: int) -> Instance:
    """A question about the week, answered in words."""
    draft = _week(rng, level)
    event = pick(rng, draft.data["events"])
    weekday = WEEKDAYS[date.fromisoformat(event["day"]).weekday()]
    question, answer = pick(
        rng,
        (
            ("On which day of the week is “{x}”? Answer with the day's name.", weekday),
            ("When does “{x}” start? Answer as HH:MM.", _clock(event["start"])),
            ("When does “{x}” end? Answer as HH:MM.", _clock(event["end"])),
            ("Where does “{x}” take place? Answer with the place as written.", event["place"]),
        ),
    )
    solve = partial(_solve_when, event_id=event["id"], answer=answer)
    return draft.make(question.format(x=event["title"]), solve, answer=answer)


def _solve_when(page: PageQuery, event_id: str, answer: str) -> Moves:
    yield from _show(page, event_id)
    yield from _solve_open(page, event_id)
    yield Answer(answer)


# -- changing ------------------------------------------------------------------------------------------


def drag_event(rng: Rng, level: int) -> Instance:
    draft = _week(rng, level)
    event = pick(rng, draft.after["events"])
    length = event["end"] - event["start"]
    others = [d for d in _days(draft) if d != event["day"]]
    if level == 1:  # the same time on another day
        free = [d for d in others if _free(draft.data["events"], d, event["start"], event["end"])] or others
        event["day"] = pick(rng, free)
    else:
        event["day"], event["start"] = _near_slot(rng, draft.data["events"], others, event)
        event["end"] = event["start"] + length
    goal = phrase(
        rng,
        ("Move “{x}” to {d} at {t}.", "Drag the event “{x}” so that it starts on {d} at {t}."),
        x=event["title"],
        d=_said(event["day"]),
        t=_clock(event["start"]),
    )
    return draft.make(goal, partial(_solve_drag, event=dict(event)))


def _near_slot(rng: Rng, events: list[Event], days: list[str], event: Event) -> tuple[str, int]:
    """Within three hours, so that both ends of the drag fit on a small screen."""
    length = event["end"] - event["start"]
    near = [
        (day, start)
        for day in days
        for start in range(max(FIRST, event["start"] - 180), min(LAST - length, event["start"] + 180) + 1, 30)
        if _free(events, day, start, start + length)
    ]
    return pick(rng, near or [(days[0], event["start"])])


def _solve_drag(page: PageQuery, event: Event) -> Moves:
    k = f"event:{event['id']}"
    now = next(e for e in page.state()["data"]["events"] if e["id"] == event["id"])
    offset = round((event["start"] - now["start"]) * 44 / 60)
    yield from _reveal_both(page, k, offset)
    x, y = page.find(at(k)).center
    column = page.find(at(f"column:{event['day']}")).center[0]
    yield drag((x, y), (column, y + offset))


def _reveal_both(page: PageQuery, k: str, offset: int) -> Iterator[Any]:
    """Scroll until the event and the place it goes to are in view."""
    yield from reveal(page, at(k), within=at("grid"), margin=12)
    box = page.find(at("grid"))
    y = page.find(at(k)).center[1] + offset
    low, high = box.y + 12, min(box.y + box.height, page.size[1]) - 12
    beyond = max(y - high, 0) + min(y - low, 0)
    if beyond:  # at most three hours away: the event itself stays in view
        yield Scroll(0, round(beyond), int(box.x + box.width / 2), int(box.y + box.height / 2))


def edit(rng: Rng, level: int) -> Instance:
    draft = _week(rng, level)
    event = pick(rng, draft.after["events"])
    event["place"] = pick(rng, [p for p in PLACES if p != event["place"]])
    if level > 1:
        guests = [p for p in draft.options["people"] if p not in event["guests"]]
        event["guests"] = sorted([*event["guests"], pick(rng, guests)])
    if level > 2:
        event["kind"] = pick(rng, [k for k in KINDS if k != event["kind"]])
    new = set(event["guests"]) - set(
        next(e for e in draft.data["events"] if e["id"] == event["id"])["guests"]
    )
    parts = [f"set the place to {event['place']}"]
    if level > 1:
        parts.append(f"add {new.copy().pop()} as a guest")
    if level > 2:
        parts.append(f"put it into the calendar “{event['kind']}”")
    goal = phrase(
        rng,
        ("Edit the event “{x}”: {what}.", "Change “{x}”: {what}."),
        x=event["title"],
        what=", ".join(parts),
    )
    ks = tuple([f"guest:{n}" for n in new] + ([f"kind:{event['kind']}"] if level > 2 else []))
    return draft.make(goal, partial(_solve_edit, event_id=event["id"], place=event["place"], ks=ks))


def _solve_edit(page: PageQuery, event_id: str, place: str, ks: tuple[str, ...]) -> Moves:
    yield from _solve_open(page, event_id, "edit")
    yield from write(page, "place", place, within="dialog:body")
    for k in ks:
        yield from press(page, k, within="dialog:body")
    yield from press(page, "save")


def create(rng: Rng, level: int) -> Instance:
    draft = _week(rng, level)
    days = _days(draft)
    if level == 3:
        days = [(date.fromisoformat(d) + timedelta(weeks=between(rng, 1, 7))).isoformat() for d in days]
    length = pick(rng, (30, 60, 90, 120))
    day, start = _slot(rng, draft.data["events"], days, length)
    event = {
        "id": "new1",
        "title": f"{pick(rng, PROJECTS)} {pick(rng, ('kick-off', 'demo', 'retro', 'interview'))}",
        "day": day,
        "start": start,
        "end": start + length,
        "place": pick(rng, PLACES) if level > 1 else "",
        "kind": "work",
        "guests": [],
        "status": "mine",
    }
    draft.after["events"].append(event)
    goal = phrase(
        rng,
        (
            "Create an event “{x}” on {d} from {a} to {b}{place}.",
            "Add “{x}” to the calendar: {d}, {a} to {b}{place}.",
            "Plan “{x}” for {d}, starting at {a} and ending at {b}{place}.",
        ),
        x=event["title"],
        d=_said(day),
        a=_clock(start),
        b=_clock(start + length),
        place=f" in the place {event['place']}" if event["place"] else "",
    )
    return draft.make(goal, partial(_solve_create, event=event))


def _solve_create(page: PageQuery, event: Event) -> Moves:
    yield from press(page, "new")
    yield from write(page, "title", event["title"], within="dialog:body")
    yield from _pick_day(page, event["day"])
    if _drafted(page, "start") != event["start"]:
        yield from choose(page, "start", event["start"], within="dialog:body")
    if _drafted(page, "end") != event["end"]:
        yield from choose(page, "end", event["end"], within="dialog:body")
    if event["place"]:
        yield from write(page, "place", event["place"], within="dialog:body")
    yield from press(page, "save")


def _drafted(page: PageQuery, name: str) -> Any:
    return page.state()["ui"]["draft"][name]


def _pick_day(page: PageQuery, day: str) -> Moves:
    if _drafted(page, "day") == day:
        return
    yield from press(page, "date", within="dialog:body")
    while (shown := page.state()["ui"]["picking"]) != day[:7]:
        yield from press(page, "pick:next" if shown < day[:7] else "pick:prev", within="dialog:body")
    yield from press(page, f"pick:{day}", within="dialog:body")


_task = partial(TaskSpec, app="calendar", min_size=(640, 480))

SCENES = {"week": _week}
"""What the tasks of tasks.yaml start from."""

TASKS = [
    _task("invitation", generate=invitation, tags=("grounding", "scrolling")),
    _task("when", generate=when, tags=("reading",)),
    _task("drag", generate=drag_event, tags=("drag",)),
    _task("edit", generate=edit, tags=("forms", "typing")),
    _task("create", generate=create, tags=("forms", "typing")),
]
