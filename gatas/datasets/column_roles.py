"""What a column that no setting names is taken for: a feature and how it is encoded, or nothing, and why."""

import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gatas.datasets.column_values import present_values
from gatas.datasets.encoded_columns import NodeTypes, signed_log
from gatas.datasets.learning import FREQUENT, MOST_CATEGORIES, are_indices
from gatas.datasets.node_columns import SPLIT_NAMES, whole_or_none
from gatas.datasets.targets import SPLITS, UNLABELLED
from gatas.graph.checks import ANY_NUMBER
from gatas.graph.column_types import is_list, is_number_column, is_text
from gatas.graph.counts import counted

FEW_NUMBERS = 10
"""A column with no more different numbers is not called skewed: a rare flag is no long tail."""
MOST_SKEW = 2.0
"""Skewness beyond which a number is scaled otherwise; that of an exponential distribution is 2."""
MASK = re.compile(
    r"((is|in)[_ ]?)?(train|valid|val|validation|dev|eval|test|holdout)(ing)?([_ ]?(mask|idx|index|set))?", re.IGNORECASE
)
LEFT_OUT = "left out"
COPY = "one to one with the label, and so gives it away"
ANOTHER_SPLIT = "another split, which data.split may name instead"


class ColumnRole(NamedTuple):
    """What a column was taken for, why, and how it is encoded where that is not the default."""

    column: str
    taken_for: str
    why: str = ""
    encode: str | None = None

    @property
    def is_feature(self) -> bool:
        return self.taken_for.startswith("feature")


def feature_role(name: str, values: Any, node_types: NodeTypes) -> ColumnRole:
    """Judge a column by its values: which kind of feature it is, or why it is none."""
    present = present_values(values)
    if pa.types.is_null(values.type) or not present.any():
        return ColumnRole(name, LEFT_OUT, "no values")
    if is_list(values.type):
        return _list_role(name, values, node_types)
    known = values.filter(pa.array(present))
    if is_split(known):
        return ColumnRole(name, LEFT_OUT, ANOTHER_SPLIT)
    if pc.count_distinct(known).as_py() < 2:
        return ColumnRole(name, LEFT_OUT, f"always {_shown(known[0].as_py())}")
    if is_text(values):
        return _text_role(name, known)
    if is_number_column(values):
        return _number_role(name, known, np.asarray(present))
    if pa.types.is_temporal(values.type):
        return ColumnRole(name, LEFT_OUT, f"{values.type}; to use it, make a number of it, such as days")
    return ColumnRole(name, LEFT_OUT, f"{values.type}; expected numbers, text or lists of numbers")


def _list_role(name: str, values: Any, node_types: NodeTypes) -> ColumnRole:
    flat, lists = values.flatten(), values.drop_null()
    if not is_number_column(flat):
        return ColumnRole(name, LEFT_OUT, f"lists of {flat.type}; expected numbers")
    if flat.null_count:
        return ColumnRole(name, LEFT_OUT, "numbers are missing in some lists")
    lengths = pc.min_max(pc.list_value_length(lists))
    low, high = lengths["min"].as_py(), lengths["max"].as_py()
    if are_indices(values, node_types):
        if pc.min(flat).as_py() < 0:
            return ColumnRole(name, LEFT_OUT, "lists of different lengths with negative numbers, which are no indices")
        return ColumnRole(name, "feature: indices", f"{low} to {high} of {pc.max(flat).as_py() + 1:,}, kept sparse")
    if low != high and node_types.names == ("",):
        return ColumnRole(name, LEFT_OUT, f"lists of {low} to {high} numbers; expected one length")
    return ColumnRole(
        name, "feature: list", counted(high, "number") if low == high else f"{low:,} to {high:,} numbers, by type"
    )


def _text_role(name: str, known: Any) -> ColumnRole:
    distinct = pc.count_distinct(known).as_py()
    numeric = pc.sum(pc.match_substring_regex(known, ANY_NUMBER)).as_py() or 0
    if len(known) > numeric > len(known) / 2:
        odd = known.filter(pc.invert(pc.match_substring_regex(known, ANY_NUMBER)))[0].as_py()
        return ColumnRole(
            name, LEFT_OUT, f"numbers, but {counted(len(known) - numeric, 'value is', 'values are')} not, such as {_shown(odd)}"
        )
    if 2 * distinct > len(known):
        return ColumnRole(
            name, LEFT_OUT, f"{counted(distinct, 'different value')} in {counted(len(known), 'node')}: a name or free text"
        )
    if distinct <= MOST_CATEGORIES:
        return ColumnRole(name, "feature: category", counted(distinct, "value"))
    counts = np.sort(np.asarray(pc.value_counts(known).field("counts")))[::-1]
    why = f"{distinct:,} values: the {FREQUENT} most frequent ({counts[:FREQUENT].sum() / len(known):.0%}), and other"
    return ColumnRole(name, "feature: category", why, f"frequent {FREQUENT}")


