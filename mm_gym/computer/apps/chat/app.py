"""Tasks of the chat: writing, reacting, finding a message in the history, carrying words between channels."""

from __future__ import annotations

from functools import partial
from typing import Any

from mm_gym.computer.apps.content import NOUNS, PROJECTS, Rng, between, people, phrase, pick, some, words
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, press, write
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec

CHANNELS = words("general design support random sales release office events")
LINES = (
    "The {p} {n} is ready for review.",
    "Who can take a look at the {n} for {p}?",
    "I moved the {p} {n} to Thursday.",
    "We need a better {n} for {p}.",
    "Found a mistake in the {p} {n}, fixing it now.",
    "Lunch is at noon, bring the {p} {n}.",
    "The {n} of {p} looks great!",
    "Please update the {p} {n} by Friday.",
)
WORDS = (
    "On my way.",
    "Thanks, that helps!",
    "The meeting starts at ten.",
    "Please check your inbox.",
    "I will take care of it.",
    "Good morning everyone",
)
SIZES = {1: (3, 4), 2: (4, 8), 3: (6, 16)}  # channels, messages each

REACTIONS = {
    "thumb": "thumbs-up",
    "check": "check mark",
    "heart": "heart",
    "star": "star",
    "bolt": "lightning bolt",
}

Message = dict[str, Any]


def _chat(rng: Rng, level: int) -> Draft:
    count, length = SIZES[level]
    names = people(rng, 6)
    me, others = names[0], names[1:]
    channels: dict[str, Any] = {}
    topics = some(rng, [(p, n) for p in PROJECTS for n in NOUNS], count * length)
    rooms = [(c, "channel") for c in some(rng, CHANNELS, count - 1)] + [(others[0], "person")]
    for index, (name, kind) in enumerate(rooms):
        messages = []
        for k in range(length):
            project, noun = topics[index * length + k]
            writers = [me, others[0]] if kind == "person" else names
            minute = 480 + k * 20 + between(rng, 0, 15)
            messages.append(
                {
                    "id": f"m{index}-{k}",
                    "from": pick(rng, writers),
                    "text": pick(rng, LINES).format(p=project, n=noun),
                    "time": f"{minute // 60:02d}:{minute % 60:02d}",
                    "reactions": {"thumb": [pick(rng, others)]} if rng.random() < 0.2 else {},
                }
            )
        messages[between(rng, 0, length - 1)]["from"] = me  # one at least to edit and delete
        channels[f"c{index}"] = {
            "name": name,
            "kind": kind,
            "muted": False,
            "pinned": None,
            "messages": messages,
        }
    options = {
        "brand": pick(rng, ("Huddle", "Teamline", "Commons")),
        "me": me,
        "first": "c0",
        "order": list(channels),
        "now": "17:45",
    }
    return Draft(rng, {"channels": channels}, options)


def _message(rng: Rng, draft: Draft, level: int, mine: bool = False) -> tuple[str, dict[str, Any], Message]:
    """A channel's id, the channel and one message of it; at level 1 in the channel that is open."""
    channels = draft.after["channels"]
    chosen = "c0" if level == 1 else pick(rng, list(channels))
    channel = channels[chosen]
    found = [m for m in channel["messages"] if not mine or m["from"] == draft.options["me"]]
    return chosen, channel, pick(rng, found)


def _room(channel: dict[str, Any]) -> str:
    return f"#{channel['name']}" if channel["kind"] == "channel" else f"the chat with {channel['name']}"


def _new(draft: Draft, text: str) -> Message:
    return {
        "id": "new1",
        "from": draft.options["me"],
        "text": text,
        "time": draft.options["now"],
        "reactions": {},
    }


def _enter(page: PageQuery, channel: str) -> Moves:
    if page.state()["ui"]["channel"] != channel:
        yield from press(page, f"go:{channel}", within="side")


def send(rng: Rng, level: int) -> Instance:
    draft = _chat(rng, level)
    chosen = some(rng, [c for c in draft.after["channels"] if c != "c0"], max(1, level - 1))
    text = pick(rng, WORDS)
    for channel in chosen:
        draft.after["channels"][channel]["messages"].append(_new(draft, text))
    goal = phrase(
        rng,
        ("Write “{t}” in {c}.", "Send the message “{t}” to {c}.", "Post “{t}” in {c}."),
        t=text,
        c=" and ".join(_room(draft.after["channels"][c]) for c in chosen),
    )
    return draft.make(goal, partial(_solve_send, channels=tuple(chosen), text=text))


def _solve_send(page: PageQuery, channels: tuple[str, ...], text: str) -> Moves:
    for channel in channels:
        yield from _enter(page, channel)
        yield from write(page, "text", text, end="\n")


def react(rng: Rng, level: int) -> Instance:
    draft = _chat(rng, level)
    channel_id, channel, message = _message(rng, draft, level)
    sign = pick(rng, tuple(REACTIONS))
    message["reactions"][sign] = [*message["reactions"].get(sign, []), draft.options["me"]]
    goal = phrase(
        rng,
        ("React with {r} to “{t}” in {c}.", "Give the message “{t}” ({c}) a {r} reaction."),
        r=REACTIONS[sign],
        t=message["text"],
        c=_room(channel),
    )
    return draft.make(goal, partial(_solve_react, channel=channel_id, message=message["id"], sign=sign))


