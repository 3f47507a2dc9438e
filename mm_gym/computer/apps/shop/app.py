"""Tasks of the shop: finding products, the cart, and a checkout that must be right the first time."""

from __future__ import annotations

from functools import partial
from typing import Any

from mm_gym.computer.apps.content import CITIES, Rng, between, people, phrase, pick, shuffled, some, words
from mm_gym.computer.apps.expect import Draft
from mm_gym.computer.apps.moves import Moves, choose, press, write
from mm_gym.computer.tasks import Instance, PageQuery, TaskSpec

CATALOGUE = {
    "Home": ("mug", "lamp", "clock", "pillow"),
    "Office": ("notebook", "pen", "tray", "stapler"),
    "Outdoor": ("tent", "bottle", "backpack", "lantern"),
    "Kitchen": ("pan", "kettle", "knife", "bowl"),
}
STYLES = words("Nordic Classic Urban Coastal Alpine Retro Modern Rustic Studio Heritage Copper Bamboo")
VARIANTS = (("Small", "Medium", "Large"), ("Black", "White", "Sand"), ("Blue", "Green", "Red"))
STREETS = words("Mill Lane;Station Road;Elm Street;Harbour Way;King's Row;Orchard Close;North Parade", ";")
SHIPPING = {"standard": "standard delivery", "express": "express delivery", "pickup": "pick-up in store"}
PAYMENT = {"card": "credit card", "invoice": "invoice", "transfer": "bank transfer"}
COUNTS = {1: 6, 2: 14, 3: 32}


def _shop(rng: Rng, level: int) -> Draft:
    pairs = [(style, c, t) for style in STYLES for c, things in CATALOGUE.items() for t in things]
    prices = some(rng, range(699, 18999, 50), COUNTS[level])
    products = []
    for index, (style, category, thing) in enumerate(some(rng, pairs, COUNTS[level])):
        products.append(
            {
                "id": f"p{index + 1}",
                "name": f"{style} {thing}",
                "thing": thing,
                "category": category,
                "price": int(prices[index]),
                "rating": between(rng, 20, 50) / 10,
                "reviews": between(rng, 3, 900),
                "hue": between(rng, 0, 359),
                "variants": list(pick(rng, VARIANTS)) if index % 3 == 2 else [],
                "text": f"This {style.lower()} {thing} is made for everyday use. Two years of warranty.",
            }
        )
    options = {
        "brand": pick(rng, ("Corner Store", "Fair Goods", "Larder & Loft", "Market Hall")),
        "categories": shuffled(rng, list(CATALOGUE)),
        "products": products,
    }
    return Draft(rng, {"cart": [], "wishlist": [], "orders": []}, options)


def _plain(draft: Draft) -> list[dict[str, Any]]:
    """Products without variants: they can be added from the list."""
    return [p for p in draft.options["products"] if not p["variants"]]


def _line(item: dict[str, Any], count: int = 1, variant: str | None = None) -> dict[str, Any]:
    return {"id": item["id"], "variant": variant, "count": count}


def _fill_cart(draft: Draft, lines: list[dict[str, Any]]) -> None:
    for data in (draft.data, draft.after):
        data["cart"] = [dict(line) for line in lines]


def wish(rng: Rng, level: int) -> Instance:
    draft = _shop(rng, level)
    items = some(rng, draft.options["products"], level)
    draft.after["wishlist"] = sorted(i["id"] for i in items)
    goal = phrase(
        rng,
        ("Put on the wish list (the star): {x}.", "Star these products for my wish list: {x}."),
        x=", ".join(i["name"] for i in items),
    )
    return draft.make(goal, partial(_solve_presses, ks=tuple(f"wish:{i['id']}" for i in items)))


def _solve_presses(page: PageQuery, ks: tuple[str, ...]) -> Moves:
    for k in ks:
        yield from press(page, k, within="page")


def cheapest(rng: Rng, level: int) -> Instance:
    """The lowest (or highest) price in a category; sorting helps."""
    draft = _shop(rng, level)
    category = pick(rng, _plain(draft))["category"]
    group = [p for p in draft.options["products"] if p["category"] == category]
    word, sort, sign = pick(rng, (("cheapest", "cheap", 1), ("most expensive", "dear", -1)))
    item = min(group, key=lambda p: sign * p["price"])
    item["variants"] = []
    draft.after["cart"].append(_line(item))
    goal = phrase(
        rng,
        ("Add the {w} product of the category {c} to the cart.", "From {c}, put the {w} item into my cart."),
        w=word,
        c=category,
    )
    return draft.make(goal, partial(_solve_cheapest, category=category, sort=sort, item=item["id"]))


def _solve_cheapest(page: PageQuery, category: str, sort: str, item: str) -> Moves:
    yield from press(page, f"category:{category}")
    yield from choose(page, "sort", sort)
    yield from press(page, f"add:{item}", within="page")


def quantity(rng: Rng, level: int) -> Instance:
    draft = _shop(rng, level)
    items = some(rng, _plain(draft), level + 1)
    _fill_cart(draft, [_line(i, between(rng, 1, 3)) for i in items])
    index = between(rng, 0, level)
    line = draft.after["cart"][index]
    wanted = pick(rng, [n for n in range(1, 6) if n != line["count"]])
    line["count"] = wanted
    goal = phrase(
        rng,
        ("Change the quantity of {x} in the cart to {n}.", "I need {n} of the {x}: set that in the cart."),
        x=items[index]["name"],
        n=wanted,
    )
    return draft.make(goal, partial(_solve_quantity, item=items[index]["id"], wanted=wanted))


