"""Edge files of any size into a graph store, in bounded memory, by stages that a killed ingest finds again."""

from gatas.datasets.ingest.ingest import ingest

__all__ = ["ingest"]
