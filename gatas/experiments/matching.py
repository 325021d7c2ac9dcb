"""Whether figures of a page are those of its sources: not any number there, but the one that the page says it is.

- A number of a result is known by its data, model and metric. The nearest text that names one of them decides: what is before
  the figure in its cell, the head of its column, its row; in prose the passage. Single seeds and types have to be named.
- Elsewhere a figure is right where its source has it and hardly any of the figures beside it: a wrong one would be noticed.
- Where sources have many, a table is a selection of rows and columns of theirs: figures of one row have one part of their
  places in common, those of one column the rest. A wrong figure stands in no such place, wherever else the number is.
- `<!-- of: ours, rows stored & trained; GAT -->` says which lines of its sources a passage is of, where neither is so.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby

from gatas.experiments.figures import Figure
from gatas.experiments.sources import SourceNumber, holds

KeyPath = tuple[str, ...]
About = tuple[tuple[str, ...], ...]
MOST_BESIDE = 1
"""Of the ten figures that differ by one to five in the last digit, how many a source may hold, too."""


def mistakes(
    figures: Sequence[Figure], numbers: Sequence[SourceNumber], only: Sequence[Sequence[str]] = ()
) -> list[tuple[Figure, str]]:
    """Figures that no source has where it should, each with what is wrong."""
    if only:
        numbers = [number for number in numbers if any(within(number, parts) for parts in only)]
    results: dict[About, list[SourceNumber]] = {}
    for number in numbers:
        if number.about:
            results.setdefault(number.about, []).append(number)
    others = [number for number in numbers if not number.about]
    found, tables = list[tuple[Figure, str]](), list[Figure]()
    for one in figures:
        named = of_results(one, results)
        if any(holds(number, one) for number in named):
            found += unclear(one, named)
        elif not any(holds(number, one) for number in others):
            found.append((one, "is not in {}"))
        elif one.column >= 0:
            tables.append(one)
        else:
            found += unclear(one, others)
    lost = of_tables(tables, others)
    return [*found, *((one, f"{said}; it {more}") for one, said in lost for _, more in unclear(one, others))]


def within(number: SourceNumber, parts: Sequence[str]) -> bool:
    """Whether all parts of a comment are where a number stands."""
    place = " ".join(number.place).casefold()
    return all(part.casefold() in place for part in parts)


def unclear(one: Figure, numbers: Sequence[SourceNumber]) -> list[tuple[Figure, str]]:
    """A problem where too many of the figures beside this one would be taken for right."""
    step = 10.0**-one.digits
    beside = [replace(one, value=one.value + sign * by * step) for by in range(1, 6) for sign in (1, -1)]
    taken = sum(any(holds(number, other) for number in numbers) for other in beside)
    if taken <= MOST_BESIDE:
        return []
    said = f"is in {{}}, but so would be {taken} of the 10 figures beside it. Name its row or its keys: `<!-- of: … -->`"
    return [(one, said)]


def of_results(one: Figure, numbers: Mapping[About, list[SourceNumber]]) -> list[SourceNumber]:
    """The numbers of results that a figure may be, by what is said near it."""
    found = list(numbers)
    for aspect in range(3):  # data, model, metric
        values = {about[aspect] for about in numbers} - {()}
        chosen = next((said for text in one.near if (said := {names for names in values if says(text, names)})), None)
        if chosen is None and (len(values) > 1 and aspect < 2):
            return []
        found = [about for about in found if chosen is None or not about[aspect] or about[aspect] in chosen]
    usual = [about for about in found if all(any(says(text, names) for text in one.near) for names in about[3:])]
    return [number for about in usual for number in numbers[about]]


@cache
def says(text: str, names: tuple[str, ...]) -> bool:
    """Whether a text has one of some names, as a word."""
    return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text, re.IGNORECASE) for name in names)


def of_tables(figures: Sequence[Figure], numbers: Sequence[SourceNumber]) -> list[tuple[Figure, str]]:
    """Figures of a table that are not in the row and column of their sources that the others are in."""
    places = {one: {number.place for number in numbers if holds(number, one)} for one in figures}
    longest = max((len(place) for own in places.values() for place in own), default=0)
    parts = [(start, stop) for stop in range(1, longest + 1) for start in range(stop)]
    fewest = min((disagreeing(places, start, stop) for start, stop in parts), key=len, default=[])
    return [(one, "is not in the row and column of its source that the others are in") for one in fewest]


def disagreeing(places: dict[Figure, set[KeyPath]], start: int, stop: int) -> list[Figure]:
    """Figures that have no place left when each row has one such part of its places in common, each column the rest."""

    def of_row(place: KeyPath) -> KeyPath:
        return place[start:stop]

    def of_column(place: KeyPath) -> KeyPath:
        return (*place[:start], "", *place[stop:])

    left, before = dict(places), -1
    while before != (before := sum(map(len, left.values()))):
        for part, group in ((of_row, lambda one: (one.line,)), (of_column, lambda one: (one.column, one.order))):
            for _, of_group in groupby(sorted(left, key=group), key=group):
                own = [one for one in of_group if left[one]]
                if own:
                    common = set.intersection(*({part(place) for place in left[one]} for one in own))
                    left |= {one: {place for place in left[one] if part(place) in common} for one in own}
    return [one for one, own in left.items() if not own]
