"""Data sets: a graph, what is known about its nodes, and what is predicted; named data, and tables of one's own."""

from gatas.datasets.config import DataConfig, LinkTableData, NamedData, NodeTableData, StoreData, TableData
from gatas.datasets.dataset import Dataset
from gatas.datasets.loading import NAMES, load_dataset, open_dataset
from gatas.datasets.node_table import NodeTable
from gatas.datasets.own import read_dataset
from gatas.datasets.targets import SPLITS, LinkTargets, NodeTargets, NumberTargets, Pairs, Task

__all__ = [
    "NAMES",
    "SPLITS",
    "DataConfig",
    "Dataset",
    "LinkTableData",
    "LinkTargets",
    "NamedData",
    "NodeTable",
    "NodeTableData",
    "NodeTargets",
    "NumberTargets",
    "Pairs",
    "StoreData",
    "TableData",
    "Task",
    "load_dataset",
    "open_dataset",
    "read_dataset",
]
