"""A map of representations: nodes as points of a plane, near one another where they are represented alike."""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gatas.datasets import NodeTargets, NumberTargets
from gatas.errors import GatasError
from gatas.graph.inputs import Ints
from gatas.inference.files import check_suffix, results_file, write_tables
from gatas.inference.ids import ids_of
from gatas.inference.predictor import MapMethod
from gatas.inference.trained import TrainedModel, silent
from gatas.progress import ProgressCallback

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_NODES = 5000
"""Nodes that a map has: of more, some are drawn at random."""
FEWEST_NODES = 4
DIMENSIONS = 50
"""Wider representations are first reduced to so many principal components."""
PICTURES, COORDINATES = (".png", ".svg"), (".parquet", ".csv", ".json")
COLOURED = 20
"""Classes that have a colour of their own: the most frequent ones."""
OTHERS, ONLY = "#c4c4c4", "#0072b2"
"""Colours of nodes of which nothing is known, beside others and where that is so of all."""


@dataclass(frozen=True, eq=False)
class EmbeddingMap:
    """Nodes in a plane, with what is known of them: a class, a number, or a type; None where nothing is."""

    ids: Any  # a column
    coordinates: NDArray[np.float32]  # (n, 2)
    known_as: str  # what `values` are: class, the name of a number, or type
    values: list[str | float | None]
    method: str
    num_nodes: int  # of the whole graph
    title: str

    def table(self) -> Any:
        """Return an Arrow table with the columns `id`, `x`, `y`, and what is known."""
        x, y = (pa.array(column) for column in self.coordinates.T)
        return pa.table({"id": self.ids, "x": x, "y": y, self.known_as: pa.array(self.values)})

    def draw(self) -> "Figure":
        """Draw the map, coloured by what is known."""
        return _draw(self)

    def write(self, path: Path) -> None:
        """Write a picture (.png, .svg) or the coordinates (.parquet, .csv, .json)."""
        check_map_suffix(path)
        if path.suffix.lower() in COORDINATES:
            write_tables(path, self.table().schema, [self.table()])
            return
        with results_file(path) as file:
            self.draw().savefig(file, dpi=150, format=path.suffix.lower()[1:])


def check_map_suffix(path: Path) -> None:
    """Refuse a file that cannot be written, before the work rather than after it."""
    check_suffix(path, (*PICTURES, *COORDINATES))


@dataclass(frozen=True, eq=False)
class MapSample:
    """Nodes that a map shows, by index, with their representations."""

    nodes: Ints  # (n,)
    rows: NDArray[np.float32]  # (n, K·F'')
    num_nodes: int  # that they were drawn from


def embedding_map(
    trained: TrainedModel,
    nodes: Ints | None = None,
    *,
    method: MapMethod = "auto",
    most: int = MOST_NODES,
    seed: int = 0,
    progress: ProgressCallback = silent,
) -> EmbeddingMap:
    """Map nodes given by index, or all, by UMAP where it is installed and by t-SNE elsewhere; at most so many of them."""
    chosen = np.arange(trained.graph.num_nodes) if nodes is None else nodes
    drawn = draw_nodes(chosen, most, seed)
    sample = MapSample(drawn, trained.embed_indices(drawn, progress=progress), len(chosen))
    return map_sample(trained, sample, method=method, seed=seed)


def draw_nodes(nodes: Ints, most: int, seed: int = 0) -> Ints:
    """Return the nodes that a map shows: of more than `most`, as many drawn at random, the same ones every time."""
    found = nodes if len(nodes) <= most else np.sort(np.random.default_rng(seed).choice(nodes, most, replace=False))
    if len(found) < FEWEST_NODES:
        raise GatasError(f"a map of {len(found)} nodes was asked for; it takes {FEWEST_NODES} at least.")
    return found


def map_sample(trained: TrainedModel, sample: MapSample, *, method: MapMethod = "auto", seed: int = 0) -> EmbeddingMap:
    """Place nodes whose representations are known; the model itself is not asked again."""
    if (sample.rows == sample.rows[0]).all():
        raise GatasError(f"all {len(sample.rows):,} nodes have the same representation, so that there is nothing to map.")
    used = method if method != "auto" else "umap" if find_spec("umap") is not None else "t-sne"
    known_as, values = _known(trained, sample.nodes)
    place = _umap(sample.rows, seed) if used == "umap" else _tsne(sample.rows, seed)
    return EmbeddingMap(
        ids_of(trained.graph, sample.nodes),
        place,
        known_as,
        values,
        {"umap": "UMAP", "t-sne": "t-SNE"}[used],
        sample.num_nodes,
        trained.dataset.name,
    )


