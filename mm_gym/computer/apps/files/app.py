"""Tasks of the file manager: finding, renaming, moving, copying and deleting."""

from __future__ import annotations

from functools import partial
from typing import Any

from mm_gym.computer.apps.content import NOUNS, PROJECTS, Rng, between, phrase, pick, shuffled, some, words
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, at, press, write
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec, click, drag, reveal

ENDINGS = {
    "text": ("txt", "md", "pdf"),
    "image": ("png", "jpg"),
    "music": ("mp3", "ogg"),
    "sheet": ("csv", "tab"),
}
FOLDERS = words(
    "Archive Clients Drafts Holiday Invoices Letters Music Photos Private Recipes School Taxes Travel Work"
)
SIZES = {1: (3, 3), 2: (5, 5), 3: (8, 9)}  # folders, files a folder

Node = dict[str, Any]


def _disk(rng: Rng, level: int) -> Draft:
    """Folders (from level 2 on some within others) and files; all names differ."""
    folders, files = SIZES[level]
    nodes: dict[str, Node] = {}
    names = some(rng, FOLDERS, folders)
    for index, name in enumerate(names):
        parent = f"d{between(rng, 1, index)}" if level > 1 and index > 2 and rng.random() < 0.6 else "root"
        nodes[f"d{index + 1}"] = {"name": name, "kind": "folder", "parent": parent, "size": 0}
    stems = some(rng, [f"{p.lower()}-{n}" for p in PROJECTS for n in NOUNS], (folders + 1) * files)
    sizes = some(rng, range(4, 4000), len(stems))
    for index, stem in enumerate(stems):
        kind = pick(rng, tuple(ENDINGS))
        parent = "root" if index % (folders + 1) == folders else f"d{index % (folders + 1) + 1}"
        nodes[f"f{index + 1}"] = {
            "name": f"{stem}.{pick(rng, ENDINGS[kind])}",
            "kind": kind,
            "parent": parent,
            "size": int(sizes[index]),
        }
    options = {
        "brand": pick(rng, ("Finder's", "Drawer", "Cabinet")),
        "home": pick(rng, ("Home", "My files", "Disk")),
    }
    return Draft(rng, {"nodes": nodes}, options)


def _file(rng: Rng, draft: Draft, level: int) -> tuple[str, Node]:
    """A file: in the home folder at level 1, anywhere else above."""
    nodes = draft.after["nodes"]
    ids = [k for k in nodes if k[0] == "f" and (nodes[k]["parent"] == "root") == (level == 1)]
    chosen = pick(rng, ids)
    return chosen, nodes[chosen]


def _where(draft: Draft, parent: str) -> str:
    if parent == "root":
        return f"the folder {draft.options['home']}"
    return f"the folder {draft.after['nodes'][parent]['name']}"


def _enter(page: PageQuery, folder: str) -> Moves:
    """Open a folder from the tree at the side."""
    if page.state()["ui"]["folder"] != folder:
        yield from press(page, f"tree:{folder}", within="tree")


def _pick(page: PageQuery, node_id: str) -> Moves:
    yield from _enter(page, page.state()["data"]["nodes"][node_id]["parent"])
    yield from press(page, f"node:{node_id}", within="list")


def rename(rng: Rng, level: int) -> Instance:
    draft = _disk(rng, level)
    file_id, node = _file(rng, draft, level)
    old, new = node["name"], f"{pick(rng, NOUNS)}-{between(rng, 2020, 2026)}.{node['name'].split('.')[1]}"
    node["name"] = new
    goal = phrase(
        rng,
        ("Rename {old} in {where} to {new}.", "The file {old} ({where}) should be called {new}."),
        old=old,
        new=new,
        where=_where(draft, node["parent"]),
    )
    return draft.make(goal, partial(_solve_rename, node_id=file_id, new=new))


def _solve_rename(page: PageQuery, node_id: str, new: str) -> Moves:
    yield from _pick(page, node_id)
    yield from press(page, "rename")
    yield from write(page, "name", new)
    yield from press(page, "save")


def delete(rng: Rng, level: int) -> Instance:
    draft = _disk(rng, level)
    file_id, node = _file(rng, draft, level)
    del draft.after["nodes"][file_id]
    goal = phrase(
        rng,
        ("Delete the file {x} from {where}.", "Remove {x}, which lies in {where}, for good."),
        x=node["name"],
        where=_where(draft, node["parent"]),
    )
    return draft.make(goal, partial(_solve_delete, node_id=file_id), keeps=("nodes",))


def _solve_delete(page: PageQuery, node_id: str) -> Moves:
    yield from _pick(page, node_id)
    yield from press(page, "delete")
    yield from press(page, "confirm")


def create(rng: Rng, level: int) -> Instance:
    draft = _disk(rng, level)
    parent = "root" if level == 1 else pick(rng, [k for k in draft.after["nodes"] if k[0] == "d"])
    name = f"{pick(rng, PROJECTS)} {between(rng, 2020, 2030)}"
    draft.after["nodes"]["new1"] = {"name": name, "kind": "folder", "parent": parent, "size": 0}
    goal = phrase(
        rng,
        ("Create a folder “{n}” in {where}.", "Make a new folder named “{n}” inside {where}."),
        n=name,
        where=_where(draft, parent),
    )
    return draft.make(goal, partial(_solve_create, parent=parent, name=name))


