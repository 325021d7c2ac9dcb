"""`gatas explain`: what an answer of a trained model rests on, as tables and as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from gatas.cli.explain_link import print_link, print_strongest
from gatas.cli.importing import quick_imports
from gatas.cli.output import plain_table, print_json, print_table, remark_on_loops, signed, stdout
from gatas.cli.runs import (
    DeviceOption,
    EmbeddingChoice,
    NewEdgesOption,
    NewEmbeddingsOption,
    NewFeaturesOption,
    NewNodesOption,
    RunArgument,
    load_predictor,
)
from gatas.errors import GatasError

if TYPE_CHECKING:
    from rich.table import Table

    from gatas.inference import Explanation, ExplanationPart

FEW = 3
"""Rows that are named for speaking most for an answer, and most against it."""
COLUMNS = """P: what a row is drawn by. attention: α, mean over heads. share: of what the heads put out.
effect: log-odds the answer would lose without the row; below 0 it speaks against the answer."""
NUMBER_COLUMNS = """P: what a row is drawn by. attention: α, mean over heads. share: of what the heads put out.
effect: what the number would lose without the row, in its units; below 0 the row lowers it."""


def explain(
    run: Path = RunArgument,
    node: str | None = typer.Argument(None, metavar="[ID]", help="The node's id."),
    link: tuple[str, str, str] | None = typer.Option(None, "--link", metavar="SOURCE TYPE TARGET", help="A link instead."),
    edge_type: str | None = typer.Option(
        None, "--type", metavar="TYPE", help="A type of link instead: the typed paths that speak most for such links."
    ),
    split: str | None = typer.Option(
        None, "--split", help="With --type: over which links. valid if not given, or test, or train, where there are none."
    ),
    answer: str | None = typer.Option(
        None, "--answer", help="Explain this class instead of the likeliest, or this number instead of the first."
    ),
    top: int = typer.Option(10, "--top", min=1, help="Rows that the table shows; the picture has twice as many, up to 40."),
    mode: Literal["sample", "top", "all"] | None = typer.Option(
        None, "--mode", help="Neighbours: drawn, likeliest, all; as in the run's evaluation if not given."
    ),
    new_nodes: Path | None = NewNodesOption,
    new_features: Path | None = NewFeaturesOption,
    new_edges: Path | None = NewEdgesOption,
    new_embeddings: EmbeddingChoice = NewEmbeddingsOption,
    out: Path | None = typer.Option(None, "--out", help="Folder for the picture; explanations/ in the run if not given."),
    device: str = DeviceOption,
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show what an answer rests on, of nodes known or new: neighbours, typed paths, and what each does to it."""
    if [node, link, edge_type].count(None) != 2:
        raise GatasError("give the id of a node, or --link SOURCE TYPE TARGET, or --type TYPE for all links of a type.")
    if split is not None and edge_type is None:
        raise GatasError("--split says over which links --type looks. Give --type TYPE too, or leave it out.")
    with quick_imports():  # torch and matplotlib: seconds that other commands need not wait
        from gatas.inference import LinkExplanation
        from gatas.inference.link_picture import save_link_pictures
        from gatas.inference.picture import save_pictures

    predictor, _ = load_predictor(run, device, None, new_nodes, new_edges, new_embeddings, new_features)
    if edge_type is not None:
        print_strongest(predictor, edge_type, split, top, json)
        return
    explanation = predictor.explain(link or node or "", mode=mode, answer=answer)
    remark_on_loops(int(link is not None and link[0] == link[2]))
    pictures: list[str] = []
    if isinstance(explanation, LinkExplanation) or explanation.note is None:
        folder = out or run / "explanations"
        folder.mkdir(parents=True, exist_ok=True)
        if isinstance(explanation, LinkExplanation):
            pictures = [str(path) for path in save_link_pictures(explanation, folder, top)]
        else:
            pictures = [str(path) for path in save_pictures(explanation, folder, 2 * top)]
    if json:
        print_json({**explanation.to_dict(top), "pictures": pictures})
        return
    if isinstance(explanation, LinkExplanation):
        print_link(explanation, top)
        for end in explanation.ends:
            print_end(end, top)
    elif explanation.note is not None:
        asked = f"gatas explain {run} --link {explanation.target} TYPE TARGET"
        stdout.print(f"{explanation.note} Explain a link: {asked}", soft_wrap=True)
        return
    else:
        print_explanation(explanation, top)
    stdout.print(f"Pictures: {', '.join(pictures)}", soft_wrap=True)


