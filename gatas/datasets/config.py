"""The `data` section of a run: data that is known by name, tables of one's own, or a store.

`DataConfig` is one of `NamedData`, `NodeTableData`, `LinkTableData` and `StoreData`: which one, the keys `store`, `edges` and
`task` tell. Each has the settings that it needs and refuses the others'.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from gatas.datasets.encode_setting import checked_encodings
from gatas.datasets.settings import refuse_settings

NODE_CLASSIFICATION, NODE_REGRESSION, LINK_PREDICTION = "node classification", "node regression", "link prediction"
LINK_DATA = ("kinship", "twitter", "youtube", "youtube-lite")
"""The data sets known by name whose task is link prediction; all others are for node classification."""
STANDARDISED = ("ppi",)
"""Those whose features are standardised unless told otherwise."""

ORDER = (
    *("name", "store", "transitions", "edges", "nodes", "task", "source", "target", "edge_type", "weight", "direction"),
    *("id", "node_type", "graph", "features", "categorical", "indices", "encode", "standardise", "missing", "label"),
    *("link_types", "split", "ratios", "split_by", "pairs", "keep_reverse", "validation_edges", "seed"),
)
"""All settings of data, in the order in which they are written."""


VALIDATION_EDGES = "links of valid are edges of the graph in the final test, as some protocols have it"


def _listed(value: Any) -> Any:
    """Make a list of a single name."""
    return [value] if isinstance(value, str) else value


def _named_columns(value: Any) -> Any:
    """Make a mapping of a single name, or of several."""
    names = _listed(value)
    return dict.fromkeys(names) if isinstance(names, list | tuple) else value


ConfigTask = Literal["node classification", "node regression", "link prediction"]
Direction = Literal["auto", "inverse", "undirected", "as given"]
NameList = Annotated[tuple[str, ...] | None, BeforeValidator(_listed)]
ValueColumns = Annotated[dict[str, str | None], BeforeValidator(_named_columns)]
Encodings = Annotated[dict[str, str], AfterValidator(checked_encodings)]
ColumnMap = Mapping[str, str | None]
"""What a file calls our columns; None: as we do, where it has such a column."""


def is_feature_file(name: str) -> bool:
    """Whether what `features` names is a file of a sparse matrix rather than a column."""
    return name.lower().endswith(".npz")


class Ratios(BaseModel, frozen=True, extra="forbid"):
    """Shares of the labelled nodes, or of the links asked for; what is left is in no split."""

    train: float = Field(0.8, gt=0, le=1, description="to learn from")
    valid: float = Field(0.1, ge=0, le=1, description="to stop early by; 0: none")
    test: float = Field(0.1, ge=0, le=1, description="to measure once; 0: none")

    @model_validator(mode="after")
    def _check_sum(self) -> "Ratios":
        total = self.train + self.valid + self.test
        if total > 1 + 1e-9:
            kept = [f"{name} {share:g}" for name, share in self if name not in self.model_fields_set]
            usual = f", with {' and '.join(kept)} by default" if kept else ""
            hint = " Give all three; 0 is for none." if kept else ""
            raise ValueError(f"train, valid and test add up to {total:g}{usual}; expected 1 at most.{hint}")
        return self


class PairFiles(BaseModel, frozen=True, extra="forbid"):
    """Files of pairs to ask for, with the edge table's columns; a column `label` says 1 for positives and 0 for negatives."""

    train: Path | None = Field(None, description="null: the edges of the types asked for that are in no other file")
    valid: Path | None = Field(None, description="to stop early by")
    test: Path | None = Field(None, description="to measure once")


