"""What others published of the models that `compare` trains, and where: to be set beside our runs of them."""

from gatas.experiments.tables import Cell, PaperTable

KIPF = "Kipf & Welling 2017, Table 3"


def _nodes(peer: str, row: str, source: str, runs: int = 0, **published: tuple[float, float | None]) -> tuple[Cell, ...]:
    """A peer's figures by data set: mean, and deviation where there is one."""
    return tuple(
        Cell(f"{row}: {source}", data.capitalize(), f"{data}-{peer}", "test.accuracy", *figures, seeds=runs)
        for data, figures in published.items()
    )


PUBLISHED = PaperTable(
    "published",
    "Published figures, beside our runs",
    (
        *_nodes("mlp", "MLP (1)", KIPF, cora=(55.1, None), citeseer=(46.5, None), pubmed=(71.4, None)),
        *_nodes("chebyshev", "Chebyshev, the best K", KIPF, cora=(81.2, None), citeseer=(69.8, None), pubmed=(74.4, None)),
        *_nodes("gcn", "GCN", "the same, Table 2", cora=(81.5, None), citeseer=(70.3, None), pubmed=(79.0, None)),
        *_nodes("monet", "MoNet (2)", "Monti et al. 2017, Table 2", cora=(81.7, 0.5), pubmed=(78.8, 0.3)),
        *_nodes(
            "gat", "GAT (3)", "Veličković et al. 2018, Table 2", 100, cora=(83.0, 0.7), citeseer=(72.5, 0.7), pubmed=(79.0, 0.3)
        ),
        *_nodes(
            "sgat", "SGAT, the best (4)", "Ye & Ji 2021, as the paper of gatas quotes it",
            cora=(84.2, None), citeseer=(68.2, None), pubmed=(77.6, None),
        ),
        *_nodes(
            "gcnii", "GCNII", "Chen et al. 2020, README of their code",
            cora=(85.5, None), citeseer=(73.4, None), pubmed=(80.3, None),
        ),
    ),
    (
        "Accuracy in percent. GAT's means are over 100 runs. Of the others the deviation or the number of runs is",
        "not known, so the standard error is that of our mean alone, which is too small.",
    ),
)  # fmt: skip
