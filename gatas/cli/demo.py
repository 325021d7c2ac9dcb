"""`gatas demo`: two embedded data sets from edges to predictions, and what these rest on; needs no data and no network."""

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import typer

from gatas.cli.output import plain_table, print_table, signed, stdout
from gatas.cli.train import depth_of, readable_depth
from gatas.cli.transitions import print_row

if TYPE_CHECKING:
    from gatas.datasets import Dataset
    from gatas.inference import Run

NODE = 42


def demo(out: Path = typer.Option(Path("demo"), "--out", help="Folder for pictures and models.")) -> None:
    """Learn digits and family relations on the embedded data, and show which neighbours the answers rest on."""
    from gatas.datasets import load_dataset

    out.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    started = perf_counter()
    digits, kinship = load_dataset("digits"), load_dataset("kinship")
    show_neighbourhood(digits, out)
    run = trained(digits, out, "1,797 handwritten digits, each linked to the 7 most alike; 10 labels per class")
    stdout.print(f"Test accuracy: {run.metrics['test']['accuracy']:.1%}")
    explain_digit(run, out / "digits")
    run = trained(kinship, out, "985 people; who is whose grandparent, uncle or aunt, cousin, parent-in-law?")
    stdout.print(f"Test ROC-AUC, mean of the four relations: {run.metrics['test']['roc_auc']:.3f}")
    explain_kinship(run)
    stdout.print(f"All in {perf_counter() - started:.0f} s. Pictures, models and metrics are in {out}:", soft_wrap=True)
    stdout.print("  neighbourhood.png, digits/node-42.png, digits/curve.png, digits/depth.png, kinship/curve.png")


def show_neighbourhood(dataset: "Dataset", out: Path) -> None:
    """Show one node's candidates by transition probability, before anything is learned."""
    import numpy as np

    from gatas.transitions import Transitions
    from gatas.transitions.picture import draw_neighbourhood  # matplotlib: half a second that other commands need not wait

    row = (transitions := Transitions.build(dataset.graph, num_steps=3)).row(NODE)
    print_row(transitions.setting, f"{image(dataset, NODE)} (transition probabilities)", row, top=2)
    title = f"Image {NODE} and its typed neighbourhood: a ring for each step, larger is likelier"
    images = np.asarray(dataset.features).reshape(-1, 8, 8)
    draw_neighbourhood(dataset.graph, NODE, row, images, title).savefig(out / "neighbourhood.png", dpi=110)


def trained(dataset: "Dataset", out: Path, about: str) -> "Run":
    """Train by the data set's recipe and save the run."""
    from gatas.experiments.recipes import recipe
    from gatas.inference import fit_many

    stdout.print(f"{dataset.name}: {about}", style="bold", soft_wrap=True)
    started = perf_counter()
    runs = fit_many(recipe(dataset.name), [0], dataset=dataset, device="cpu", progress=True)
    runs[0].save(out / dataset.name)
    depth = depth_of(runs)
    learned = "" if depth is None else f" Depth q: {readable_depth(depth)}"
    stdout.print(f"Trained in {perf_counter() - started:.0f} s.{learned}", soft_wrap=True)
    return runs[0]


def explain_digit(run: "Run", out: Path) -> None:
    """Show the neighbours that one test image's class rests on."""
    from gatas.inference import Answer
    from gatas.inference.picture import save_pictures

    found = run.predictor.explain(NODE, mode="all")
    assert isinstance(found.answer, Answer)
    table = plain_table("neighbour", "typed path", "attention#", "effect#")
    for row in found.rows(5):
        neighbour = image(run.dataset, run.dataset.graph.index_of(row["neighbour"]))
        table.add_row(neighbour, row["path"], f"{row['attention']:.1%}", signed(row["effect"]))
    guess = f"{found.answer.name} ({found.answer.probability:.0%})"
    print_table(f"Why is {image(run.dataset, NODE)}? The model says {guess}, looking most at", table)
    save_pictures(found, out)


def explain_kinship(run: "Run") -> None:
    """Show by which typed paths each relation is told, most of all."""
    table = plain_table("asked for", "typed path to the other", "log-odds#")
    for name in run.dataset.names:
        for place, strong in enumerate(run.predictor.strongest_paths(name, 2)):
            table.add_row(name if place == 0 else "", strong.name, signed(strong.contribution))
    print_table("What speaks most for a relation (mean over validation links)", table)


def image(dataset: "Dataset", node: int) -> str:
    """Return `image 42, a 1`."""
    return f"image {node}, a {dataset.names[dataset.node_targets.labels[node]]}"