def _solve_react(page: PageQuery, channel: str, message: str, sign: str) -> Moves:
    yield from _enter(page, channel)
    yield from press(page, f"react:{message}", within="messages")
    yield from press(page, f"pick:{sign}", within="messages")


def _solve_menu(page: PageQuery, channel: str, message: str, k: str) -> Moves:
    yield from _enter(page, channel)
    yield from press(page, f"more:{message}", within="messages")
    yield from press(page, f"{k}:{message}", within="messages")


def pin(rng: Rng, level: int) -> Instance:
    draft = _chat(rng, level)
    channel_id, channel, message = _message(rng, draft, level)
    channel["pinned"] = message["id"]
    goal = phrase(
        rng,
        ("Pin the message “{t}” in {c}.", "In {c}, pin “{t}”."),
        t=message["text"],
        c=_room(channel),
    )
    return draft.make(goal, partial(_solve_menu, channel=channel_id, message=message["id"], k="pin"))


def delete(rng: Rng, level: int) -> Instance:
    draft = _chat(rng, level)
    channel_id, channel, message = _message(rng, draft, level, mine=True)
    channel["messages"].remove(message)
    goal = phrase(
        rng,
        ("Delete your message “{t}” in {c}.", "Take back what you wrote in {c}: “{t}”"),
        t=message["text"],
        c=_room(channel),
    )
    return draft.make(goal, partial(_solve_menu, channel=channel_id, message=message["id"], k="delete"))


def edit(rng: Rng, level: int) -> Instance:
    draft = _chat(rng, level)
    channel_id, channel, message = _message(rng, draft, level, mine=True)
    old = message["text"]
    message.update(text=pick(rng, WORDS), edited=True)
    goal = phrase(
        rng,
        ("Change your message “{old}” in {c} to “{new}”", "In {c}, edit “{old}” so that it says “{new}”"),
        old=old,
        new=message["text"],
        c=_room(channel),
    )
    solve = partial(_solve_edit, channel=channel_id, message=message["id"], text=message["text"])
    return draft.make(goal, solve)


def _solve_edit(page: PageQuery, channel: str, message: str, text: str) -> Moves:
    yield from _solve_menu(page, channel, message, "edit")
    yield from write(page, "edit", text, within="messages", end="\n")


def mute(rng: Rng, level: int) -> Instance:
    draft = _chat(rng, level)
    chosen = some(rng, list(draft.after["channels"]), min(level, 2))
    for channel in chosen:
        draft.after["channels"][channel]["muted"] = True
    goal = phrase(
        rng,
        ("Mute {c}.", "Turn off the alerts of {c}."),
        c=" and ".join(_room(draft.after["channels"][c]) for c in chosen),
    )
    return draft.make(goal, partial(_solve_mute, channels=tuple(chosen)))


def _solve_mute(page: PageQuery, channels: tuple[str, ...]) -> Moves:
    for channel in channels:
        yield from _enter(page, channel)
        yield from press(page, "mute")


def carry_code(rng: Rng, level: int) -> Instance:
    """A code stands in one channel and must be written in another."""
    draft = _chat(rng, level)
    source, target = some(rng, list(draft.after["channels"]), 2)
    thing = pick(rng, ("access code", "ticket number", "flight number", "room number"))
    code = f"{pick(rng, 'BCDFGHKLMNPR')}{between(rng, 100, 9999)}"
    index = between(rng, 0, SIZES[level][1] - 1)
    for data in (draft.data, draft.after):
        data["channels"][source]["messages"][index]["text"] = f"The {thing} is {code}."
    draft.after["channels"][target]["messages"].append(_new(draft, code))
    goal = phrase(
        rng,
        (
            "Somebody wrote the {x} in {a}. Post it in {b}: only the {x}.",
            "Find the {x} in {a} and write it, alone, in {b}.",
        ),
        x=thing,
        a=_room(draft.after["channels"][source]),
        b=_room(draft.after["channels"][target]),
    )
    solve = partial(_solve_carry, source=source, target=target, message=f"m{source[1:]}-{index}", code=code)
    return draft.make(goal, solve)


def _solve_carry(page: PageQuery, source: str, target: str, message: str, code: str) -> Moves:
    yield from _enter(page, source)
    yield from press(page, f"message:{message}", within="messages")
    yield from _solve_send(page, (target,), code)


_task = partial(TaskSpec, app="chat", min_size=(640, 480))

TASKS = [
    _task("send", generate=send, tags=("typing", "navigation")),
    _task("react", generate=react, tags=("grounding", "scrolling")),
    _task("pin", generate=pin, tags=("grounding", "scrolling")),
    _task("delete", generate=delete, tags=("grounding", "scrolling")),
    _task("edit", generate=edit, tags=("typing", "scrolling")),
    _task("mute", generate=mute, tags=("grounding", "navigation")),
    _task("carry", generate=carry_code, tags=("memory", "reading", "typing")),
]
