"""Typed edges in CSR, ids, readers and writers: everything that is checked, is checked here, once."""

from gatas.graph.graph import SELF_LOOP, Graph
from gatas.graph.names import Names
from gatas.graph.nodes import SPLITS, UNLABELLED, NodeTable
from gatas.graph.reading import read_graph
from gatas.graph.summary import Summary, summarise

__all__ = ["SELF_LOOP", "SPLITS", "UNLABELLED", "Graph", "Names", "NodeTable", "Summary", "read_graph", "summarise"]
