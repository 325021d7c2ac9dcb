"""`load_dataset`: a named data set, wherever it is kept."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import platformdirs

from gatas.datasets import digits, kinship, multiplex, planetoid, ppi
from gatas.datasets.config import STANDARDISED, DataConfig, StoreData, TableData
from gatas.datasets.dataset import Dataset
from gatas.datasets.own import open_stored, read_tables
from gatas.errors import DatasetError, MissingExtraError

Reader = Callable[[str, Path], Dataset]


@dataclass(frozen=True)
class Layout:
    """A folder below a root, the file that shows the data set is there, and who reads it."""

    folder: str
    mark: str
    read: Reader


@dataclass(frozen=True)
class Source:
    """Where a data set may lie, and how to get it."""

    layouts: tuple[Layout, ...]
    download: Callable[[str, Path], None] | None = None
    how_to_get: str = ""


def _planetoid(name: str, folder: str) -> Source:
    places = (f"{name}/{folder}/raw", f"{folder}/raw")
    return Source(tuple(Layout(place, f"ind.{name}.graph", planetoid.read) for place in places), planetoid.download)


def _multiplex(how_to_get: str, *folders: str) -> Source:
    return Source(tuple(Layout(folder, "train.txt", multiplex.read) for folder in folders), how_to_get=how_to_get)


EMBEDDED: dict[str, Callable[[], Dataset]] = {"digits": digits.load, "kinship": kinship.load}

SOURCES = {
    **{name: _planetoid(name, folder) for name, folder in planetoid.FOLDERS.items()},
    "ppi": Source(
        (
            Layout("ppi", "ppi_graph_feats.npz", ppi.read_arrays),
            Layout("ppi", "raw/train_graph.json", ppi.read_released),
        ),
        ppi.download,
    ),
    "twitter": _multiplex(multiplex.HOW_TO_GET, "twitter"),
    "youtube": _multiplex(multiplex.HOW_TO_GET_YOUTUBE, "youtube"),
    "youtube-lite": _multiplex(multiplex.HOW_TO_GET_LITE, "youtube/lite", "youtube-lite"),
}

UNSCALED: dict[Reader, Reader] = {ppi.read_arrays: ppi.read_unscaled}
"""Who reads features as they were released, in place of readers that standardise."""

NAMES = (*EMBEDDED, *SOURCES)


def load_dataset(name: str, root: str | Path | None = None, *, standardise: bool = True) -> Dataset:
    """Load a data set by name: `digits` and `kinship` are embedded, the others are looked for.

    In order: `root`, $GATAS_DATA, the user's cache folder; then, where PyG knows how, a download into the cache. Features of
    `ppi` have mean 0 and deviation 1 over training nodes, unless `standardise` is False.
    """
    if name in EMBEDDED:
        return EMBEDDED[name]()
    if name not in SOURCES:
        near = get_close_matches(name, NAMES, n=2)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise DatasetError(f"there is no data set {name!r}.{hint} Known: {', '.join(NAMES)}.")
    source, roots = SOURCES[name], search_roots(root)
    found = find(source, list(roots.values()))
    if found is None:
        found = _downloaded(name, source, roots)
    layout, folder = found
    if standardise or name not in STANDARDISED:
        return layout.read(name, folder)
    if layout.read not in UNSCALED:
        raise DatasetError(f"{folder} has no features of {name} as they were released: {layout.mark} is standardised already.")
    return UNSCALED[layout.read](name, folder)


def open_dataset(config: DataConfig, data_dir: str | Path | None = None) -> Dataset:
    """Open the data set that a run's settings name, or whose files they give."""
    if isinstance(config, StoreData):
        return open_stored(config, data_dir)
    if isinstance(config, TableData):
        return read_tables(config, data_dir)
    return load_dataset(config.name, data_dir, standardise=config.standardise)


def search_roots(root: str | Path | None) -> dict[str, Path]:
    """Return where data sets are looked for, in order."""
    roots = {}
    if root is not None:
        roots["root"] = Path(root).expanduser()
    if os.environ.get("GATAS_DATA"):
        roots["$GATAS_DATA"] = Path(os.environ["GATAS_DATA"]).expanduser()
    roots["the cache"] = platformdirs.user_cache_path("gatas") / "data"
    return roots


def find(source: Source, roots: list[Path]) -> tuple[Layout, Path] | None:
    """Find the first folder that holds the data set, and how it is laid out."""
    for root in roots:
        for layout in source.layouts:
            if (root / layout.folder / layout.mark).is_file():
                return layout, root / layout.folder
    return None


def _downloaded(name: str, source: Source, roots: dict[str, Path]) -> tuple[Layout, Path]:
    tried = ", ".join(f"{place} ({what})" for what, place in roots.items())
    if source.download is None:
        raise DatasetError(f"{name} was not found in {tried}. {source.how_to_get}")
    cache, folder = roots["the cache"], source.layouts[0].folder
    try:
        source.download(name, cache)
    except MissingExtraError as error:
        raise MissingExtraError(f"{name} was not found in {tried}, and is downloaded by PyTorch Geometric", "pyg") from error
    except Exception as error:  # PyG passes on whatever its transports raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DatasetError(
            f"{name} was not found in {tried}, and could not be downloaded ({reason}). Put its files into {cache / folder}, "
            f"or pass the folder that holds {folder} as root, --data-dir or $GATAS_DATA."
        ) from error
    found = find(source, [cache])
    if found is None:
        raise DatasetError(f"{name} was downloaded to {cache}, but its files are not there. Remove it and try again.")
    return found
