"""Rank the annotations that are new in Debian 13, by a run of gatas or by a peer; write MRR and Hits of all and of some.

    python examples/genes/ranks.py FOLDER --run FOLDER/run --out ranks.json
    python examples/genes/ranks.py FOLDER --peer rotate --seconds 600 --out ranks.json

Ranks are filtered, among all genes, or all terms of the aspect. `terms of a gene` is the question of a biologist, `genes of a
term` its reverse. Beside all links there are those with experimental evidence, and those that nothing in Debian 12 implied.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from numpy.typing import NDArray

import gatas
from gatas.datasets import Dataset
from gatas.datasets.loading import open_dataset
from gatas.errors import GatasError
from gatas.inference.ranking import ranking_scorer
from gatas.tasks.ranking import LinkRanking, LinkScorer, Ranks, ranking_metrics
from gatas.training import load_config


def subsets(dataset: Dataset, ranking: LinkRanking, table: Path) -> dict[str, NDArray[np.bool_]]:
    """Which of the ranked links are experimental, and which are not implied by what was known."""
    rows = {(row["source"], row["type"], row["target"]): row for row in pq.read_table(table).to_pylist()}
    asked, name = ranking.asked, dataset.graph.id_of
    columns = (asked.source.tolist(), asked.kind.tolist(), asked.target.tolist())
    links = [rows[name(source), dataset.names[kind], name(target)] for source, kind, target in zip(*columns, strict=True)]
    experimental, implied = (np.array([bool(link[key]) for link in links]) for key in ("experimental", "implied"))
    every = np.ones(len(links), np.bool_)
    return {
        "all": every,
        "experimental": experimental,
        "not implied": ~implied,
        "experimental, not implied": experimental & ~implied,
    }


def measured(ranks: Ranks, chosen: NDArray[np.bool_], names: tuple[str, ...]) -> dict[str, Any]:
    """MRR and Hits of the chosen links, at either end and at both, by type of term."""
    part = Ranks(ranks.edge_type[chosen], ranks.target[chosen], ranks.source[chosen])
    found = ranking_metrics(part, names)
    terms = {name: ranking_metrics(_of_type(part, kind), names)["by_direction"]["target"] for kind, name in enumerate(names)
             if (part.edge_type == kind).any()}  # fmt: skip
    both = {key: found[key] for key in ("mrr", "hits_at_1", "hits_at_3", "hits_at_10", "count")}
    directions = found["by_direction"]
    return {
        "terms of a gene": directions["target"], "genes of a term": directions["source"], "both": both,
        "terms of a gene, by aspect": terms,
    }  # fmt: skip


def _of_type(ranks: Ranks, kind: int) -> Ranks:
    own = ranks.edge_type == kind
    return Ranks(ranks.edge_type[own], ranks.target[own], ranks.source[own])


def main() -> int:
    parser = argparse.ArgumentParser(description="Rank new annotations.")
    parser.add_argument("folder", type=Path, help="with genes.yaml and test.parquet")
    parser.add_argument("--run", type=Path, help="folder of a run that `gatas train` wrote")
    parser.add_argument("--peer", choices=("popularity", "complex", "rotate"), help="instead of a run; it is trained first")
    parser.add_argument("--seconds", type=float, default=600, help="of a peer's training (default: 600)")
    parser.add_argument("--rate", type=float, help="the peer's learning rate, instead of its own")
    parser.add_argument(
        "--valid-only", action="store_true", help="train the peer and say its validation MRR; test is not looked at"
    )
    parser.add_argument("--device", default="auto", help="of a run: cpu, cuda, or auto: a GPU where there is one")
    parser.add_argument("--links", type=int, help="rank so many links, drawn by a fixed seed (default: all)")
    parser.add_argument("--out", type=Path, help="JSON to write")
    given = parser.parse_args()
    try:
        content = run(given)
    except GatasError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    text = json.dumps(content, indent=1)
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n", encoding="utf-8")
    return 0


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Make the scorer that is asked for, and rank."""
    training, device = dict[str, Any](), torch.device("cpu")
    if given.run is not None:
        predictor = gatas.load(given.run, device=given.device)
        device = predictor.all_nodes.trained.device
        dataset, scorer = predictor.all_nodes.trained.dataset, ranking_scorer(predictor.all_nodes)
    else:
        from peers import fit_peer  # which need extras that a run of ours does not

        from gatas.experiments.baselines.links.neighbours import Popularity

        dataset = open_dataset(load_config(given.folder / "genes.yaml").data)
        if given.peer == "popularity":
            scorer: LinkScorer = Popularity(dataset)
        else:
            scorer, training = fit_peer(given.peer, dataset, given.seconds, rate=given.rate)
    if given.valid_only:
        return {"training": training}
    ranking = LinkRanking.of_split(dataset, "test", given.links)
    ranks = ranking.ranks(scorer, device=device)
    chosen = subsets(dataset, ranking, given.folder / "test.parquet")
    return {"training": training, **{name: measured(ranks, own, dataset.names) for name, own in chosen.items() if own.any()}}


if __name__ == "__main__":
    sys.exit(main())
