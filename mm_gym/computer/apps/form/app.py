"""Tasks of the form: several steps to fill in from the goal, from an earlier step, or to correct."""

from __future__ import annotations

from functools import partial
from typing import Any

from mm_gym.computer.apps.content import CITIES, PROJECTS, Rng, address, between, people, phrase, pick, some
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, choose, press, write
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec

Field = dict[str, Any]
Values = dict[str, Any]
COUNTRIES = (
    "Austria",
    "Brazil",
    "Canada",
    "Denmark",
    "Estonia",
    "France",
    "Ghana",
    "India",
    "Japan",
    "Kenya",
)
TOPICS = ("Arts", "Cooking", "Music", "Science", "Sports", "Travel")
PLANS = ("Basic", "Plus", "Family", "Business")


def _field(
    field_id: str, label: str, kind: str = "text", *options: str, required: bool = True, help: str = ""
) -> Field:
    return {
        "id": field_id,
        "label": label,
        "kind": kind,
        "options": list(options),
        "required": required,
        "help": help,
    }


def _person_step(title: str = "About you") -> dict[str, Any]:
    return {
        "title": title,
        "note": "",
        "fields": [
            _field("name", "Full name"),
            _field("email", "Mail address", "email"),
            _field("phone", "Phone", "number", required=False, help="Digits only"),
        ],
    }


def _place_step() -> dict[str, Any]:
    return {
        "title": "Address",
        "note": "",
        "fields": [
            _field("street", "Street and number"),
            _field("city", "City"),
            _field("country", "Country", "select", *COUNTRIES),
        ],
    }


def _wishes_step() -> dict[str, Any]:
    return {
        "title": "Your choice",
        "note": "",
        "fields": [
            _field("plan", "Plan", "radio", *PLANS),
            _field("topics", "Topics", "checks", *TOPICS, required=False),
            _field("news", "Send me the newsletter", "check", required=False),
        ],
    }


def _values(rng: Rng, steps: list[dict[str, Any]]) -> Values:
    """Plausible entries for every field of these steps."""
    name = people(rng, 1)[0]
    known = {
        "name": name,
        "email": address(name),
        "phone": str(between(rng, 10_000_000, 99_999_999)),
        "street": f"{between(rng, 1, 99)} {pick(rng, ('Mill Lane', 'Elm Street', 'King Road', 'Park View'))}",
        "city": pick(rng, CITIES),
        "country": pick(rng, COUNTRIES),
        "plan": pick(rng, PLANS),
        "topics": sorted(some(rng, TOPICS, between(rng, 1, 3))),
        "news": True,
    }
    return {f["id"]: known[f["id"]] for step in steps for f in step["fields"]}


def _form(rng: Rng, title: str, steps: list[dict[str, Any]], start: Values | None = None) -> Draft:
    options = {
        "brand": pick(rng, ("Formly", "City Desk", "Front Office", "Sign-up")),
        "title": title,
        "steps": steps,
        "start": start or {},
        "thanks": pick(rng, ("Thank you!", "All done.", "We have received your form.")),
        "reference": f"{pick(rng, PROJECTS)[:3].upper()}-{between(rng, 1000, 9999)}",
    }
    return Draft(rng, {"sent": []}, options)


def _spoken(steps: list[dict[str, Any]], values: Values) -> str:
    parts = []
    for field in (f for step in steps for f in step["fields"]):
        value = values.get(field["id"])
        if value is True:
            parts.append(f"tick “{field['label']}”")
        elif value:
            parts.append(f"{field['label']}: {', '.join(value) if isinstance(value, list) else value}")
    return "; ".join(parts)


def _solve_form(page: PageQuery, steps: list[dict[str, Any]], values: Values) -> Moves:
    """Fill in what differs from what stands there, step by step, and send."""
    for step in steps:
        for field in step["fields"]:
            now = page.state()["ui"]["values"].get(field["id"])
            if field["id"] in values and now != values[field["id"]]:
                yield from _enter(page, field, values[field["id"]])
        yield from press(page, "continue")
    yield from press(page, "send")


def _enter(page: PageQuery, field: Field, value: Any) -> Moves:
    k, kind = field["id"], field["kind"]
    if kind == "select":
        yield from choose(page, k, value, within="page")
    elif kind in ("radio", "rate"):
        yield from press(page, f"{k}:{value}", within="page")
    elif kind == "checks":
        for option in value:
            yield from press(page, f"{k}:{option}", within="page")
    elif kind == "check":
        yield from press(page, k, within="page")
    else:
        yield from write(page, k, value, within="page")


def register(rng: Rng, level: int) -> Instance:
    """All values stand in the goal; a level more is a step more."""
    steps = [_person_step(), _place_step(), _wishes_step()][:level]
    values = _values(rng, steps)
    draft = _form(rng, "Registration", steps)
    draft.after["sent"].append(values)
    goal = phrase(
        rng,
        ("Fill in the form and send it. {v}.", "Register with these details and send the form. {v}."),
        v=_spoken(steps, values),
    )
    return draft.make(goal, partial(_solve_form, steps=steps, values=values), irreversible=("sent",))


