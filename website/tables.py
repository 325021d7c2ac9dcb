"""The page of the paper's tables beside our figures, and of peers, as results/ has them."""

from pathlib import Path

from gatas.experiments.check import generated
from gatas.experiments.report import TABLES_OF_PEERS
from gatas.experiments.report_results import read_results
from gatas.experiments.tables import TABLES

ROOT = Path(__file__).parents[1]
INTRODUCTION = """# The paper's tables and ours

Made from [the results](../results) when this site was built. Each file there has every seed's metrics, settings, hardware,
versions and seconds. [Where our figures differ](results.md) says what is known about the cause,
[Compared with peers](peers.md) how the peers were run.
"""


def page() -> str:
    """Render every table that `gatas reproduce` and `gatas report` make."""
    found = read_results(ROOT / "results")
    tables = [generated(name, ROOT / "results", found) for name in (*TABLES, *TABLES_OF_PEERS)]
    return "\n\n".join([INTRODUCTION, *tables])
