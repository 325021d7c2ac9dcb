"""Edge type paths as integers (§3.1).

A path over n relations is a number: the paper's level order E₁, E₂ … counted from 0, so that path 0 is the self-loop alone.
-1 is the empty path. With n = 2, {A, B}:

    -1 = ()   0 = (A)   1 = (B)   2 = (A, A)   3 = (A, B)   4 = (B, A)   5 = (B, B)   6 = (A, A, A) …

The order holds paths with inner self-loops, which are never walked; that keeps φ and δ a division apart. Every function
takes a number or an integer array.
"""

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gatas.errors import TransitionError

EMPTY_PATH = -1
MAX_PATHS = 2**63 - 1

Path = TypeVar("Path", int, NDArray[np.int64])


def num_paths(num_relations: int, num_steps: int) -> int:
    """Return M, the number of paths of 1 to C steps; refused where their ids would not fit into 63 bits."""
    count: int = sum(int(num_relations) ** step for step in range(1, num_steps + 1))
    if count > MAX_PATHS:
        raise TransitionError(
            f"{num_relations} relations over {num_steps} steps make 10^{math.log10(count):.1f} paths; 10^18.9 fit. "
            "Use fewer steps, or merge edge types."
        )
    return count


def last_relation(path: Path, num_relations: int) -> Path:
    """Return φ, the relation of the last step."""
    return path % num_relations


def parent_path(path: Path, num_relations: int) -> Path:
    """Return δ, the path without its last step; -1 for a path of one step."""
    return path // num_relations - 1


def extend_path(path: Path, relation: Path, num_relations: int) -> Path:
    """Return the path with one more step."""
    return (path + 1) * num_relations + relation


def path_length(path: Path, num_relations: int) -> Path:
    """Return how many relations a path has: |E_m|, which is 1 for the self-loop."""
    if isinstance(path, np.ndarray):
        longest = path_length(int(path.max(initial=EMPTY_PATH)), num_relations)
        first = np.array([_first_of_length(length, num_relations) for length in range(1, longest + 1)], np.int64)
        return np.searchsorted(first, path, side="right").astype(np.int64)
    length = 0
    while path > EMPTY_PATH:
        path, length = parent_path(path, num_relations), length + 1
    return length


def path_relations(path: int, num_relations: int) -> tuple[int, ...]:
    """Return the sequence of relations of a path, first step first."""
    relations: list[int] = []
    while path > EMPTY_PATH:
        relations.append(last_relation(path, num_relations))
        path = parent_path(path, num_relations)
    return tuple(reversed(relations))


def path_of(relations: Sequence[int], num_relations: int) -> int:
    """Return the id of a sequence of relations."""
    path = EMPTY_PATH
    for relation in relations:
        if not 0 <= relation < num_relations:
            raise TransitionError(f"relation {relation} is outside 0 to {num_relations - 1}.")
        path = extend_path(path, relation, num_relations)
    return path


def relation_table(paths: NDArray[np.int64], num_relations: int, num_steps: int) -> NDArray[np.int64]:
    """(U, C) relations of several paths, first step first; -1 after the last step."""
    table = np.full((len(paths), num_steps), -1, np.int64)
    position = path_length(paths, num_relations) - 1
    while (alive := position >= 0).any():
        table[alive, position[alive]] = last_relation(paths[alive], num_relations)
        paths, position = parent_path(paths, num_relations), position - 1
    return table


def path_name(path: int, relation_names: Sequence[str]) -> str:
    """Return a path in readable form: `parent → parent⁻¹`."""
    return " → ".join(relation_names[relation] for relation in path_relations(path, len(relation_names)))


def _first_of_length(length: int, num_relations: int) -> int:
    return sum(num_relations**shorter for shorter in range(1, length))
