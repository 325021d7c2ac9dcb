"""Beyond one process."""
