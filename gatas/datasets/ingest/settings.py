"""The settings that `ingest` takes, for editors to complete; they are checked as those of tables are."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from gatas.datasets.config import ConfigTask, Direction, Ratios


class IngestSettings(TypedDict, total=False):
    """Settings of `NodeTableData`, or of `LinkTableData` where there is no node table; what they mean is said there."""

    name: str
    task: ConfigTask
    source: str
    target: str
    edge_type: str | None
    weight: str | None
    direction: Direction
    id: str
    node_type: str | None
    graph: str | None
    features: str | Sequence[str] | None
    categorical: Sequence[str]
    standardise: bool
    missing: Literal["refuse", "fill"]
    label: str | Sequence[str] | None
    split: str | None
    ratios: Ratios | Mapping[str, float]
    split_by: Literal["nodes", "graphs"] | None
    seed: int
