"""Typed edges in CSR, ids, relations with their inverses, readers and writers of these."""

from gatas.graph.graph import NO_INVERSE, SELF_LOOP, Graph
from gatas.graph.ids import NodeIds
from gatas.graph.reading import read_graph
from gatas.graph.summary import Summary, summarise

__all__ = ["NO_INVERSE", "SELF_LOOP", "Graph", "NodeIds", "Summary", "read_graph", "summarise"]
