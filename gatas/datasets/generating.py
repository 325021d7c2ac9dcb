"""`generate_graph`: typed power-law graphs with planted classes, of any size, written part by part.

Nodes have a rank. The degree of rank r falls as (r + 1)^(-1 / (exponent - 1)); its class is r modulo the number of classes,
and its id a place in a permutation that is a formula, so that hubs are anywhere. An edge of type k leads from a node of class
c to one of class c + k (`homophily`), or to any: a class shows in types and neighbours as well as in features. All is drawn
in blocks that have generators of their own, so that a file holds the same rows whoever writes it, and in what portions.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, Field, model_validator

from gatas.datasets.targets import SPLITS
from gatas.errors import GraphError
from gatas.files import atomic_folder, reason
from gatas.graph.edges import MAX_NODES
from gatas.graph.inputs import Ints
from gatas.progress import ProgressCallback

BLOCK = 1 << 17
"""Rows that are drawn at once. A part of the recipe: another number gives another graph."""

ORDER, CENTRES, NODES, EDGES = range(4)
"""What a generator is for."""


class GraphRecipe(BaseModel, frozen=True, extra="forbid"):
    """What a generated graph is like. The same recipe gives the same files."""

    nodes: int = Field(100_000, ge=2, le=MAX_NODES, description="how many nodes")
    edges: int = Field(1_000_000, ge=0, description="how many edges are listed; a few are repeats of another")
    edge_types: int = Field(3, ge=1, le=1000, description="type k leads from class c to class c + k")
    classes: int = Field(8, ge=2, description="planted classes of nodes")
    features: int = Field(32, ge=0, description="numbers that each node has")
    exponent: float = Field(2.5, gt=2, description="of the degrees' power law; near 2: the largest hubs")
    homophily: float = Field(0.7, ge=0, le=1, description="share of edges that lead where classes say; others lead anywhere")
    signal: float = Field(0.5, ge=0, description="how far apart the features of classes lie; their deviation is 1")
    train: float = Field(0.1, ge=0, le=1, description="share of nodes to learn from")
    valid: float = Field(0.05, ge=0, le=1, description="share of nodes to stop early by")
    test: float = Field(0.05, ge=0, le=1, description="share of nodes to measure")
    hub: int = Field(0, ge=0, description="degree of one more hub: node of rank 0, with edges to as many others")
    text_ids: bool = Field(False, description="ids are text, such as n0000042")
    seed: int = Field(0, ge=0, description="everything is a function of it")

    @model_validator(mode="after")
    def _check_together(self) -> "GraphRecipe":
        if self.nodes < 2 * self.classes:
            raise ValueError(f"{self.nodes} nodes are too few for {self.classes} classes; expected two of each at least.")
        if self.hub >= self.nodes:
            raise ValueError(f"a hub of degree {self.hub} needs {self.hub + 1} nodes; there are {self.nodes}.")
        if self.train + self.valid + self.test > 1 + 1e-9:
            raise ValueError(f"train, valid and test add up to {self.train + self.valid + self.test:g}; expected 1 at most.")
        return self

    def generator(self, *names: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *names])


def generate_graph(
    folder: str | Path,
    recipe: GraphRecipe,
    *,
    part_rows: int = 1 << 24,
    threads: int = 1,
    progress: ProgressCallback = lambda share: None,
) -> None:
    """Write `folder/nodes` and `folder/edges`, Parquet files of at most `part_rows` rows; all of it or nothing."""
    folder = Path(folder).absolute()
    if folder.exists():
        raise GraphError(f"{folder} exists already. Choose another folder, or remove it.")
    parts = [
        (f"{table}/part-{number:05}.parquet", make, first, min(first + part_rows, rows))
        for table, make, rows in (("nodes", node_rows, recipe.nodes), ("edges", edge_rows, recipe.hub + recipe.edges))
        for number, first in enumerate(range(0, max(rows, 1), part_rows))
    ]
    try:
        with atomic_folder(folder) as temporary, ThreadPoolExecutor(threads) as pool:
            for table in ("nodes", "edges"):
                (temporary / table).mkdir()
            waiting = [pool.submit(_write, temporary / name, recipe, make, first, last) for name, make, first, last in parts]
            try:
                for done, part in enumerate(waiting, 1):
                    part.result()
                    progress(done / len(parts))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    except OSError as error:
        raise GraphError(f"{folder} could not be written: {reason(error)}. Nothing was left there.") from error


Make = Callable[[GraphRecipe, int], Any]


def _write(path: Path, recipe: GraphRecipe, make: Make, first: int, last: int) -> None:
    """Write rows `first` to `last`, cut out of the blocks that they lie in."""
    schema = make(recipe, 0).schema
    repeating = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    with pq.ParquetWriter(path, schema, use_dictionary=repeating) as writer:
        for number in range(first // BLOCK, -(-last // BLOCK)):
            start = number * BLOCK
            rows = make(recipe, number).slice(max(first - start, 0))
            writer.write_table(rows.slice(0, last - max(first, start)))


def node_rows(recipe: GraphRecipe, block: int) -> Any:
    """Draw ids, labels, splits and features of one block of nodes."""
    generator = recipe.generator(NODES, block)
    node = np.arange(block * BLOCK, min((block + 1) * BLOCK, recipe.nodes))
    kind = _ranks(recipe, node) % recipe.classes
    shares = np.cumsum([recipe.train, recipe.valid, recipe.test])
    split = np.searchsorted(shares, generator.random(len(node)), side="right")
    columns = {"id": _ids(recipe, node), "label": pa.array(kind.astype(np.int16)), "split": _coded(split, [*SPLITS, ""])}
    if recipe.features:
        centres = recipe.generator(CENTRES).standard_normal((recipe.classes, recipe.features), np.float32)
        drawn = generator.standard_normal((len(node), recipe.features), np.float32)
        drawn += np.float32(recipe.signal) * centres[kind]
        columns["features"] = pa.FixedSizeListArray.from_arrays(pa.array(drawn.ravel()), recipe.features)
    return pa.table(columns)


def edge_rows(recipe: GraphRecipe, block: int) -> Any:
    """Draw sources, targets and types of one block of edges; those of the hub come first."""
    generator = recipe.generator(EDGES, block)
    count = min(BLOCK, recipe.hub + recipe.edges - block * BLOCK)
    frequency = 1.0 / np.arange(1, recipe.edge_types + 1)
    kind = np.searchsorted(np.cumsum(frequency / frequency.sum())[:-1], generator.random(count), side="right")
    source, target = _powers(recipe, generator, count), _powers(recipe, generator, count)
    by_class = generator.random(count) < recipe.homophily
    planted = target - target % recipe.classes + (source + kind) % recipe.classes
    target = np.where(by_class & (planted < recipe.nodes), planted, target)
    itself = target == source
    target[itself] = (source[itself] + recipe.classes) % recipe.nodes
    of_hub = np.arange(block * BLOCK, min(block * BLOCK + count, recipe.hub))
    source[: len(of_hub)], target[: len(of_hub)], kind[: len(of_hub)] = 0, of_hub + 1, 0
    return pa.table(
        {
            "source": _ids(recipe, _nodes(recipe, source)),
            "target": _ids(recipe, _nodes(recipe, target)),
            "type": _coded(kind, [f"type {number}" for number in range(recipe.edge_types)]),
        }
    )


def _powers(recipe: GraphRecipe, generator: np.random.Generator, count: int) -> Ints:
    """Draw ranks by their power law: the inverse of its distribution function, at random places."""
    falls = 1.0 / (recipe.exponent - 1.0)
    ranks: Ints = (recipe.nodes * generator.random(count) ** (1.0 / (1.0 - falls))).astype(np.int64)
    return ranks


def _order(recipe: GraphRecipe) -> tuple[int, int]:
    """Draw a factor that has no divisor in common with the number of nodes, and an offset: rank · factor + offset permutes."""
    generator = recipe.generator(ORDER)
    factor = int(generator.integers(recipe.nodes // 3, recipe.nodes)) | 1
    while math.gcd(factor, recipe.nodes) > 1:
        factor += 1
    return factor, int(generator.integers(recipe.nodes))


def _nodes(recipe: GraphRecipe, rank: Ints) -> Ints:
    factor, offset = _order(recipe)
    nodes: Ints = (rank * factor + offset) % recipe.nodes
    return nodes


def _ranks(recipe: GraphRecipe, node: Ints) -> Ints:
    factor, offset = _order(recipe)
    ranks: Ints = (node - offset) % recipe.nodes * pow(factor, -1, recipe.nodes) % recipe.nodes
    return ranks


def _ids(recipe: GraphRecipe, node: Ints) -> Any:
    if not recipe.text_ids:
        return pa.array(node.astype(np.int32))
    digits = pc.utf8_lpad(pa.array(node).cast(pa.string()), len(str(recipe.nodes - 1)), "0")
    return pc.binary_join_element_wise("n", digits, "")


def _coded(codes: NDArray[Any], names: list[str]) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int16)), pa.array(names))
