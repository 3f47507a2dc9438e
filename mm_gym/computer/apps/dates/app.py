"""Tasks of the booking pages: date pickers of every common kind."""

from __future__ import annotations

from datetime import date, timedelta
from functools import partial
from typing import Any

from mm_gym.computer.apps.content import Rng, between, phrase, pick, some, some_day, spoken
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, choose, press, write
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec

AHEAD = {1: 20, 2: 100, 3: 330}
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ORDINALS = ("first", "second", "third", "fourth")
SUBJECTS = {
    "day": (
        ("Table for two", "Pick a day for your dinner."),
        ("Museum ticket", "Pick the day of your visit."),
    ),
    "range": (("Your stay", "Pick arrival, then departure."), ("Rent a bicycle", "First and last day.")),
    "birthday": (
        ("Date of birth", "As it stands in your passport."),
        ("Your birthday", "For your library card."),
    ),
    "slot": (("Dentist", "Pick a day, then a time."), ("Service desk", "Pick a day and a free time.")),
    "repeat": (("Repeat the lesson", "When should it take place?"), ("Cleaning plan", "Days and rhythm.")),
    "typed": (("Delivery date", "Write the date of delivery."), ("Inspection", "Write the date.")),
}
ORDERS = (
    ("dmy", "DD.MM.YYYY", "%d.%m.%Y"),
    ("mdy", "MM/DD/YYYY", "%m/%d/%Y"),
    ("dmy", "DD/MM/YYYY", "%d/%m/%Y"),
)


def _draft(rng: Rng, kind: str, **options: Any) -> tuple[Draft, date]:
    today = some_day(rng)
    title, text = pick(rng, SUBJECTS[kind])
    shared = {
        "brand": pick(rng, ("Reserve", "Timely", "Bookings")),
        "kind": kind,
        "title": title,
        "text": text,
        "verb": pick(rng, ("Book", "Confirm", "Save")),
        "today": today.isoformat(),
        "weekStart": pick(rng, (0, 1, 1)),
    }
    return Draft(rng, {"bookings": []}, {**shared, **options}), today


def _to_month(page: PageQuery, day: str) -> Moves:
    while page.state()["ui"]["shown"] != day[:7]:
        yield from press(
            page, "day:next" if page.state()["ui"]["shown"] < day[:7] else "day:prev", within="page"
        )


def _pick_day(page: PageQuery, day: str) -> Moves:
    yield from _to_month(page, day)
    yield from press(page, f"day:{day}", within="page")