class DataSettings(BaseModel, frozen=True, extra="forbid"):
    """What all kinds of data have in common: a name, and files that may lie elsewhere."""

    files: ClassVar[tuple[str, ...]] = ()

    name: str = Field("own data", description="what results call the data")

    @property
    def written(self) -> tuple[str, ...]:
        """The settings of this kind of data, in the order in which they are written."""
        return tuple(name for name in ORDER if name in type(self).model_fields)

    @property
    def edge_columns(self) -> ColumnMap:
        """What the edge table calls our columns; nothing where there is no table."""
        return {}

    @property
    def node_columns(self) -> ColumnMap:
        """What the node table calls our columns; nothing where there is no table."""
        return {}

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The columns of the node table that hold labels, where settings name them."""
        return ()

    def with_files(self, found: Callable[[Path], Path]) -> Self:
        """Return a copy whose files are where `found` says."""
        moved = {name: found(path) for name in self.files if (path := getattr(self, name)) is not None}
        return self.model_copy(update=moved)

    def below(self, folder: Path) -> Self:
        """Return a copy whose relative paths are taken from a folder: it holds wherever it is read."""
        return self.with_files(lambda path: (folder / path.expanduser()).absolute())

    @classmethod
    def misplaced(cls, setting: str) -> str:
        """Explain why a setting of other data is refused here."""
        raise NotImplementedError

    @model_validator(mode="before")
    @classmethod
    def _refuse_misplaced(cls, given: Any) -> Any:
        """Refuse settings of other kinds of data, unless they say what is usual: older versions wrote all of them."""
        if not isinstance(given, Mapping):
            return given
        others = [key for key in given if key in ORDER and key not in cls.model_fields]
        for key in sorted(others, key=ORDER.index):
            if not _is_usual(key, given[key]):
                raise ValueError(cls.misplaced(key))
        return cls._named({key: value for key, value in given.items() if key not in others})

    @classmethod
    def _named(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Name files without a name after the first of them."""
        file = next((given.get(key) for key in cls.files), None)
        if isinstance(file, str | Path) and given.get("name") is None:
            return {**given, "name": Path(file).name.split(".")[0] or "own data"}
        return given


class NamedData(DataSettings):
    """A data set that gatas knows."""

    name: str = Field("digits", description="a data set that gatas knows")
    standardise: bool = Field(True, description="of ppi: features get mean 0 and deviation 1, over training nodes")
    validation_edges: bool = Field(False, description=VALIDATION_EDGES)

    @property
    def task(self) -> ConfigTask:
        """What is predicted, by the data's name."""
        return "link prediction" if self.name in LINK_DATA else "node classification"

    @property
    def written(self) -> tuple[str, ...]:
        """The settings in the order in which they are written; those of links only for links."""
        if self.task == LINK_PREDICTION:
            return tuple(name for name in super().written if name != "standardise")
        return ("name", "standardise") if self.name in STANDARDISED else ("name",)

    @model_validator(mode="after")
    def _check_name(self) -> Self:
        if not self.standardise and self.name not in STANDARDISED:
            raise ValueError(
                f"standardise is for own files and for {', '.join(STANDARDISED)}, but name is {self.name}. Leave it out."
            )
        if self.validation_edges and self.task != LINK_PREDICTION:
            raise ValueError(f"validation_edges are for link prediction, but {self.name} is for {self.task}. Leave it out.")
        return self

    @classmethod
    def misplaced(cls, setting: str) -> str:
        if setting == "transitions":
            return "transitions belong to a store, but there is none. Give store."
        return f"{setting} belongs to own files, but there is no edge table. Give edges."


class StoreData(DataSettings):
    """A store that `gatas ingest` or `Dataset.save` wrote; read as it is needed."""

    files: ClassVar[tuple[str, ...]] = ("store", "transitions")

    name: str = Field("own data", description="what results call the data")
    store: Path = Field(description="graph store with labels and splits (gatas ingest); read as it is needed")
    transitions: Path | None = Field(None, description="stored transitions of that graph; null: rows are made for each batch")

    @property
    def task(self) -> ConfigTask:
        """What is predicted."""
        return "node classification"

    @classmethod
    def misplaced(cls, setting: str) -> str:
        return f"{setting} was given, but a store is taken as it is. Set it in gatas ingest, or leave it out."


