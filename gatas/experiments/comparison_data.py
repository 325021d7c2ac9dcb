"""Data to compare on: by its name, or by a YAML file, whose node table may have several columns of splits."""

import warnings
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import yaml

from gatas.datasets import Dataset, load_dataset, open_dataset
from gatas.datasets.config import NodeTableData
from gatas.errors import ConfigError, GatasWarning
from gatas.graph.table_files import TableFile
from gatas.training.config import Config, load_config


class Loaded(NamedTuple):
    """One split of a graph."""

    graph: str
    dataset: Dataset
    config: Config | None  # the settings of ours, where a file says them


def loaded(named: str, data_dir: str | Path | None, splits: Sequence[str] = ()) -> list[Loaded]:
    """A data set by its name, or that of a YAML file with its settings, once for each of the columns that `splits` name."""
    path = Path(named)
    if path.suffix not in (".yaml", ".yml") and not path.is_file():
        return [Loaded(named, load_dataset(named, data_dir), None)]
    config = load_config(path)
    given = yaml.safe_load(path.read_text(encoding="utf-8")).get("data") or {}
    if given and "name" not in given:  # files of one's own: two configs may be over the same tables
        config = config.with_settings({"data.name": path.stem})
    with warnings.catch_warnings():
        if splits:  # each split leaves the columns of the others unused
            warnings.filterwarnings("ignore", ".* columns? w(ere|as) not used", GatasWarning)
        return [Loaded(config.data.name, open_dataset(one.data, data_dir), one) for one in split_configs(config, splits)]


def split_configs(config: Config, splits: Sequence[str]) -> list[Config]:
    """A config for each column of the node table that `splits` name, also as `split*`; without any, the config itself."""
    if not splits or not isinstance(config.data, NodeTableData) or config.data.nodes is None:
        return [config]
    columns = TableFile(config.data.nodes).names()
    found = [column for column in columns if any(fnmatchcase(column, pattern) for pattern in splits)]
    if not found:
        raise ConfigError(
            f"{config.data.nodes} has no column {' or '.join(splits)}; it has {', '.join(columns[:20])}. Name columns of "
            "splits, or leave --splits out."
        )
    return [config.with_settings({"data.split": one, "data.name": f"{config.data.name}-{one}"}) for one in found]