def _solve_create(page: PageQuery, parent: str, name: str) -> Moves:
    yield from _enter(page, parent)
    yield from press(page, "new")
    yield from write(page, "name", name)
    yield from press(page, "save")


def drag_file(rng: Rng, level: int) -> Instance:
    draft = _disk(rng, level)
    file_id, node = _file(rng, draft, level)
    source = node["parent"]
    node["parent"] = pick(rng, [k for k in draft.after["nodes"] if k[0] == "d" and k != source])
    goal = phrase(
        rng,
        ("Drag the file {x} from {a} to {b}.", "Move {x} ({a}) into {b} with the mouse."),
        x=node["name"],
        a=_where(draft, source),
        b=_where(draft, node["parent"]),
    )
    return draft.make(goal, partial(_solve_drag, node_id=file_id, target=node["parent"]))


def _solve_drag(page: PageQuery, node_id: str, target: str) -> Moves:
    yield from _enter(page, page.state()["data"]["nodes"][node_id]["parent"])
    yield from reveal(page, at(f"tree:{target}"), within=at("tree"))
    yield from reveal(page, at(f"node:{node_id}"), within=at("list"))
    yield drag(page.find(at(f"node:{node_id}")), page.find(at(f"tree:{target}")))


def transfer(rng: Rng, level: int) -> Instance:
    """Several files of one folder by cut or copy and paste."""
    draft = _disk(rng, level)
    nodes = draft.after["nodes"]
    folders = some(rng, [k for k in nodes if k[0] == "d"], 2)
    ids = sorted(some(rng, [k for k in nodes if nodes[k]["parent"] == folders[0] and k[0] == "f"], level))
    copy = level == 1 and rng.random() < 0.5
    for node_id in ids:
        if copy:
            nodes["new1"] = {**nodes[node_id], "parent": folders[1]}
        else:
            nodes[node_id]["parent"] = folders[1]
    goal = phrase(
        rng,
        ("{v} {x} from {a} to {b}.", "{v} these files of {a} into {b}: {x}."),
        v="Copy" if copy else "Move",
        x=", ".join(draft.data["nodes"][k]["name"] for k in ids),
        a=_where(draft, folders[0]),
        b=_where(draft, folders[1]),
    )
    solve = partial(_solve_transfer, ids=tuple(ids), target=folders[1], k="copy" if copy else "cut")
    return draft.make(goal, solve)


def _solve_transfer(page: PageQuery, ids: tuple[str, ...], target: str, k: str) -> Moves:
    yield from _pick(page, ids[0])
    for node_id in ids[1:]:
        yield from reveal(page, at(f"node:{node_id}"), within=at("list"))
        yield click(page.find(at(f"node:{node_id}")), modifiers=("Control",))
    yield from press(page, k)
    yield from _enter(page, target)
    yield from press(page, "paste")


def largest(rng: Rng, level: int) -> Instance:
    """The file to delete is named by its size, not its name."""
    draft = _disk(rng, level)
    nodes = draft.after["nodes"]
    folder = "root" if level == 1 else pick(rng, [k for k in nodes if k[0] == "d"])
    files = [k for k in nodes if k[0] == "f" and nodes[k]["parent"] == folder]
    word, best = pick(rng, (("largest", max), ("smallest", min)))
    chosen = best(files, key=lambda k: nodes[k]["size"])
    del nodes[chosen]
    goal = phrase(
        rng,
        ("Delete the {w} file in {where}.", "In {where}, find the {w} file and delete it."),
        w=word,
        where=_where(draft, folder),
    )
    return draft.make(goal, partial(_solve_delete, node_id=chosen), keeps=("nodes",))


def context(rng: Rng, level: int) -> Instance:
    """By the right mouse button."""
    draft = _disk(rng, level)
    folders = shuffled(rng, [k for k in draft.after["nodes"] if k[0] == "d"])
    chosen, node = folders[0], draft.after["nodes"][folders[0]]
    old, node["name"] = node["name"], f"{pick(rng, PROJECTS)} files"
    goal = phrase(
        rng,
        (
            "Rename the folder {old} to “{new}” with its context menu (right click).",
            "Right-click the folder {old} and rename it to “{new}”.",
        ),
        old=old,
        new=node["name"],
    )
    return draft.make(goal, partial(_solve_context, node_id=chosen, new=node["name"]))


def _solve_context(page: PageQuery, node_id: str, new: str) -> Moves:
    yield from _enter(page, page.state()["data"]["nodes"][node_id]["parent"])
    yield from press(page, f"node:{node_id}", within="list", button="right")
    yield from press(page, "context:rename")
    yield from write(page, "name", new, end="\n")


_task = partial(TaskSpec, app="files", min_size=(640, 480))

TASKS = [
    _task("rename", generate=rename, tags=("navigation", "typing")),
    _task("delete", generate=delete, tags=("navigation",)),
    _task("create", generate=create, tags=("navigation", "typing")),
    _task("drag", generate=drag_file, tags=("drag", "navigation")),
    _task("transfer", generate=transfer, tags=("navigation", "scrolling")),
    _task("largest", generate=largest, tags=("reading", "navigation")),
    _task("context", generate=context, tags=("grounding", "typing")),
]
