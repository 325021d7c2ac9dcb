"""Response bodies. `model` is the fingerprint of the model that answered."""

from pydantic import BaseModel, Field

from gatas.inference.predictor import Id

MODEL = "Fingerprint of the model that answered"


class EmbedResponse(BaseModel):
    model: str = Field(description=MODEL)
    ids: list[Id]
    embeddings: list[list[float]] = Field(
        description="A row per id. The numbers of a node do not depend on what else was requested"
    )


class NodeClasses(BaseModel):
    id: Id
    labels: list[str] = Field(description="The most probable class; if `multi_label`, every class with a probability above 0.5")
    probabilities: list[float] = Field(description="A probability per class, in the order of `classes`")


class PredictResponse(BaseModel):
    model: str = Field(description=MODEL)
    classes: list[str] = Field(description="Names of all classes")
    multi_label: bool = Field(description="Whether a node may have any number of classes")
    predictions: list[NodeClasses]


class ScoredLink(BaseModel):
    source: Id
    type: str
    target: Id
    probability: float


class LinksResponse(BaseModel):
    model: str = Field(description=MODEL)
    links: list[ScoredLink]


class SimilarNode(BaseModel):
    id: Id
    similarity: float = Field(description="Cosine of the two representations")


class NeighboursResponse(BaseModel):
    model: str = Field(description=MODEL)
    id: Id
    method: str = Field(description="How the nodes were found: `exact`, or `hnsw`, which may miss some")
    neighbours: list[SimilarNode]


class SearchResponse(BaseModel):
    model: str = Field(description=MODEL)
    ids: list[Id]
    more: bool = Field(description="Whether there are more matches than `limit`")


class ExplainedAnswer(BaseModel):
    """The class or link type that is explained, with its probability p and log-odds ln(p / (1 - p))."""

    name: str
    probability: float
    log_odds: float


class ContributionGroup(BaseModel):
    """The rows that share a path or a depth: their sums, and the effect of leaving all of them out."""

    name: str
    num_rows: int
    probability: float
    attention: float
    share: float
    effect: float | None


class Contribution(BaseModel):
    """What one neighbour contributes over one typed path."""

    neighbour: Id
    path: str = Field(description="The path as text, such as `parent → parent⁻¹`")
    relations: list[str] = Field(description="Relations of the path, starting at the target")
    step: int = Field(description="Number of steps to the neighbour; 0 is the target itself")
    probability: float = Field(description="P: the probability that the row is drawn")
    attention: float = Field(description="α: the mean over heads; sums to 1 over all rows")
    share: float = Field(description="Share of the output of the heads; sums to 1 over all rows, and may be negative")
    effect: float | None = Field(description="Log-odds that the answer loses without the row")
    probability_without: float | None = Field(description="Probability of the answer without the row")
    attention_by_head: list[float]


class NodeExplanation(BaseModel):
    """A node and the neighbours that its representation is made of."""

    target: Id
    answer: ExplainedAnswer | None
    mode: str = Field(description="Which neighbours were looked at: `sample`, `top` or `all`")
    num_rows: int = Field(description="Number of rows, of which `rows` has the first")
    num_candidates: int = Field(description="Number of rows that could have been drawn")
    coverage: float = Field(description="Sum of P over the rows, divided by its sum over all candidates")
    depth_coefficients: list[float] = Field(description="q: the learned weight of each depth; the first is the node itself")
    depths: list[ContributionGroup]
    paths: list[ContributionGroup]
    rows: list[Contribution] = Field(description="The rows with the most attention first")


class ExplainResponse(NodeExplanation):
    model: str = Field(description=MODEL)
    classes: list[str] = Field(description="Names of all classes, or of all link types")
    prediction: NodeClasses | None = Field(description="Classes of the node, as in /v1/predict; null for a link")
    other: NodeExplanation | None = Field(description="The target node of the link; null for a node")


class RequestLimits(BaseModel):
    """Limits of this server per request."""

    max_body_bytes: int
    max_ids: int
    max_edges: int
    max_rows: int
    seconds: float


class ModelResponse(BaseModel):
    model: str = Field(description="Fingerprint of the model: a hash of all that its answers depend on")
    gatas: str = Field(description="Version of gatas")
    task: str = Field(description="What the model predicts, such as `node classification`")
    names: list[str] = Field(description="Names of the classes, or of the link types for a model that predicts links")
    num_nodes: int
    num_edges: int
    edge_types: list[str]
    num_features: int = Field(description="Number of features that a new node must have; 0 for a model without features")
    columns: list[str] = Field(description="Columns that `values` of new nodes may have; empty for a model without tables")
    embedding_size: int
    neighbours: str = Field(description="How nearest nodes are found: `exact`, `hnsw` or `off`")
    first_ids: list[Id] = Field(description="Ids of the first few nodes")
    limits: RequestLimits


class HealthResponse(BaseModel):
    status: str = Field(description="`live` or `ready`")
