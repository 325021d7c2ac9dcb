"""Request bodies. Types are strict: "1", 1.0 and true are not integers, and unknown fields are refused."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gatas.inference.link_ends import KnownLinks
from gatas.sampling.sampler import Mode

Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]
ShortText = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
NodeId = Int64 | ShortText
FiniteNumber = Annotated[float, Field(allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(ge=1)]
ColumnValue = bool | Int64 | FiniteNumber | Annotated[str, StringConstraints(max_length=1000)] | list[FiniteNumber] | None

NODES_ASKED = "Ids of the nodes; by default the new nodes"
LINK_TYPE = "Type of the link; may be left out if the model knows only one"


class StrictRequest(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class NewEdge(StrictRequest):
    """An edge between any two nodes, known or new."""

    source: NodeId
    target: NodeId
    type: ShortText | None = Field(None, description="Edge type; may be left out if the graph has only one")
    weight: Annotated[FiniteNumber, Field(gt=0)] | None = Field(
        None, description="Weight; only for a graph whose edges have weights"
    )


class NewNodes(StrictRequest):
    """Nodes that the model has never seen. Nothing is retrained, and nothing of them is kept after the request."""

    ids: list[NodeId] | None = Field(
        None,
        description="Ids of the new nodes; by default the integers after the last node, if the graph has no ids of its own",
    )
    features: list[list[FiniteNumber]] | None = Field(
        None, description="A row of numbers per new node, for a model that was trained on features"
    )
    values: list[dict[ShortText, ColumnValue]] | None = Field(
        None, description="Values by column per new node, in place of `features`, for a model that was trained on tables"
    )
    edges: list[NewEdge] = Field([], description="Edges of the new nodes, and new edges between known nodes")
    embeddings: Literal["mean", "zeros"] = Field(
        "mean", description="What replaces the learned embeddings of new nodes: the mean of their neighbours', or zeros"
    )
    reverse: bool = Field(True, description="Whether to add the inverse of each new edge, if the graph has inverse edges")


class EmbedRequest(StrictRequest):
    """Nodes whose representations are wanted."""

    ids: list[NodeId] | None = Field(None, description=NODES_ASKED)
    new: NewNodes | None = None


class PredictRequest(StrictRequest):
    """Nodes whose classes, or whose numbers, are wanted."""

    ids: list[NodeId] | None = Field(None, description=NODES_ASKED)
    draws: Annotated[int, Field(ge=2, le=100)] | None = Field(
        None, description="How often neighbours are drawn; answers are then means over draws, with their standard deviation"
    )
    new: NewNodes | None = None


class LinkPair(StrictRequest):
    """A possible link."""

    source: NodeId
    type: ShortText | None = Field(None, description=LINK_TYPE)
    target: NodeId


class LinksRequest(StrictRequest):
    """Possible links whose probabilities are wanted."""

    pairs: list[LinkPair]
    new: NewNodes | None = None


class RankLinksRequest(StrictRequest):
    """A node whose most probable new links are wanted: those that start from `source`, or those that lead to `target`."""

    source: NodeId | None = Field(None, description="Id of the node that the links start from")
    target: NodeId | None = Field(None, description="Id of the node that the links lead to, in place of `source`")
    type: ShortText | None = Field(None, description=LINK_TYPE)
    top: PositiveInt = Field(10, description="Number of links to return")
    known: KnownLinks = Field(
        "valid",
        description="Links that are left out beside the graph's: those of `train` alone, also of `valid`, or of `all` splits",
    )
    new: NewNodes | None = None


class ExplainRequest(StrictRequest):
    """The answer to explain: give `id` for a node, or `source`, `type` and `target` for a link."""

    id: NodeId | None = Field(None, description="Id of the node")
    source: NodeId | None = Field(None, description="Source of the link")
    type: ShortText | None = Field(None, description=LINK_TYPE)
    target: NodeId | None = Field(None, description="Target of the link")
    answer: ShortText | None = Field(None, description="Class to explain; by default the most probable one")
    mode: Mode | None = Field(
        None, description="Neighbours to look at: drawn, most probable or all; by default those that predictions use"
    )
    top: PositiveInt = Field(100, description="Number of rows per node, those with the most attention first")
    new: NewNodes | None = None


class NeighboursRequest(StrictRequest):
    """A node whose nearest nodes are wanted."""

    id: NodeId
    top: PositiveInt = Field(10, description="Number of nodes to return")
    new: NewNodes | None = None


class NodeDataRequest(StrictRequest):
    """Nodes of which it is asked what the data says."""

    ids: list[NodeId]
    top: Annotated[int, Field(ge=0)] = Field(20, description="Number of columns, and of edges, to return for each node")


class BetweenRequest(StrictRequest):
    """Two nodes, of which it is asked what lies between them."""

    source: NodeId
    target: NodeId
    relations: list[ShortText] | None = Field(
        None, description="Typed path whose walks are wanted, as in `relations` of an explanation's rows"
    )
    top: PositiveInt = Field(5, description="Number of shared neighbours, of walks, and of nodes between, to return")


class SearchRequest(StrictRequest):
    """A text to search for in the ids of nodes."""

    query: str = ""
    limit: PositiveInt = 20


ModelRequest = (
    EmbedRequest
    | PredictRequest
    | LinksRequest
    | RankLinksRequest
    | ExplainRequest
    | NeighboursRequest
    | NodeDataRequest
    | BetweenRequest
    | SearchRequest
)