def _reduced(rows: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    from sklearn.decomposition import PCA

    width = min(DIMENSIONS, *rows.shape)
    if rows.shape[1] <= width:
        return rows
    return np.asarray(PCA(width, random_state=seed, svd_solver="full").fit_transform(rows), np.float32)


def _tsne(rows: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(rows) - 1) / 3)
    found = TSNE(2, perplexity=perplexity, init="pca" if rows.shape[1] > 1 else "random", random_state=seed)
    return np.asarray(found.fit_transform(_reduced(rows, seed)), np.float32)


def _umap(rows: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    try:
        module: Any = import_module("umap")
    except ImportError:
        raise GatasError("UMAP is not installed: pip install umap-learn, or take t-sne.") from None
    found = module.UMAP(n_neighbors=min(15, len(rows) - 1), random_state=seed, n_jobs=1).fit_transform(_reduced(rows, seed))
    return np.asarray(found, np.float32)


def _known(trained: TrainedModel, nodes: Ints) -> tuple[str, list[str | float | None]]:
    """Return the class, number or type of nodes; of new nodes, and of those without a label, nothing."""
    targets, table = trained.dataset.targets, trained.dataset.nodes
    old = nodes < trained.dataset.graph.num_nodes
    rows = nodes[old]
    found: list[str | float | None] = [None] * len(nodes)
    if isinstance(targets, NumberTargets):
        name, given = targets.names[0], [None if np.isnan(value) else float(value) for value in targets.values[rows, 0]]
    elif isinstance(targets, NodeTargets):
        name, given = "class", _classes(targets, rows)  # type: ignore[assignment]
    elif table.node_type is not None:
        name, given = "type", [table.node_type_names[kind] for kind in table.node_type[rows]]
    else:
        name, given = "type", [None] * len(rows)
    for place, value in zip(np.flatnonzero(old).tolist(), given, strict=True):
        found[place] = value
    return name, found


def _classes(targets: NodeTargets, rows: Ints) -> list[str | None]:
    """Return the class of each node, or its first label where it has any number."""
    labels = targets.labels[rows]
    if targets.multi_label:
        return [targets.names[int(own.argmax())] if own.any() else None for own in labels]
    return [targets.names[label] if label >= 0 else None for label in labels.tolist()]


def _draw(found: EmbeddingMap) -> "Figure":
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 7.5), layout="constrained")
    axes = figure.subplots()
    x, y = found.coordinates.T
    size = float(np.clip(6000 / len(x), 3, 30))
    absent = np.array([value is None for value in found.values])
    some = absent.any() and not absent.all()
    colour = OTHERS if some else ONLY
    axes.scatter(x[absent], y[absent], s=size, color=colour, linewidths=0, label="not known" if some else None)
    if any(isinstance(value, float) for value in found.values):
        numbers = np.array([value for value in found.values if value is not None], np.float64)
        points = axes.scatter(x[~absent], y[~absent], s=size, c=numbers, cmap="viridis", linewidths=0)
        figure.colorbar(points, ax=axes, label=found.known_as, shrink=0.7)
    else:
        names, counts = np.unique([str(value) for value in found.values if value is not None], return_counts=True)
        frequent = sorted(names[np.argsort(-counts, kind="stable")[:COLOURED]].tolist())
        colours = matplotlib.colormaps["tab10" if len(frequent) <= 10 else "tab20"]
        texts = np.array([str(value) for value in found.values])
        rest = ~absent & ~np.isin(texts, frequent)
        axes.scatter(x[rest], y[rest], s=size, color="#8a8a8a", linewidths=0, label="others" if rest.any() else None)
        for number, name in enumerate(frequent):
            own = ~absent & (texts == name)
            axes.scatter(x[own], y[own], s=size, color=colours(number), linewidths=0, label=_short(name), alpha=0.85)
    if axes.get_legend_handles_labels()[0]:
        legend = axes.legend(
            loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9, markerscale=2.0, title=found.known_as
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)
    of = f"{len(x):,} of " if len(x) < found.num_nodes else ""
    axes.set_title(f"{found.title}: {of}{found.num_nodes:,} nodes by their representations ({found.method})", parse_math=False)
    return figure


def _short(name: str) -> str:
    text = " ".join(name.split())
    return text if len(text) <= 24 else f"{text[:23]}…"
