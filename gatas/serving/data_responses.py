"""Response bodies about the data itself, in which nothing is predicted."""

from pydantic import BaseModel, Field

from gatas.inference.predictor import Id
from gatas.serving.responses import MODEL, NodeOnWalks, WalkOfPath


class KnownEdge(BaseModel):
    """An edge of a node, or a link that the model was trained or measured on, as it is seen from the node."""

    type: str
    node: Id
    weight: float | None
    in_graph: bool = Field(description="Whether it is an edge of the graph, which paths go over")
    split: str | None = Field(description="`train` if the model was trained on this link, else where it was held out for")


class NodeData(BaseModel):
    """A node as the data has it; what is not known is null."""

    id: Id
    type: str | None = Field(description="Type of the node")
    split: str | None = Field(description="`train` if the model was trained on its label, else where it was held out for")
    labels: list[str] | None = Field(description="Its true classes; null for a model that predicts something else")
    values: list[float | None] | None = Field(description="Its true numbers, in the order of the model's `names`")
    columns: dict[str, bool | float | str | list[float] | list[int] | None] = Field(
        description="Features by column, as they were in the table; by place where there was none, those that are not zero"
    )
    num_columns: int | None = Field(description="Number of columns, of which `columns` has the first")
    edges: list[KnownEdge] = Field(description="Held-out links first, then edges of the graph")
    num_edges: int | None = Field(description="Number of edges, of which `edges` has the first")


class NodeDataResponse(BaseModel):
    model: str = Field(description=MODEL)
    nodes: list[NodeData]


class BetweenResponse(BaseModel):
    """What lies between two nodes of the graph."""

    model: str = Field(description=MODEL)
    source: Id
    target: Id
    num_shared_neighbours: int
    shared_neighbours: list[Id] = Field(description="Nodes one step from both")
    num_walks: int | None = Field(description="Number of walks over the path; null if none was asked for")
    walks: list[WalkOfPath] = Field(description="The likeliest walks, likeliest first")
    num_between: int | None = Field(description="Number of nodes between source and target on these walks")
    between: list[NodeOnWalks] = Field(description="The nodes that most of the path's probability goes through")