def _number_role(name: str, known: Any, present: NDArray[np.bool_]) -> ColumnRole:
    numbers = np.asarray(known.cast(pa.float64()))
    if MASK.fullmatch(name) and np.isin(numbers, [0, 1]).all():
        return ColumnRole(name, LEFT_OUT, "a mask of a split; make one column of train, valid, test of such")
    if np.isinf(numbers).any():
        return ColumnRole(name, LEFT_OUT, "infinite numbers")
    steps = np.arange(len(numbers)) + numbers[0]
    if present.all() and len(numbers) > FEW_NUMBERS and numbers[0] in (0, 1) and np.array_equal(numbers, steps):
        return ColumnRole(name, LEFT_OUT, "the number of the row")
    scaling, why = chosen_scaling(numbers)
    return ColumnRole(name, "feature: number", why, scaling)


def chosen_scaling(numbers: NDArray[np.float64]) -> tuple[str | None, str]:
    """Return how numbers are scaled, None for mean and deviation, and why.

    Skewed numbers, whose few large values would be all that a scale by deviation leaves to see, become logarithms; where these
    are skewed too, ranks.
    """
    before = skewness(numbers)
    if len(np.unique(numbers)) <= FEW_NUMBERS or abs(before) <= MOST_SKEW:
        return None, f"{numbers.min():g} to {numbers.max():g}"
    after = skewness(signed_log(numbers))
    if abs(after) <= MOST_SKEW:
        return "log", f"log: skewness {before:.1f}, of the logarithm {after:.1f}"
    return "quantile", f"quantile: skewness {before:.1f}, of the logarithm {after:.1f}"


def skewness(numbers: NDArray[np.float64]) -> float:
    """Return the mean cube of numbers that have mean 0 and deviation 1; 0 where all are equal."""
    with np.errstate(over="ignore", invalid="ignore"):
        centred = numbers / max(float(np.abs(numbers).max(initial=0)), 1.0)
        centred = centred - centred.mean()
        deviation = float(centred.std())
        return float(((centred / deviation) ** 3).mean()) if deviation > 0 else 0.0


def is_split(values: Any) -> bool:
    """Whether values are names of splits and nothing else, training among them."""
    if not is_text(values):
        return False
    names = pc.unique(values.drop_null())
    if len(names) > 2 * len(SPLIT_NAMES):
        return False
    found = {name.strip().lower() for name in names.to_pylist()}
    return found <= set(SPLIT_NAMES) and "train" in {SPLIT_NAMES[name] for name in found}


def is_copy(values: Any, label: Any) -> bool:
    """Whether a column says as much as the label does: each value goes with one class, and each class with one value."""
    if is_list(values.type) or is_list(label.type) or pa.types.is_nested(values.type) or pa.types.is_nested(label.type):
        return False
    known = pa.array(present_values(label) & ~_are_unlabelled(label))
    classes, own = _coded(label.filter(known)), _coded(values.filter(known))
    count = int(classes.max(initial=-1)) + 1
    if not 1 < count < len(classes) or int(own.max(initial=-1)) + 1 != count:
        return False
    return len(np.unique(classes.astype(np.int64) * count + own)) == count


def _are_unlabelled(label: Any) -> NDArray[np.bool_]:
    """Whether numbers are -1, which classes have for nodes without a label."""
    if not (pa.types.is_signed_integer(label.type) or pa.types.is_floating(label.type)):
        return np.zeros(len(label), np.bool_)
    return np.asarray(pc.fill_null(pc.equal(label, pa.scalar(UNLABELLED, label.type)), False))


def _coded(values: Any) -> NDArray[Any]:
    """Return a number for each different value, one also for gaps."""
    values = pc.if_else(pa.array(present_values(values)), values, pa.scalar(None, values.type))
    return np.asarray(values.dictionary_encode(null_encoding="encode").indices)


def described(meaning: str, values: Any) -> str:
    """Say in a few words what a column that was taken for one of ours holds."""
    present = values.filter(pa.array(present_values(values)))
    if meaning == "split":
        counts = {entry["values"].as_py(): entry["counts"].as_py() for entry in pc.value_counts(present)}
        order = sorted(counts, key=lambda name: [*SPLITS, None].index(SPLIT_NAMES[name.strip().lower()]))
        return ", ".join(f"{name} {counts[name]:,}" for name in order)
    if meaning in ("label", "node_type", "edge_type", "graph") and not is_list(values.type):
        whole = whole_or_none(present) if pa.types.is_floating(present.type) else None
        distinct = pc.unique(present if whole is None else whole)
        distinct = distinct.take(pc.sort_indices(distinct))
        gaps = (
            f", none for {counted(len(values) - len(present), 'node')}"
            if meaning == "label" and len(present) < len(values)
            else ""
        )
        shown = ", ".join(str(value) for value in distinct[:4].to_pylist())
        return f"{len(distinct):,}: {shown}{' …' if len(distinct) > 4 else ''}{gaps}"
    return ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 24 else f"{text[:20]}…{text[-1]}"
