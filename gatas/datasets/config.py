"""The `data` section of a run: a data set that is known by name, or files of one's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, model_validator

FILES = ("store", "transitions", "edges", "nodes")
STORED = ("name", "store", "transitions")


def _listed(value: Any) -> Any:
    """One name is a list of one."""
    return [value] if isinstance(value, str) else value


Direction = Literal["auto", "inverse", "undirected", "as given"]
ColumnNames = Annotated[tuple[str, ...] | None, BeforeValidator(_listed)]


class Ratios(BaseModel, frozen=True, extra="forbid"):
    """Shares of the labelled nodes, or of the links asked for; what is left is in no split."""

    train: float = Field(0.8, gt=0, le=1, description="to learn from")
    valid: float = Field(0.1, ge=0, le=1, description="to stop early by; 0: none")
    test: float = Field(0.1, ge=0, le=1, description="to measure once; 0: none")

    @model_validator(mode="after")
    def _check_sum(self) -> "Ratios":
        total = self.train + self.valid + self.test
        if total > 1 + 1e-9:
            raise ValueError(f"train, valid and test add up to {total:g}; expected 1 at most.")
        return self


class PairFiles(BaseModel, frozen=True, extra="forbid"):
    """Files of pairs to ask for, with the edge table's columns; a column `label` says 1 for links and 0 for others."""

    train: Path | None = Field(None, description="null: the edges of the types asked for that are in no other file")
    valid: Path | None = Field(None, description="to stop early by")
    test: Path | None = Field(None, description="to measure once")


class DataConfig(BaseModel, frozen=True, extra="forbid"):
    """What is learned from. Paths in a YAML file are relative to it."""

    name: str = Field("digits", description="a data set that gatas knows; of own files, what results call them")
    store: Path | None = Field(None, description="graph store with labels and splits (gatas ingest); read as it is needed")
    transitions: Path | None = Field(None, description="stored transitions of that graph; null: rows are made for each batch")
    edges: Path | None = Field(None, description="edge table: .parquet, .csv or .tsv, also .gz; null: a known data set")
    nodes: Path | None = Field(None, description="node table, a row for each node; null: all nodes that edges name")
    task: Literal["node classification", "link prediction"] = Field("node classification", description="what is predicted")
    source: str = Field("source", description="column of the edge table: the id an edge starts from")
    target: str = Field("target", description="column: the id it points to")
    edge_type: str | None = Field(None, description="column: its type; null: 'type', if there is one, or else one type")
    weight: str | None = Field(None, description="column: its weight; null: 'weight', if there is one, or else all alike")
    direction: Direction = Field(
        "auto",
        description="inverse: edges lead back too, under a type of their own; undirected: under the same; as given: neither; "
        "auto: undirected where every edge is listed both ways, else inverse",
    )
    id: str = Field("id", description="column of the node table: the id that edges name")
    node_type: str | None = Field(None, description="column: a node's type; null: 'type', if there is one, or else none")
    graph: str | None = Field(None, description="column: which of several graphs; null: 'graph', if there is one")
    features: ColumnNames = Field(None, description="columns, also as emb_*; null: all other numbers and lists; []: none")
    categorical: tuple[str, ...] = Field((), description="feature columns of numbers that are codes; text is one anyway")
    standardise: bool = Field(True, description="numbers get mean 0 and deviation 1, over training nodes; lists stay")
    missing: Literal["refuse", "fill"] = Field("refuse", description="features with gaps; fill: with the mean, or no category")
    label: ColumnNames = Field(None, description="column of classes or of lists of them, or several of 0 and 1; null: 'label'")
    link_types: ColumnNames = Field(None, description="edge types asked for; null: all")
    split: str | None = Field(None, description="column of train, valid, test (of edges, for links); null: 'split', or ratios")
    ratios: Ratios = Field(Ratios(), description="shares, drawn by the seed, where no column says")
    split_by: Literal["nodes", "graphs"] | None = Field(
        None, description="what ratios share out; null: whole graphs where there are several, all with labels, or else nodes"
    )
    pairs: PairFiles = Field(PairFiles(), description="files of links to ask for, instead of held-out edges")
    seed: int = Field(0, ge=0, description="of splits and of negatives")

    @model_validator(mode="before")
    @classmethod
    def _name_files(cls, given: Any) -> Any:
        """Files without a name are called as the edge table is."""
        files = [given[key] for key in ("store", "edges") if given.get(key) is not None] if isinstance(given, dict) else []
        if files and isinstance(files[0], str | Path) and given.get("name") is None:
            return {**given, "name": Path(files[0]).name.split(".")[0] or "own data"}
        return given

    @model_validator(mode="after")
    def _check_together(self) -> "DataConfig":
        given = [name for name in type(self).model_fields if getattr(self, name) != type(self).model_fields[name].default]
        if self.store is not None and (others := [name for name in given if name not in STORED]):
            raise ValueError(f"{others[0]} was given, but a store is taken as it is. Set it in gatas ingest, or leave it out.")
        if self.store is None and self.transitions is not None:
            raise ValueError("transitions belong to a store, but there is none. Give store.")
        if self.store is not None:
            return self
        if self.edges is None and (others := [name for name in given if name != "name"]):
            raise ValueError(f"{others[0]} belongs to own files, but there is no edge table. Give edges.")
        wrong = {"link prediction": ("label", "split_by"), "node classification": ("link_types", "pairs")}[self.task]
        if misplaced := [name for name in wrong if name in given]:
            raise ValueError(f"{misplaced[0]} was given, which is not for {self.task}. Set task, or leave it out.")
        if "pairs" in given and "split" in given:
            raise ValueError("split and pairs were both given; held-out links come from one of them.")
        if "split_by" in given and "split" in given:
            raise ValueError("split and split_by were both given; a column of splits leaves nothing to share out.")
        if self.nodes is None and (others := [name for name in ("node_type", "graph", "features", "label") if name in given]):
            raise ValueError(f"{others[0]} names columns of a node table, but there is none. Give nodes.")
        if self.edges is not None and self.nodes is None and self.task == "node classification":
            raise ValueError("node classification needs a node table with labels. Give nodes, or task: link prediction.")
        return self

    @property
    def written(self) -> tuple[str, ...]:
        """The settings that matter."""
        if self.edges is None:
            return STORED if self.store is not None else ("name",)
        left_out = {"label", "split_by"} if self.task == "link prediction" else {"link_types", "pairs"}
        left_out |= {"store", "transitions"}
        return tuple(name for name in type(self).model_fields if name not in left_out)

    def with_files(self, found: Callable[[Path], Path]) -> "DataConfig":
        """The same with its files elsewhere."""
        if self.edges is None and self.store is None:
            return self
        files = {name: found(path) for name in FILES if (path := getattr(self, name)) is not None}
        pairs = {name: found(path) for name, path in dict(self.pairs).items() if path is not None}
        return self.model_copy(update={**files, "pairs": PairFiles(**pairs)})

    def below(self, folder: Path) -> "DataConfig":
        """Relative paths are taken from a folder; the result holds wherever it is read."""
        return self.with_files(lambda path: (folder / path.expanduser()).absolute())
