"""What varies from seed to seed in every app: people, words, dates, themes and the wording of goals.

All draws come from the generator that is passed in. This module knows no app.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
Rng = np.random.Generator


def words(text: str, separator: str = " ") -> tuple[str, ...]:
    """A list written as one string.

    >>> words("red green")
    ('red', 'green')
    """
    return tuple(text.split(separator))


FIRST_NAMES = words(
    "Ada Amir Ana Anton Aisha Ben Bea Carla Chen Dana Diego Elif Emma Erik Fatima Femi Finn Gita Grace "
    "Hana Hugo Ines Ivan Jada Jonas Kai Kenji Lara Leo Lina Luca Maya Mei Milan Mona Nadia Nils Noor "
    "Olga Omar Paul Priya Quinn Rosa Ravi Sara Sven Tara Theo Uma Viktor Wei Yara Yusuf Zoe"
)
LAST_NAMES = words(
    "Abbott Aydin Baker Becker Bianchi Castro Chandra Cohen Costa Dahl Dubois Eriksen Farouk Fischer "
    "Garcia Haas Hoang Ibrahim Ito Jansen Kaya Keller Kovacs Lange Lopez Marsh Mehta Meyer Moreau "
    "Nakata Novak Okafor Olsen Park Patel Petrov Quist Reyes Rossi Sato Schmidt Silva Singh Tanaka "
    "Torres Ueda Vance Weber Wolff Yilmaz Young"
)
NOUNS = words(
    "budget invoice roadmap report survey contract schedule newsletter proposal inventory workshop "
    "brochure feedback agenda summary checklist estimate handbook prototype review statement timetable "
    "manual press-kit"
)
PROJECTS = words(
    "Aurora Basalt Cedar Delta Ember Fjord Granite Harbor Indigo Juniper Kestrel Lagoon Meadow Nimbus "
    "Orchid Pioneer Quartz Raven Sierra Tundra Umbra Vertex Willow Zephyr"
)
CITIES = words(
    "Almada Brookfield Calder Dunmore Eastport Fairview Glenrock Hartwell Ironwood Jarrow Kingsbury "
    "Lakemont Marlow Northgate Oakridge Penrose Quarry Redcliff Stonebridge Thornton Upwell Vernon "
    "Westbay Yarmouth"
)
FRUIT = words("apple banana cherry fig grape kiwi lemon lime mango melon olive orange papaya peach pear plum")
COLORS = {
    "red": "#e03131",
    "orange": "#e8590c",
    "yellow": "#f2b705",
    "green": "#2f9e44",
    "teal": "#0c8599",
    "blue": "#1c7ed6",
    "purple": "#7048e8",
    "pink": "#d6336c",
    "brown": "#8d5b3a",
    "gray": "#868e96",
}
ACCENTS = (
    "#3b5bdb",
    "#1971c2",
    "#0b7285",
    "#2b8a3e",
    "#a61e4d",
    "#6741d9",
    "#b35309",
    "#9c36b5",
    "#c92a2a",
    "#364fc7",
)


def pick(rng: Rng, items: Sequence[T]) -> T:
    """One of the items."""
    return items[int(rng.integers(len(items)))]


def some(rng: Rng, items: Sequence[T], count: int) -> list[T]:
    """`count` different items, in random order."""
    return [items[int(i)] for i in rng.permutation(len(items))[:count]]


def shuffled(rng: Rng, items: Sequence[T]) -> list[T]:
    """All items in random order."""
    return some(rng, items, len(items))


def between(rng: Rng, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included."""
    return int(rng.integers(low, high + 1))


def phrase(rng: Rng, templates: Sequence[str], **words: Any) -> str:
    """One of several wordings, filled in."""
    return pick(rng, templates).format(**words)


def people(rng: Rng, count: int) -> list[str]:
    """Full names whose first names and last names all differ."""
    firsts, lasts = some(rng, FIRST_NAMES, count), some(rng, LAST_NAMES, count)
    return [f"{first} {last}" for first, last in zip(firsts, lasts, strict=True)]


def address(name: str) -> str:
    """A mail address for a name.

    >>> address("Ada Park")
    'ada.park@example.com'
    """
    return name.lower().replace(" ", ".") + "@example.com"


def some_day(rng: Rng, start: str = "2026-03-02", days: int = 300) -> date:
    """A day within `days` of `start`."""
    return date.fromisoformat(start) + timedelta(days=between(rng, 0, days))


def spoken(day: date) -> str:
    """A date as people write it.

    >>> spoken(date(2026, 3, 9))
    '9 March 2026'
    """
    return f"{day.day} {day:%B} {day.year}"


def theme(rng: Rng) -> dict[str, str]:
    """Colours, fonts, corners and density of the page; see shared/kit.css."""
    return {
        "mode": pick(rng, ("light", "light", "dark")),
        "tone": pick(rng, ("cool", "warm", "mint")),
        "density": pick(rng, ("compact", "normal", "normal", "roomy")),
        "font": pick(rng, ("sans", "sans", "sans", "dejavu", "serif")),
        "side": pick(rng, ("left", "left", "right")),
        "accent": pick(rng, ACCENTS),
        "size": pick(rng, ("13px", "14px", "14px", "15px")),
        "radius": pick(rng, ("2px", "6px", "8px", "12px")),
    }