def _solve_quantity(page: PageQuery, item: str, wanted: int) -> Moves:
    yield from press(page, "cart")
    while (
        now := next(line["count"] for line in page.state()["data"]["cart"] if line["id"] == item)
    ) != wanted:
        yield from press(page, f"line:{item}:{'more' if now < wanted else 'less'}", within="page")


def remove(rng: Rng, level: int) -> Instance:
    draft = _shop(rng, level)
    items = some(rng, _plain(draft), level + 1)
    _fill_cart(draft, [_line(i, between(rng, 1, 3)) for i in items])
    index = between(rng, 0, level)
    del draft.after["cart"][index]
    goal = phrase(
        rng,
        ("Take the {x} out of the cart.", "Remove {x} from my cart; keep the rest."),
        x=items[index]["name"],
    )
    return draft.make(goal, partial(_solve_remove, item=items[index]["id"]))


def _solve_remove(page: PageQuery, item: str) -> Moves:
    yield from press(page, "cart")
    yield from press(page, f"remove:{item}", within="page")


# -- ordering ------------------------------------------------------------------------------------------


def _address(rng: Rng) -> dict[str, str]:
    return {
        "name": people(rng, 1)[0],
        "street": f"{between(rng, 1, 140)} {pick(rng, STREETS)}",
        "city": pick(rng, CITIES),
        "zip": str(between(rng, 10000, 99999)),
    }


def _order(rng: Rng, lines: list[dict[str, Any]], voucher: str = "") -> dict[str, Any]:
    return {
        "lines": lines,
        "address": _address(rng),
        "shipping": pick(rng, tuple(SHIPPING)),
        "payment": pick(rng, tuple(PAYMENT)),
        "voucher": voucher,
    }


def _spoken(order: dict[str, Any]) -> str:
    a = order["address"]
    voucher = f", using the voucher {order['voucher']}" if order["voucher"] else ""
    return (
        f"to {a['name']}, {a['street']}, {a['zip']} {a['city']}, by {SHIPPING[order['shipping']]}, "
        f"paid by {PAYMENT[order['payment']]}{voucher}"
    )


def checkout(rng: Rng, level: int) -> Instance:
    """The cart is filled already."""
    draft = _shop(rng, level)
    lines = [_line(i, between(rng, 1, 2)) for i in some(rng, _plain(draft), level)]
    _fill_cart(draft, lines)
    order = _order(rng, lines)
    draft.after.update(cart=[], orders=[order])
    goal = phrase(
        rng,
        ("Order what is in the cart {how}.", "Check out: send the cart's content {how}."),
        how=_spoken(order),
    )
    return draft.make(goal, partial(_solve_checkout, order=order), irreversible=("orders",))


def _solve_checkout(page: PageQuery, order: dict[str, Any]) -> Moves:
    yield from press(page, "cart")
    yield from press(page, "checkout", within="page")
    for name, text in order["address"].items():
        yield from write(page, f"address:{name}", text, within="page")
    if order["shipping"] != "standard":
        yield from press(page, f"shipping:{order['shipping']}", within="page")
    if order["payment"] != "card":
        yield from press(page, f"payment:{order['payment']}", within="page")
    if order["voucher"]:
        yield from write(page, "code", order["voucher"], within="page")
    yield from press(page, "place", within="page")


def buy(rng: Rng, level: int) -> Instance:
    """From finding the product and its variant to the order."""
    draft = _shop(rng, level)
    item = pick(rng, [p for p in draft.options["products"] if p["variants"]])
    line = _line(item, between(rng, 1, level), pick(rng, item["variants"]))
    voucher = f"{pick(rng, ('SAVE', 'SPRING', 'HELLO'))}{between(rng, 10, 30)}" if level == 3 else ""
    order = _order(rng, [line], voucher)
    draft.after["orders"].append(order)
    goal = phrase(
        rng,
        ("Order {n} × {x} in {v} {how}.", "Buy the {x} ({v}), quantity {n}, and have it sent {how}."),
        n=line["count"],
        x=item["name"],
        v=line["variant"],
        how=_spoken(order),
    )
    return draft.make(goal, partial(_solve_buy, order=order), irreversible=("orders",))


def _solve_buy(page: PageQuery, order: dict[str, Any]) -> Moves:
    line = order["lines"][0]
    yield from press(page, f"open:{line['id']}", within="page")
    yield from press(page, f"variant:{line['variant']}", within="page")
    for _ in range(line["count"] - 1):
        yield from press(page, "count:more", within="page")
    yield from press(page, "add", within="page")
    yield from _solve_checkout(page, order)


_task = partial(TaskSpec, app="shop", min_size=(640, 480))

SCENES = {"shop": _shop}
"""What the tasks of tasks.yaml start from."""

TASKS = [
    _task("wish", generate=wish, tags=("grounding", "scrolling")),
    _task("cheapest", generate=cheapest, tags=("reading", "scrolling")),
    _task("quantity", generate=quantity, tags=("grounding",)),
    _task("remove", generate=remove, tags=("grounding",)),
    _task("checkout", generate=checkout, tags=("forms", "typing", "scrolling")),
    _task("buy", generate=buy, tags=("forms", "typing", "scrolling")),
]
