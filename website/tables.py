"""The page of the paper's tables beside our figures, and of peers, as results/ has them."""

from pathlib import Path

from gatas.experiments.check import generated
from gatas.experiments.report import TABLES_OF_PEERS
from gatas.experiments.report_results import read_results
from gatas.experiments.tables import TABLES

ROOT = Path(__file__).parents[1]
INTRODUCTION = """# All tables of the paper and of peers

Made from [the results](../results) when this site was built. Each file there has every seed's metrics, settings, hardware,
versions and seconds. [The overview](results.md) says what is known about the cause where our figures differ,
[peers](peers.md) how others' models were run.
"""


def page() -> str:
    """Render every table that `gatas reproduce` and `gatas report` make."""
    found = read_results(ROOT / "results")
    tables = [generated(name, ROOT / "results", found) for name in (*TABLES, *TABLES_OF_PEERS)]
    return "\n\n".join([INTRODUCTION, *tables])