class TableData(DataSettings):
    """An edge table, a node table, and what their columns mean."""

    files: ClassVar[tuple[str, ...]] = ("edges", "nodes")

    edges: Path = Field(description="edge table: .parquet, .csv or .tsv, also .gz; null: a known data set")
    nodes: Path | None = Field(None, description="node table, a row for each node; null: all nodes that edges name")
    task: ConfigTask = Field("node classification", description="what is predicted")
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
    features: NameList = Field(
        None, description="columns, also as emb_*, or a sparse .npz file; null: all other numbers and lists; []: none"
    )
    categorical: tuple[str, ...] = Field((), description="feature columns of numbers that are codes; text is one anyway")
    indices: ValueColumns = Field({}, description="columns of lists of indices, each with the column of their values, or null")
    encode: Encodings = Field(
        {}, description="by column: standard, unscaled, log, quantile; one-hot, frequent N, hashed N. Others: by what they hold"
    )
    standardise: bool = Field(True, description="numbers get mean 0 and deviation 1, over training nodes; lists stay")
    missing: Literal["refuse", "fill"] = Field("refuse", description="features with gaps; fill: with the mean, or no category")
    split: str | None = Field(None, description="column of train, valid, test (of edges, for links); null: 'split', or ratios")
    ratios: Ratios = Field(Ratios(), description="shares, drawn by the seed, where no column says")
    seed: int = Field(0, ge=0, description="of splits and of negatives")

    @property
    def draws_splits(self) -> bool:
        """Whether settings ask for shares, so that a column that is merely called `split` does not count."""
        return self.split is None and self.ratios != Ratios()

    @property
    def split_column(self) -> ColumnMap:
        """What the table with splits calls its column; nothing where they are drawn."""
        return {} if self.draws_splits else {"split": self.split}

    @property
    def edge_columns(self) -> ColumnMap:
        return {"source": self.source, "target": self.target, "edge_type": self.edge_type, "weight": self.weight}

    @property
    def node_columns(self) -> ColumnMap:
        return {"id": self.id, "node_type": self.node_type, "graph": self.graph}

    def with_files(self, found: Callable[[Path], Path]) -> Self:
        """Return a copy whose files, those of features too, are where `found` says."""
        moved = super().with_files(found)
        if not self.features or not any(is_feature_file(name) for name in self.features):
            return moved
        features = tuple(str(found(Path(name))) if is_feature_file(name) else name for name in self.features)
        return moved.model_copy(update={"features": features})

    @classmethod
    def misplaced(cls, setting: str) -> str:
        if setting == "transitions":
            return "transitions belong to a store, but there is none. Give store."
        return f"{setting} was given, which is not for {cls.model_fields['task'].default}. Set task, or leave it out."

    @field_validator("task", mode="before")
    @classmethod
    def _check_task(cls, task: Any) -> Any:
        if task not in (NODE_CLASSIFICATION, NODE_REGRESSION, LINK_PREDICTION):
            known = f"'{NODE_CLASSIFICATION}', '{NODE_REGRESSION}' or '{LINK_PREDICTION}'"
            raise PydanticCustomError("literal_error", f"Input should be {known}")
        return task

    @model_validator(mode="after")
    def _check_node_table(self) -> Self:
        columns = ("node_type", "graph", "features", "label")
        if self.nodes is None and (named := [name for name in columns if getattr(self, name, None) is not None]):
            raise ValueError(f"{named[0]} names columns of a node table, but there is none. Give nodes.")
        return self


class NodeTableData(TableData):
    """Tables of which classes or numbers of nodes are learned."""

    task: Literal["node classification", "node regression"] = Field("node classification", description="what is predicted")
    label: NameList = Field(
        None,
        description="column of classes or of lists of them, or several of 0 and 1; of numbers, or several, for regression; "
        "null: 'label'",
    )
    split_by: Literal["nodes", "graphs"] | None = Field(
        None, description="what ratios share out; null: whole graphs where there are several, all with labels, or else nodes"
    )

    @property
    def draws_splits(self) -> bool:
        return super().draws_splits or self.split_by is not None

    @property
    def node_columns(self) -> ColumnMap:
        label = {} if self.label is not None and len(self.label) != 1 else {"label": self.label[0] if self.label else None}
        if self.task == NODE_REGRESSION:
            label = {}  # read as it is: names of classes are text, also where they look like numbers
        return {**super().node_columns, **self.split_column, **label}

    @property
    def label_columns(self) -> tuple[str, ...]:
        return self.label or (("label",) if self.task == NODE_REGRESSION else ())

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.split_by is not None and self.split is not None:
            raise ValueError("split and split_by were both given; a column of splits leaves nothing to share out.")
        if self.nodes is None:
            raise ValueError(f"{self.task} needs a node table with labels. Give nodes, or task: link prediction.")
        return self


