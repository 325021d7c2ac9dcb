"""Arguments of `Dataset.from_pyg` and `Dataset.from_networkx`, typed so that editors complete them."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from gatas.datasets.config import ConfigTask, Direction, Ratios


class PythonSettings(TypedDict, total=False):
    """Arguments of both; what they mean is said by the two methods."""

    task: ConfigTask
    direction: Direction
    link_types: Sequence[str] | None
    ratios: Ratios | Mapping[str, float] | None
    name: str
    seed: int


class PygSettings(PythonSettings, total=False):
    """Arguments of `Dataset.from_pyg`."""

    class_names: Sequence[str]


class NetworkxSettings(PythonSettings, total=False):
    """Arguments of `Dataset.from_networkx`."""

    features: str | Sequence[str]
    label: str | None
    split: str | None
    edge_type: str
    weight: str
