"""Peers for typed link prediction, on the same splits and by the same measures as ours."""

from gatas.experiments.baselines.links.runs import LINK_PEERS, fit_link_peer, run_link_peer, settings_of

__all__ = ["LINK_PEERS", "fit_link_peer", "run_link_peer", "settings_of"]