def print_explanation(explanation: "Explanation", top: int) -> None:
    """Print the answer; then rows, paths and depths of each end."""
    from gatas.inference.picture import heading

    stdout.print(heading(explanation), style="bold", soft_wrap=True)
    stdout.print()
    for end in explanation.ends:
        print_end(end, top)
    stdout.print(COLUMNS if effect_form(explanation) == "+.3f" else NUMBER_COLUMNS, style="dim", soft_wrap=True)


def print_end(end: "Explanation", top: int) -> None:
    """Print one node's rows, and what they amount to."""
    print_table(f"{end.target} looks most at", row_table(end, top))
    print_table("By typed path", part_table("typed path", end.paths[:top], len(end.paths) - top, form=effect_form(end)))
    print_table("By depth", part_table("depth", end.depths, 0, end.depth_coefficients.tolist(), effect_form(end)))
    if end.effect is not None:
        stdout.print(f"Most for it: {strongest(end, 1)}", soft_wrap=True)
        stdout.print(f"Most against it: {strongest(end, -1)}", soft_wrap=True)
    if end.label_spreading is not None:
        both = (end.label_spreading.without, end.label_spreading.effect)
        own, added = (signed(value, effect_form(end)) for value in both)
        stdout.print(f"Log-odds: {own} by these rows, {added} by labels spread over the whole graph", soft_wrap=True)
    if len(end) == end.num_candidates == 1:
        stdout.print("It has no neighbours: its own row is all there is.")
    else:
        covered = f"{len(end):,} of {end.num_candidates:,} candidates ({end.mode}), {end.coverage:.1%} of their probability P"
        stdout.print(f"Rows: {covered}", soft_wrap=True)
    stdout.print()


def effect_form(end: "Explanation") -> str:
    """Return how effects are written: log-odds alike, numbers by their leading digits, whatever their units."""
    from gatas.inference import NumberAnswer

    return "+.4g" if isinstance(end.answer, NumberAnswer) else "+.3f"


def row_table(end: "Explanation", top: int) -> "Table":
    """Tabulate the rows most attended to, and the sum of the others."""
    table = plain_table("neighbour", "typed path", "P#", "attention#", "share#", "effect#")
    for row in end.rows(top):
        shares = (f"{row[name]:.1%}" for name in ("probability", "attention", "share"))
        table.add_row(str(row["neighbour"]), row["path"], *shares, signed(row["effect"], effect_form(end)))
    if len(end) > top:
        rest = (f"{column[top:].sum():.1%}" for column in (end.probability, end.attention, end.share))
        table.add_row(f"… {len(end) - top:,} more", "", *rest, "")
    return table


def part_table(
    what: str, parts: Sequence["ExplanationPart"], hidden: int, depth: Sequence[float] = (), form: str = "+.3f"
) -> "Table":
    """Tabulate sums over rows with a path or a depth in common; q beside depths."""
    table = plain_table(what, "rows#", *(["q#"] if depth else []), "P#", "attention#", "share#", "effect#")
    for k, part in enumerate(parts):
        shares = [*depth[k : k + 1], part.probability, part.attention, part.share]
        table.add_row(part.name, f"{part.num_rows:,}", *(f"{share:.1%}" for share in shares), signed(part.effect, form))
    if hidden > 0:
        table.add_row(f"… {hidden:,} more")
    return table


def strongest(end: "Explanation", sign: int) -> str:
    """Return `56 (alike) +0.120, 90 (alike⁻¹) +0.040`."""
    assert end.effect is not None
    order = (-sign * end.effect).argsort(kind="stable")[:FEW].tolist()
    rows = [
        f"{end.neighbour[k]} ({end.path[k]}) {signed(end.effect[k], effect_form(end))}"
        for k in order
        if sign * end.effect[k] > 0
    ]
    return ", ".join(rows) or "nothing"