def _ahead(rng: Rng, today: date, level: int, low: int = 1) -> date:
    return today + timedelta(days=between(rng, max(low, AHEAD[level] // 3), AHEAD[level]))


def single(rng: Rng, level: int) -> Instance:
    draft, today = _draft(rng, "day")
    chosen = _ahead(rng, today, level)
    draft.after["bookings"].append({"day": chosen.isoformat()})
    said = spoken(chosen)
    if level == 1 and rng.random() < 0.5:
        said = f"in {(chosen - today).days} days from today"
    goal = phrase(
        rng, ("Book: {d}.", "Make a booking for the date {d}.", "Choose this date and confirm: {d}."), d=said
    )
    return draft.make(goal, partial(_solve_day, day=chosen.isoformat()), irreversible=("bookings",))


def _solve_day(page: PageQuery, day: str) -> Moves:
    yield from _pick_day(page, day)
    yield from press(page, "book", within="page")


def weekday(rng: Rng, level: int) -> Instance:
    """The date is named by its place in a month and must be read from the calendar."""
    draft, today = _draft(rng, "day")
    month = (today.replace(day=1) + timedelta(days=32 * level)).replace(day=1)
    wanted, nth = between(rng, 0, 6), between(rng, 0, 3)
    chosen = month + timedelta(days=(wanted - month.weekday()) % 7 + 7 * nth)
    draft.after["bookings"].append({"day": chosen.isoformat()})
    goal = phrase(
        rng,
        ("Book the {n} {w} of {m}.", "Pick the {n} {w} in {m} and confirm."),
        n=ORDINALS[nth],
        w=WEEKDAYS[wanted],
        m=f"{chosen:%B %Y}",
    )
    return draft.make(goal, partial(_solve_day, day=chosen.isoformat()), irreversible=("bookings",))


def stay(rng: Rng, level: int) -> Instance:
    draft, today = _draft(rng, "range")
    start = _ahead(rng, today, level)
    end = start + timedelta(days=between(rng, 2, 5 if level == 1 else 24))
    guests = between(rng, 1, level + 1)
    draft.after["bookings"].append({"from": start.isoformat(), "to": end.isoformat(), "guests": guests})
    goal = phrase(
        rng,
        ("Book from {a} to {b} for {g}.", "From {a} until {b}, {g}: make the booking."),
        a=spoken(start),
        b=spoken(end),
        g="1 guest" if guests == 1 else f"{guests} guests",
    )
    solve = partial(_solve_stay, start=start.isoformat(), end=end.isoformat(), guests=guests)
    return draft.make(goal, solve, irreversible=("bookings",))


def _solve_stay(page: PageQuery, start: str, end: str, guests: int) -> Moves:
    yield from _pick_day(page, start)
    yield from _pick_day(page, end)
    for _ in range(guests - 1):
        yield from press(page, "guests:more", within="page")
    yield from press(page, "book", within="page")


def birthday(rng: Rng, level: int) -> Instance:
    draft, _ = _draft(rng, "birthday")
    chosen = date(between(rng, *((2008, 2015), (1980, 2012), (1931, 2012))[level - 1]), 1, 1) + timedelta(
        days=between(rng, 0, 364)
    )
    draft.after["bookings"].append({"day": chosen.isoformat()})
    goal = phrase(
        rng,
        ("Enter the date of birth {d} and confirm.", "The birthday is {d}: set and confirm it."),
        d=spoken(chosen),
    )
    return draft.make(goal, partial(_solve_birthday, day=chosen.isoformat()), irreversible=("bookings",))


def _solve_birthday(page: PageQuery, day: str) -> Moves:
    year, month, _ = (int(part) for part in day.split("-"))
    yield from choose(page, "year", year, within="page")
    yield from choose(page, "month", month - 1, within="page")
    yield from press(page, f"day:{day}", within="page")
    yield from press(page, "book", within="page")


def slot(rng: Rng, level: int) -> Instance:
    """A time of a day; some are taken. From level 2 on the first free time is asked for, not named."""
    times = [f"{h:02d}:{m:02d}" for h in range(8, 18) for m in (0, 30)]
    draft, today = _draft(rng, "slot", slots={})
    chosen = _ahead(rng, today, min(level, 2))
    for offset in range(AHEAD[2] + 1):
        day = (today + timedelta(days=offset)).isoformat()
        shown = sorted(some(rng, times, 4 + 3 * level))
        draft.options["slots"][day] = [{"time": t, "taken": bool(rng.random() < 0.4)} for t in shown]
    slots = draft.options["slots"][chosen.isoformat()]
    target = pick(rng, slots)
    target["taken"] = False
    said = f"at {target['time']}"
    if level > 1:
        bound = pick(rng, slots)["time"]
        free = [s for s in slots if not s["taken"] and s["time"] >= bound]
        if free:
            target, said = free[0], f"at the first free time from {bound} on"
    record = {"day": chosen.isoformat(), "slot": target["time"]}
    draft.after["bookings"].append(record)
    goal = phrase(
        rng,
        ("Book an appointment on {d} {t}.", "Make an appointment: {d}, {t}."),
        d=spoken(chosen),
        t=said,
    )
    solve = partial(_solve_slot, day=record["day"], time=record["slot"])
    return draft.make(goal, solve, irreversible=("bookings",))


def _solve_slot(page: PageQuery, day: str, time: str) -> Moves:
    yield from _pick_day(page, day)
    yield from press(page, f"slot:{time}", within="slots")
    yield from press(page, "book", within="page")


def repeat(rng: Rng, level: int) -> Instance:
    draft, today = _draft(rng, "repeat")
    days = sorted(some(rng, range(7), level))
    every, until = between(rng, 1, 4), _ahead(rng, today, level)
    draft.after["bookings"].append({"days": days, "every": every, "until": until.isoformat()})
    names = [WEEKDAYS[(d - 1) % 7] for d in days]
    goal = phrase(
        rng,
        (
            "Repeat on {w}, every {n}, until {d}. Confirm.",
            "Set it to {w}, every {n}, ending on {d}, and confirm.",
        ),
        w=" and ".join(names),
        n="week" if every == 1 else f"{every} weeks",
        d=spoken(until),
    )
    solve = partial(_solve_repeat, days=tuple(days), every=every, until=until.isoformat())
    return draft.make(goal, solve, irreversible=("bookings",))


def _solve_repeat(page: PageQuery, days: tuple[int, ...], every: int, until: str) -> Moves:
    for day in days:
        yield from press(page, f"weekday:{day}", within="page")
    if every != 1:
        yield from choose(page, "every", every, within="page")
    yield from press(page, "until", within="page")
    yield from _pick_day(page, until)
    yield from press(page, "book", within="page")


def typed(rng: Rng, level: int) -> Instance:
    """A date field with a format of its own."""
    order, placeholder, form = pick(rng, ORDERS)
    draft, today = _draft(rng, "typed", order=order, placeholder=placeholder)
    chosen = _ahead(rng, today, level)
    draft.after["bookings"].append({"day": chosen.isoformat()})
    goal = phrase(
        rng,
        ("Enter the date {d} and confirm.", "The date is {d}: write it as the field asks and confirm."),
        d=spoken(chosen),
    )
    return draft.make(goal, partial(_solve_typed, text=chosen.strftime(form)), irreversible=("bookings",))


def _solve_typed(page: PageQuery, text: str) -> Moves:
    yield from write(page, "date", text, within="page")
    yield from press(page, "book", within="page")


_task = partial(TaskSpec, app="dates", min_size=(640, 480))

TASKS = [
    _task("day", generate=single, tags=("navigation",)),
    _task("weekday", generate=weekday, tags=("reading", "navigation")),
    _task("stay", generate=stay, tags=("navigation", "forms")),
    _task("birthday", generate=birthday, tags=("forms", "scrolling")),
    _task("slot", generate=slot, tags=("reading", "scrolling")),
    _task("repeat", generate=repeat, tags=("forms",)),
    _task("typed", generate=typed, tags=("typing", "reading")),
]