def correct(rng: Rng, level: int) -> Instance:
    """Filled in already, with mistakes to put right before it is sent."""
    steps = [_person_step(), _place_step()] + ([_wishes_step()] if level == 3 else [])
    start, other = _values(rng, steps), _values(rng, steps)
    wrong = some(
        rng, [k for k in ("name", "phone", "street", "city", "country") if start[k] != other[k]], level
    )
    values = {k: other[k] if k in wrong else v for k, v in start.items()}
    draft = _form(rng, "Check your details", steps, start)
    draft.after["sent"].append(values)
    labels = {f["id"]: f["label"] for step in steps for f in step["fields"]}
    what = "; ".join(f"{labels[k]} should be {values[k]}" for k in wrong)
    goal = phrase(
        rng,
        (
            "The form is filled in, but wrong here: {w}. Correct that and send it.",
            "Correct the form ({w}), then send it.",
        ),
        w=what,
    )
    return draft.make(goal, partial(_solve_form, steps=steps, values=values), irreversible=("sent",))


QUESTIONS = (
    "How easy was the booking?",
    "How friendly was the staff?",
    "How clean was the place?",
    "How good was the food?",
    "How fair was the price?",
    "How likely will you return?",
)


def survey(rng: Rng, level: int) -> Instance:
    asked = some(rng, QUESTIONS, 2 * level)
    fields = [_field(f"q{i + 1}", q, "rate", "1", "2", "3", "4", "5") for i, q in enumerate(asked)]
    steps = [{"title": "Survey", "note": "1 is poor, 5 is excellent.", "fields": fields}]
    values = {f["id"]: str(between(rng, 1, 5)) for f in fields}
    if level > 1:
        fields.append(_field("remark", "Anything else?", "long", required=False))
        values["remark"] = pick(
            rng, ("Thank you.", "Too loud in the evening.", "We loved it.", "More parking, please.")
        )
    draft = _form(rng, "Guest survey", steps)
    draft.after["sent"].append(values)
    goal = phrase(
        rng, ("Answer the survey and send it. {v}", "Send the survey with: {v}"), v=_spoken(steps, values)
    )
    return draft.make(goal, partial(_solve_form, steps=steps, values=values), irreversible=("sent",))


def voucher(rng: Rng, level: int) -> Instance:
    """The first step shows codes that the last step asks for: they must be remembered."""
    names = some(rng, ("booking code", "customer number", "locker", "gate", "pass code"), level)
    codes = {n: f"{pick(rng, PROJECTS)[:2].upper()}{between(rng, 100, 9999)}" for n in names}
    person = _person_step()
    person["note"] = "Please keep in mind:\n" + "\n".join(f"Your {n} is {c}." for n, c in codes.items())
    confirm: dict[str, Any] = {
        "title": "Confirm",
        "note": "",
        "fields": [_field(f"code{i}", f"Your {n}") for i, n in enumerate(some(rng, names, level))],
    }
    labels = {f["id"]: f["label"].removeprefix("Your ") for f in confirm["fields"]}
    steps = [person, confirm]
    start = _values(rng, [person])
    values = {**start, **{k: codes[n] for k, n in labels.items()}}
    draft = _form(rng, "Check-in", steps, start)
    draft.after["sent"].append(values)
    goal = phrase(
        rng,
        (
            "Your details are filled in. The first page tells your {w}; enter that on the second and send.",
            "Finish the check-in: keep your {w} from the first page in mind for the second. Send the form.",
        ),
        w=" and ".join(names),
    )
    return draft.make(goal, partial(_solve_form, steps=steps, values=values), irreversible=("sent",))


def choices(rng: Rng, level: int) -> Instance:
    steps = [_wishes_step()]
    values = _values(rng, steps)
    if level < 3:
        values.pop("news")
    if level < 2:
        values.pop("topics")
    draft = _form(rng, "Membership", steps)
    draft.after["sent"].append(values)
    goal = phrase(
        rng,
        ("Choose and send: {v}. Leave the rest open.", "Send the form with {v}, nothing more."),
        v=_spoken(steps, values),
    )
    return draft.make(goal, partial(_solve_form, steps=steps, values=values), irreversible=("sent",))


_task = partial(TaskSpec, app="form", min_size=(640, 480))

TASKS = [
    _task("choices", generate=choices, tags=("forms",)),
    _task("survey", generate=survey, tags=("forms", "scrolling")),
    _task("register", generate=register, tags=("forms", "typing")),
    _task("correct", generate=correct, tags=("forms", "typing", "reading")),
    _task("voucher", generate=voucher, tags=("memory", "forms", "typing")),
]
