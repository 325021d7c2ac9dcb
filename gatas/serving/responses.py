"""Response bodies. `model` is the fingerprint of the model that answered."""

from typing import Literal

from pydantic import BaseModel, Field

from gatas.inference.predictor import Id
from gatas.serving.run_results import RunResults

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
    deviations: list[float] | None = Field(
        description="Standard deviation of each probability over draws, where `draws` was given; else null"
    )


class NodeNumbers(BaseModel):
    id: Id
    values: list[float] = Field(description="A number per target, in the order of `numbers` and in the units of the data")
    deviations: list[float] | None = Field(
        description="Standard deviation of each number over draws, where `draws` was given; else null"
    )


class NumbersResponse(BaseModel):
    model: str = Field(description=MODEL)
    numbers: list[str] = Field(description="Names of the numbers that the model predicts")
    predictions: list[NodeNumbers]


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


class ExplainedNumber(BaseModel):
    """The number that is explained, in the units of the data."""

    name: str
    value: float


class SpreadLabelsEffect(BaseModel):
    """What labels spread over the whole graph add to the log-odds of the answer, which are the sum of both numbers."""

    without: float = Field(description="Log-odds of the answer by the node's neighbourhood alone")
    effect: float = Field(description="Log-odds that spread labels add; negative where they speak against the answer")


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
    effect: float | None = Field(description="Log-odds that the answer loses without the row, or what a number loses")
    probability_without: float | None = Field(description="Probability of the answer without the row; null for a number")
    value_without: float | None = Field(description="The number without the row; null where no number is explained")
    attention_by_head: list[float]


class NodeExplanation(BaseModel):
    """A node and the neighbours that its representation is made of."""

    target: Id
    answer: ExplainedAnswer | ExplainedNumber | None
    label_spreading: SpreadLabelsEffect | None = Field(description="What spread labels add; null for a model that spreads none")
    note: str | None = Field(
        description="Why there are no rows: a model that scores links without neighbourhoods has none. Ask for a link instead"
    )
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
    classes: list[str] = Field(description="Names of all classes, of all numbers, or of all link types")
    prediction: NodeClasses | NodeNumbers | None = Field(
        description="Classes or numbers of the node, as in /v1/predict; null for a link"
    )
    other: NodeExplanation | None = Field(description="The target node of the link; null for a node")


class LinkNeighbourhoods(NodeExplanation):
    """The neighbourhood of a link's source, and that of its target as `other`."""

    other: NodeExplanation


class LinkTerm(BaseModel):
    """One term of a link's log-odds."""

    kind: str = Field(description="`type`, `vectors`, `source`, `target`, `neighbourhood`, `path` or `no path`")
    name: str
    value: float = Field(description="What it adds to the log-odds; all terms and paths add up to them")
    probability_without: float = Field(description="Probability of the link without it")


class PartOfScore(BaseModel):
    """The sum of all terms of one part of the score: weight times score."""

    name: str = Field(description="`vectors`, `neighbourhood` or `paths`")
    weight: float
    score: float
    value: float
    probability_without: float


class WalkOfPath(BaseModel):
    """A walk from the source to the target over one typed path, node by node."""

    nodes: list[Id]
    share: float = Field(description="Share of the path's probability")


class NodeOnWalks(BaseModel):
    """A node that walks over a typed path go through."""

    node: Id
    step: int
    share: float = Field(description="Share of the path's probability that goes through it")


class PathTerm(LinkTerm):
    """What a typed path between source and target adds to the log-odds: a constant, and terms of ln P forth and back."""

    relations: list[str]
    probability: float = Field(description="P of the target over this path from the source")
    probability_back: float = Field(
        description="About P of the way back: `probability` times the ratio of both nodes' degrees, which may be more than 1"
    )
    constant: float
    forth: float
    back: float
    num_walks: int | None = Field(description="Number of walks; null for paths that are not among the strongest")
    walks: list[WalkOfPath] = Field(description="The likeliest walks, likeliest first")
    num_between: int | None = Field(description="Number of nodes between source and target on these walks")
    between: list[NodeOnWalks] = Field(description="The nodes that most of the path's probability goes through")


class LinkExplanationResponse(BaseModel):
    """A link whose log-odds are a sum: of its type, the nodes' vectors, their neighbourhoods, and typed paths between them."""

    model: str = Field(description=MODEL)
    classes: list[str] = Field(description="Names of all link types")
    source: Id
    type: str
    target: Id
    answer: ExplainedAnswer
    known: bool = Field(description="Whether it is a link of the graph or of the training data")
    num_steps: int = Field(description="Longest path that is looked for")
    parts: list[PartOfScore]
    terms: list[LinkTerm] = Field(description="All terms but those of paths")
    num_paths: int = Field(description="Number of typed paths, of which `paths` has the first")
    paths: list[PathTerm] = Field(description="The strongest first")
    num_shared_neighbours: int
    shared_neighbours: list[Id] = Field(description="Nodes one step from both ends")
    neighbourhood: LinkNeighbourhoods | None = Field(description="Both neighbourhoods, where these are a part of the score")


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
    names: list[str] = Field(
        description="Names of the classes or of the numbers, or of the link types for a model that predicts links"
    )
    num_nodes: int
    num_edges: int
    edge_types: list[str]
    num_features: int = Field(description="Number of features that a new node must have; 0 for a model without features")
    columns: list[str] = Field(description="Columns that `values` of new nodes may have; empty for a model without tables")
    embedding_size: int
    neighbours: str = Field(description="How nearest nodes are found: `exact`, `hnsw` or `off`")
    first_ids: list[Id] = Field(
        description="Ids of a few nodes to begin with: of those that are predicted, held-out ones first"
    )
    results: RunResults | None = Field(description="What the run measured; null for a model that comes from no folder")
    limits: RequestLimits


class MapResponse(BaseModel):
    """Nodes in a plane, near one another where they are represented alike."""

    model: str = Field(description=MODEL)
    status: Literal["ready", "computing", "unavailable"]
    reason: str | None = Field(description="Why there is no map, if it is `unavailable`")
    method: str | None = Field(description="How nodes were placed: `t-SNE` or `UMAP`")
    known_as: str | None = Field(description="What `values` are: `class`, `type` (of node), or the name of a number")
    num_nodes: int = Field(description="Number of nodes of the graph; of more than 2,000, as many are drawn, always the same")
    ids: list[Id] = Field(description="The nodes of the map; the lists below are in their order")
    x: list[float]
    y: list[float]
    values: list[str | float | None] = Field(description="What is known of each node; null where nothing is")


class HealthResponse(BaseModel):
    status: str = Field(description="`live` or `ready`")
