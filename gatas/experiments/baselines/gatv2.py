"""GATv2: Brody, Alon & Yahav, "How attentive are graph attention networks?" (2022).

The paper has no citations of the public split and no PPI: settings are GAT's.
"""

from torch_geometric.nn import GATv2Conv

from gatas.experiments.baselines.gat import GAT


class GATv2(GAT):
    """GAT whose attention orders neighbours differently for each node."""

    layer = GATv2Conv