class LinkTableData(TableData):
    """Tables of which typed links are learned."""

    task: Literal["link prediction"] = Field("link prediction", description="what is predicted")
    link_types: NameList = Field(None, description="edge types asked for; null: all")
    pairs: PairFiles = Field(PairFiles(), description="files of links to ask for, instead of held-out edges")
    keep_reverse: bool = Field(
        False, description="edges that reverse links of valid or test stay in the graph, as in published splits"
    )
    validation_edges: bool = Field(False, description=VALIDATION_EDGES)

    @property
    def edge_columns(self) -> ColumnMap:
        return {**super().edge_columns, **self.split_column}

    @property
    def pair_columns(self) -> ColumnMap:
        """What files of pairs call our columns."""
        return {"source": self.source, "target": self.target, "edge_type": self.edge_type, "label": None}

    def with_files(self, found: Callable[[Path], Path]) -> Self:
        """Return a copy whose files are where `found` says."""
        pairs = {name: found(path) for name, path in dict(self.pairs).items() if path is not None}
        return super().with_files(found).model_copy(update={"pairs": PairFiles(**pairs)})

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.pairs != PairFiles() and self.split is not None:
            raise ValueError("split and pairs were both given; held-out links come from one of them.")
        if self.keep_reverse and self.direction == "undirected":
            raise ValueError("keep_reverse is for directed links, but direction is undirected. Leave one of them out.")
        return self


KINDS: Mapping[str, type[DataSettings]] = {
    "(named)": NamedData,
    "(store)": StoreData,
    "(nodes)": NodeTableData,
    "(links)": LinkTableData,
}
"""Kinds of data by tag; tags are in brackets, so that error messages can leave them out."""

_SECTIONS: list[type[DataSettings]] = [*KINDS.values(), NodeTableData]
USUAL = {name: field for section in _SECTIONS for name, field in section.model_fields.items()}


def _kind_of(given: Any) -> str:
    """Tell which kind of data settings describe; without a task, files of links to ask for say that it is links."""
    if isinstance(given, DataSettings):
        return next(tag for tag, kind in KINDS.items() if isinstance(given, kind))
    if not isinstance(given, Mapping):
        return "(named)"
    if given.get("store") is not None:
        return "(store)"
    if given.get("edges") is not None:
        task = given.get("task") or (LINK_PREDICTION if given.get("pairs") else None)
        return "(links)" if task == LINK_PREDICTION else "(nodes)"
    return "(named)"


def _is_usual(setting: str, value: Any) -> bool:
    """Whether a setting has its default value, also as plain JSON, or the one that was the default of `direction` before."""
    default = USUAL[setting].default
    plain = default.model_dump(mode="json") if isinstance(default, BaseModel) else default
    value = tuple(value) if isinstance(value, list) else value
    return value is None or value in (default, plain) or (setting == "direction" and value == "inverse")


DataConfig = Annotated[
    Annotated[NamedData, Tag("(named)")]
    | Annotated[StoreData, Tag("(store)")]
    | Annotated[NodeTableData, Tag("(nodes)")]
    | Annotated[LinkTableData, Tag("(links)")],
    Discriminator(_kind_of),
]
"""What is learned from. Paths in a YAML file are relative to it."""

_ADAPTER: TypeAdapter[NamedData | StoreData | NodeTableData | LinkTableData] = TypeAdapter(DataConfig)


def data_config(given: Mapping[str, Any], where: str = "data") -> DataConfig:
    """Make the config of data from settings, or refuse them with the key, what came and what was expected."""
    try:
        return _ADAPTER.validate_python(dict(given))
    except ValidationError as error:
        refuse_settings(error, KINDS.values(), where)
