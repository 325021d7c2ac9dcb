"""What can be asked, as JSON. Types are strict: "1", 1.0 and true are no integers, and a field that is not known is refused."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gatas.sampling.sampler import Mode

WholeNumber = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Id = WholeNumber | Text
Finite = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Value = bool | WholeNumber | Finite | Annotated[str, StringConstraints(max_length=1000)] | list[Finite] | None


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Edge(Strict):
    """An edge of a node that the model has never seen, to any other."""

    source: Id
    target: Id
    type: Text | None = Field(None, description="Of the edge; may be left out where the graph has one type")
    weight: Annotated[Finite, Field(gt=0)] | None = Field(None, description="Where the graph's edges have weights")


class NewNodes(Strict):
    """Nodes that the model has never seen; nothing is retrained, and nothing of them is kept."""

    ids: list[Id] | None = Field(None, description="Their ids; numbers after the graph's last if it has no ids of its own")
    features: list[list[Finite]] | None = Field(None, description="A row for each, where the model was trained on features")
    values: list[dict[Text, Value]] | None = Field(
        None, description="Or values by column, as in the table that was trained on; they are encoded as then"
    )
    edges: list[Edge] = Field([], description="Theirs, and between nodes that are known")
    embeddings: Literal["mean", "zeros"] = Field("mean", description="In place of learned ones: neighbours' mean, or zeros")
    reverse: bool = Field(True, description="Edges go both ways where all of the graph's do")


class Embed(Strict):
    """Representations of nodes."""

    ids: list[Id] | None = Field(None, description="Which nodes; the new ones if left out")
    new: NewNodes | None = None


class Predict(Strict):
    """Classes of nodes."""

    ids: list[Id] | None = Field(None, description="Which nodes; the new ones if left out")
    new: NewNodes | None = None


class Pair(Strict):
    """A link that may be."""

    source: Id
    type: Text | None = Field(None, description="Of the link; may be left out where the model knows one type")
    target: Id


class Links(Strict):
    """How likely links are."""

    pairs: list[Pair]
    new: NewNodes | None = None


class LikeliestLinks(Strict):
    """Where a node's links most likely lead that are not known yet."""

    source: Id
    type: Text | None = Field(None, description="Of the links; may be left out where the model knows one type")
    top: Count = 10
    new: NewNodes | None = None


class Explain(Strict):
    """What the class of a node rests on, or a link: `id`, or `source`, `type` and `target`."""

    id: Id | None = None
    source: Id | None = None
    type: Text | None = None
    target: Id | None = None
    answer: Text | None = Field(None, description="Another class than the likeliest")
    mode: Mode | None = Field(None, description="Neighbours: drawn, likeliest, all; as the model answers if left out")
    top: Count = Field(100, description="Rows of each end, the most attended to first")
    new: NewNodes | None = None


class Neighbours(Strict):
    """The nodes whose representations are most alike."""

    id: Id
    top: Count = 10
    new: NewNodes | None = None


class Search(Strict):
    """Ids that begin with some text, then ids that contain it."""

    query: str = ""
    limit: Count = 20


Question = Embed | Predict | Links | LikeliestLinks | Explain | Neighbours | Search
