"""What comes back, as JSON. `model` is the fingerprint of the one that answered."""

from pydantic import BaseModel, Field

Name = int | str


class Embeddings(BaseModel):
    model: str
    ids: list[Name]
    embeddings: list[list[float]] = Field(description="A row for each id; the same numbers alone and among any others")


class Class(BaseModel):
    id: Name
    labels: list[str] = Field(
        description="The likeliest class, or, where a node may have several, all that are likelier than not"
    )
    probabilities: list[float] = Field(description="In the order of `classes`")


class Classes(BaseModel):
    model: str
    classes: list[str]
    multi_label: bool = Field(description="Whether a node may have any number of classes")
    predictions: list[Class]


class Link(BaseModel):
    source: Name
    type: str
    target: Name
    probability: float


class ScoredLinks(BaseModel):
    model: str
    links: list[Link]


class Likely(BaseModel):
    id: Name
    similarity: float = Field(description="The cosine between their representations")


class Nearest(BaseModel):
    model: str
    id: Name
    method: str
    neighbours: list[Likely]


class Found(BaseModel):
    model: str
    ids: list[Name]
    more: bool = Field(description="Whether there are others")


class Answered(BaseModel):
    """A class, a label or a type of link, how probable it is, and ln p / (1 - p)."""

    name: str
    probability: float
    log_odds: float


class Part(BaseModel):
    """Rows that have a path or a depth in common: sums over them, and the effect of them all."""

    name: str
    num_rows: int
    probability: float
    attention: float
    share: float
    effect: float | None


class Row(BaseModel):
    """A neighbour as seen over one typed path."""

    neighbour: Name
    path: str = Field(description="As people read it: `parent → parent⁻¹`")
    relations: list[str] = Field(description="The path's steps, from the target on")
    step: int = Field(description="How many steps away; 0 is the target itself")
    probability: float = Field(description="P: what a row is drawn by")
    attention: float = Field(description="α, the mean over heads; adds up to 1 over all rows")
    share: float = Field(description="Of what the heads put out; adds up to 1, below 0 it works against it")
    effect: float | None = Field(description="Log-odds that the answer would lose without the row")
    probability_without: float | None = Field(description="Of the answer, with the row left out")
    attention_by_head: list[float]


class End(BaseModel):
    """One node and what it looks at."""

    target: Name
    answer: Answered | None
    mode: str
    num_rows: int
    num_candidates: int
    coverage: float = Field(description="P of the rows against P of all candidates")
    depth_coefficients: list[float] = Field(description="q, from the node itself on")
    depths: list[Part]
    paths: list[Part]
    rows: list[Row] = Field(description="The most attended to first")


class Explained(End):
    model: str
    classes: list[str] = Field(description="All that the model tells apart, or the types of links it knows")
    prediction: Class | None = Field(description="The node's classes as /v1/predict has them; none for a link")
    other: End | None = Field(description="The target's side of a link; none for a node")


class Limits(BaseModel):
    max_body_bytes: int
    max_ids: int
    max_edges: int
    max_rows: int
    seconds: float


class About(BaseModel):
    model: str
    gatas: str
    task: str
    names: list[str] = Field(description="Classes, or types of links")
    num_nodes: int
    num_edges: int
    edge_types: list[str]
    num_features: int = Field(description="That new nodes must bring; 0 for none")
    columns: list[str] = Field(description="That `values` of new nodes may have; none for a model that takes features alone")
    embedding_size: int
    neighbours: str = Field(description="exact, hnsw or off")
    first_ids: list[Name] = Field(description="A few, to begin with")
    limits: Limits


class Health(BaseModel):
    status: str
