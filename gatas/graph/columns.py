"""The one vocabulary for columns: which of ours a table has, by our names or by those that a user gives for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from gatas.errors import GraphError
from gatas.graph.column_types import is_text_file

EDGE_COLUMNS = ("source", "target", "edge_type", "weight")
NODE_COLUMNS = ("id", "node_type", "graph", "label", "split")
REQUIRED = ("source", "target", "id")
IN_FILES = {"edge_type": "type", "node_type": "type"}
"""What files call a column that has another name with us; users may call it so, too."""

Naming = Callable[[str, str], str]
"""Tells how a user gives the name that a file has for one of our columns."""


def by_argument(ours: str, column: str) -> str:
    """Name a column as a caller of `read_graph` does, or a person at a command line."""
    argument, option = ("node_columns", "--node-column") if ours in NODE_COLUMNS else ("columns", "--column")
    quoted = "…" if column == "…" else f"'{column}'"
    return f"{argument}={{'{ours}': {quoted}}} ({option} {ours}={column})"


def by_setting(ours: str, column: str) -> str:
    """Name a column as the settings of data do."""
    return f"data.{ours}: {column}"


@dataclass(frozen=True)
class ColumnNames:
    """Columns to look for in a file: ours, what the file calls some of them, and how users name them.

    Those that are `given` must be there, and `source`, `target` and `id` always; others may be missing.
    """

    ours: Sequence[str]
    given: Mapping[str, str] = field(default_factory=dict)
    naming: Naming | None = by_argument

    def __post_init__(self) -> None:
        wanted = list(self.wanted.values())
        for name, column in self.given.items():
            if wanted.count(column) > 1:
                raise GraphError(
                    f"the column {column!r} was given for {name!r} and for another. Give each a column of its own."
                )

    @classmethod
    def of_arguments(cls, ours: Sequence[str], given: Mapping[str, str] | None) -> "ColumnNames":
        """Take names from an argument of `read_graph`, in which `type` may stand for `edge_type` or `node_type`."""
        names: dict[str, str] = {}
        for name, column in (given or {}).items():
            own = next((own for own, alias in IN_FILES.items() if own in ours and name == alias), name)
            if own not in ours:
                raise GraphError(f"there is no column {name!r} to name; expected some of {', '.join(ours)}.")
            if own in names:
                raise GraphError(f"{own!r} and {name!r} were both given, which are the same column. Leave one out.")
            names[own] = column
        return cls(ours, names)

    @classmethod
    def of_settings(cls, settings: Mapping[str, str | None]) -> "ColumnNames":
        """Take names from the settings of data, where None stands for the usual name."""
        return cls(tuple(settings), {name: column for name, column in settings.items() if column is not None}, by_setting)

    @property
    def wanted(self) -> dict[str, str]:
        """The file's name for each of our columns, given or usual."""
        return {name: self.given.get(name, IN_FILES.get(name, name)) for name in self.ours}

    def find(self, path: Path, found: Sequence[str], header: bool = True) -> dict[str, str]:
        """Return those of our columns that a file has, each with the file's name for it."""
        repeated = [name for name in found if found.count(name) > 1]
        if repeated:
            raise GraphError(
                f"{path} has {found.count(repeated[0])} columns named {repeated[0]!r}. Rename or remove all but one."
            )
        wanted = self.wanted
        for name in (*(name for name in self.ours if name in REQUIRED), *self.given):
            if wanted[name] not in found:
                raise GraphError(
                    f"{path} has no column {wanted[name]!r}; its columns are {', '.join(map(repr, found))}. "
                    f"{self._hint(path, name, found, header)}."
                )
        return {name: column for name, column in wanted.items() if column in found}

    def _hint(self, path: Path, name: str, found: Sequence[str], header: bool) -> str:
        """Guess why a column is missing."""
        column, naming = self.wanted[name], self.naming
        if len(found) == 1 and (marks := [mark for mark in ";|\t ," if mark in found[0]]):
            return f"The file seems to be separated by {marks[0]!r}; write it with commas, or with tabs as .tsv"
        if near := get_close_matches(column, found, n=1) or [other for other in found if other.lower() == column.lower()]:
            return f"Did you mean {near[0]!r}? Then " + (f"pass {naming(name, near[0])}" if naming else "rename it")
        if naming is None:
            return "Add it, or rename what it is called here"
        hint = f"Name it with {naming(name, '…')}"
        if header and is_text_file(path) and name in EDGE_COLUMNS and naming is by_argument:
            hint += ", or pass header=False (--no-header) if the first line is data"
        return hint


def table_columns(kind: Literal["edges", "nodes"], given: Mapping[str, str] | None = None) -> ColumnNames:
    """Return the columns of an edge table or of a node table, with names as `read_graph` is given them."""
    return ColumnNames.of_arguments(EDGE_COLUMNS if kind == "edges" else NODE_COLUMNS, given)
