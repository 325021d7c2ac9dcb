"""`gatas demo`: the embedded digits graph, from edges to one node's typed neighbourhood; needs no data and no network."""

from pathlib import Path
from time import perf_counter

import numpy as np
import typer

from gatas.cli.inspect import print_summary
from gatas.cli.output import progress_bar, stdout
from gatas.cli.transitions import print_row
from gatas.datasets import load_dataset
from gatas.graph import summarise
from gatas.transitions import Transitions, readable_bytes

NODE = 42


def demo(out: Path = typer.Option(Path("demo"), "--out", help="Folder for the picture.")) -> None:
    """Show a graph, compute its transitions, and draw the neighbourhood of one node."""
    from gatas.transitions.picture import draw_neighbourhood  # matplotlib: half a second that other commands need not wait

    out.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    dataset = load_dataset("digits")
    print_summary("digits: 1,797 handwritten digits, each linked to the 7 most alike", summarise(dataset.graph))
    start = perf_counter()
    with progress_bar("transitions") as progress:
        transitions = Transitions.build(dataset.graph, num_steps=3, progress=progress)
    stdout.print(
        f"Transitions up to 3 steps: {transitions.num_entries:,} entries, {readable_bytes(transitions.num_bytes)}, "
        f"in {perf_counter() - start:.1f} s\n"
    )
    row = transitions.row(NODE)
    digit = dataset.names[np.asarray(dataset.labels)[NODE]]
    print_row(transitions.setting, f"image {NODE}, a {digit}", row, top=5)
    picture = out / "neighbourhood.png"
    title = f"Image {NODE} and its typed neighbourhood: a ring for each step, larger is likelier"
    images = np.asarray(dataset.features).reshape(-1, 8, 8)
    draw_neighbourhood(dataset.graph, NODE, row, images, title).savefig(picture, dpi=110)
    stdout.print(f"Picture of the neighbourhood: {picture}")
