"""Tasks of the mail app: finding mails among look-alikes, sorting them, reading and writing."""

from __future__ import annotations

from functools import partial
from typing import Any

from mm_gym.computer.apps.content import (
    NOUNS,
    PROJECTS,
    Rng,
    address,
    between,
    people,
    phrase,
    pick,
    shuffled,
    some,
)
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, press, write
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec

COUNTS = {1: 5, 2: 10, 3: 24}
SENTENCES = (
    "Please find the latest {noun} for {project} attached.",
    "Could you look over the {noun} before our call?",
    "The {project} team has moved the {noun} to next week.",
    "Thanks again for your help with the {noun}.",
    "I left two comments in the {noun}; the rest looks fine.",
    "We still need a decision about {project}.",
    "Nothing urgent, just keeping you posted on {project}.",
    "The client liked the {noun} and asked for a second version.",
)
NOTES = (
    "Thanks, I will look at it today.",
    "Sounds good to me.",
    "Can we talk about this tomorrow?",
    "I am out of office until Monday.",
    "Yes, please go ahead.",
    "Please send me the final version.",
    "No, that does not work for us.",
)
READ = ("mails.*.read",)


def _mailbox(rng: Rng, level: int, per_sender: int = 1) -> Draft:
    """Mails whose (sender, subject) pairs all differ; from level 2 on, senders and subjects recur."""
    count = COUNTS[level]
    senders = people(rng, max(3, count // max(per_sender, level)))
    topics = some(rng, [(p, n) for p in PROJECTS for n in NOUNS], count)
    mails = []
    for index in range(count):
        sender, (project, noun) = senders[index % len(senders)], topics[index]
        body = "\n".join(
            s.format(noun=noun, project=project) for s in some(rng, SENTENCES, between(rng, 1, 3))
        )
        mails.append(
            {
                "id": f"m{index + 1}",
                "from": sender,
                "address": address(sender),
                "subject": pick(rng, ("{p} {n}", "{n} for {p}", "{p}: {n}")).format(
                    p=project, n=noun.capitalize()
                ),
                "body": body,
                "folder": "inbox",
                "read": bool(rng.random() < 0.6),
                "starred": False,
            }
        )
    mails = shuffled(rng, mails)
    minutes = sorted((between(rng, 0, 900) for _ in mails), reverse=True)
    for mail, minute in zip(mails, minutes, strict=True):
        mail["time"] = f"{minute // 60 + 7:02d}:{minute % 60:02d}"
    owner = people(rng, 1)[0]
    options = {"brand": pick(rng, ("Mailroom", "Courier", "Postbox", "Letterbox")), "owner": owner}
    return Draft(rng, {"mails": mails, "sent": []}, options)


def _mail(data: dict[str, Any], mail_id: str) -> dict[str, Any]:
    return next(m for m in data["mails"] if m["id"] == mail_id)


def _named(mail: dict[str, Any]) -> dict[str, str]:
    return {"who": mail["from"], "subject": mail["subject"]}


def _open(page: PageQuery, mail_id: str) -> Moves:
    yield from press(page, f"mail:{mail_id}", within="list")


# -- marking and sorting -------------------------------------------------------------------------------


def move(rng: Rng, level: int) -> Instance:
    draft = _mailbox(rng, level)
    targets = some(rng, draft.after["mails"], level)
    folder, name = pick(rng, (("archive", "Archive"), ("spam", "Spam")))
    for mail in targets:
        mail["folder"] = folder
    listed = "; ".join(f"“{m['subject']}” from {m['from']}" for m in targets)
    goal = phrase(
        rng,
        (
            "Move to {name}: {listed}.",
            "File these mails under {name}: {listed}.",
            "These belong in {name}: {listed}.",
        ),
        name=name,
        listed=listed,
    )
    ids = tuple(m["id"] for m in targets)
    return draft.make(goal, partial(_solve_file, ids=ids, folder=folder), volatile=READ)


def sender(rng: Rng, level: int) -> Instance:
    """All mails of one sender; they lie scattered over the list."""
    draft = _mailbox(rng, level, per_sender=2)
    who = pick(rng, draft.after["mails"])["from"]
    targets = [m for m in draft.after["mails"] if m["from"] == who]
    folder, verb = pick(rng, (("archive", "Archive"), ("trash", "Delete")))
    for mail in targets:
        mail["folder"] = folder
    goal = phrase(
        rng,
        ("{verb} every mail from {who}.", "{verb} all that {who} has sent, and nothing else."),
        verb=verb,
        who=who,
    )
    ids = tuple(m["id"] for m in targets)
    return draft.make(goal, partial(_solve_file, ids=ids, folder=folder), volatile=READ)


def _solve_file(page: PageQuery, ids: tuple[str, ...], folder: str) -> Moves:
    for mail_id in ids:
        yield from press(page, f"check:{mail_id}", within="list")
    if folder == "trash":
        yield from press(page, "delete")
    elif folder == "archive":
        yield from press(page, "archive")
    else:
        yield from press(page, "move")
        yield from press(page, f"move:{folder}")


def unread(rng: Rng, level: int) -> Instance:
    draft = _mailbox(rng, level)
    target = pick(rng, draft.after["mails"])
    for data in (draft.data, draft.after):
        _mail(data, target["id"])["read"] = True
    target["read"] = False
    goal = phrase(
        rng,
        (
            "Mark the mail “{subject}” from {who} as unread.",
            "Set {who}'s mail “{subject}” back to unread, without touching the others.",
        ),
        **_named(target),
    )
    return draft.make(goal, partial(_solve_unread, mail_id=target["id"]))


def _solve_unread(page: PageQuery, mail_id: str) -> Moves:
    yield from press(page, f"check:{mail_id}", within="list")
    yield from press(page, "unread")


# -- writing -------------------------------------------------------------------------------------------


def _sent(kind: str, to: str, subject: str, body: str, ref: str | None) -> dict[str, Any]:
    return {"kind": kind, "to": address(to), "subject": subject, "body": body, "ref": ref}


def compose(rng: Rng, level: int) -> Instance:
    draft = _mailbox(rng, level)
    to, subject, note = people(rng, 1)[0], f"{pick(rng, PROJECTS)} {pick(rng, NOUNS)}", pick(rng, NOTES)
    draft.after["sent"].append(_sent("new", to, subject, note, None))
    goal = phrase(
        rng,
        (
            "Write a mail to {to} with the subject “{subject}” and the text “{note}”, and send it.",
            "Send “{note}” to {to}. The subject is “{subject}”.",
            "Compose a new mail: to {to}, subject “{subject}”, message “{note}”. Send it.",
        ),
        to=address(to),
        subject=subject,
        note=note,
    )
    solve = partial(_solve_compose, to=address(to), subject=subject, body=note)
    return draft.make(goal, solve, volatile=READ, irreversible=("sent",))


def _solve_compose(page: PageQuery, to: str, subject: str, body: str) -> Moves:
    yield from press(page, "compose")
    yield from write(page, "to", to, within="dialog:body")
    yield from write(page, "subject", subject, within="dialog:body")
    yield from write(page, "body", body, within="dialog:body")
    yield from press(page, "send")


def reply(rng: Rng, level: int) -> Instance:
    draft = _mailbox(rng, level)
    target, note = pick(rng, draft.after["mails"]), pick(rng, NOTES)
    draft.after["sent"].append(_sent("reply", target["from"], "Re: " + target["subject"], note, target["id"]))
    goal = phrase(
        rng,
        (
            "Reply “{note}” to {who}'s mail “{subject}”.",
            "Answer the mail “{subject}” from {who} with “{note}”",
            "{who} wrote about “{subject}”. Write back: “{note}”",
        ),
        note=note,
        **_named(target),
    )
    solve = partial(_solve_reply, mail_id=target["id"], body=note)
    return draft.make(goal, solve, volatile=READ, irreversible=("sent",))


def _solve_reply(page: PageQuery, mail_id: str, body: str) -> Moves:
    yield from _open(page, mail_id)
    yield from press(page, "reply", within="article")
    yield from write(page, "body", body, within="dialog:body")
    yield from press(page, "send")


def forward(rng: Rng, level: int) -> Instance:
    draft = _mailbox(rng, level)
    target, to = pick(rng, draft.after["mails"]), people(rng, 1)[0]
    note = pick(rng, NOTES) if level > 1 else ""
    draft.after["sent"].append(_sent("forward", to, "Fwd: " + target["subject"], note, target["id"]))
    goal = phrase(
        rng,
        (
            "Forward {who}'s mail “{subject}” to {to}{note}.",
            "Pass “{subject}”, sent by {who}, on to {to}{note}.",
        ),
        to=address(to),
        note=f" with the message “{note}”" if note else ", leaving the message empty",
        **_named(target),
    )
    solve = partial(_solve_forward, mail_id=target["id"], to=address(to), note=note)
    return draft.make(goal, solve, volatile=READ, irreversible=("sent",))


def _solve_forward(page: PageQuery, mail_id: str, to: str, note: str) -> Moves:
    yield from _open(page, mail_id)
    yield from press(page, "forward", within="article")
    yield from write(page, "to", to, within="dialog:body")
    if note:
        yield from write(page, "body", note, within="dialog:body")
    yield from press(page, "send")


def code(rng: Rng, level: int) -> Instance:
    """One mail holds a code, another asks for it: what was read must be remembered."""
    draft = _mailbox(rng, level)
    keeper, asker = some(rng, draft.after["mails"], 2)
    thing = pick(rng, ("door code", "meeting number", "locker code", "order number", "Wi-Fi password"))
    value = f"{between(rng, 1000, 9999)}-{between(rng, 10, 99)}"
    for data in (draft.data, draft.after):
        _mail(data, keeper["id"])["body"] += f"\nBy the way, the {thing} is {value}."
        _mail(data, asker["id"])["body"] += f"\nCould you send me the {thing}?"
    draft.after["sent"].append(_sent("reply", asker["from"], "Re: " + asker["subject"], value, asker["id"]))
    goal = phrase(
        rng,
        (
            "“{kept}” from {who} holds the {thing}. Reply to “{asked}” from {other} with just that.",
            "{other} asks for the {thing} in “{asked}”; “{kept}” from {who} has it. Reply with only that.",
        ),
        kept=keeper["subject"],
        who=keeper["from"],
        asked=asker["subject"],
        other=asker["from"],
        thing=thing,
    )
    solve = partial(_solve_code, keeper=keeper["id"], asker=asker["id"], value=value)
    return draft.make(goal, solve, volatile=READ, irreversible=("sent",))


def _solve_code(page: PageQuery, keeper: str, asker: str, value: str) -> Moves:
    yield from _open(page, keeper)
    yield from press(page, "back")
    yield from _solve_reply(page, asker, value)


_task = partial(TaskSpec, app="mail", min_size=(640, 480))

SCENES = {"mailbox": _mailbox}
"""What the tasks of tasks.yaml start from."""

TASKS = [
    _task("unread", generate=unread, tags=("grounding", "scrolling")),
    _task("move", generate=move, tags=("grounding", "scrolling")),
    _task("sender", generate=sender, tags=("reading", "scrolling")),
    _task("compose", generate=compose, tags=("forms", "typing")),
    _task("reply", generate=reply, tags=("forms", "typing")),
    _task("forward", generate=forward, tags=("forms", "typing")),
    _task("code", generate=code, tags=("memory", "reading", "typing")),
]
