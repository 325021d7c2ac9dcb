"""Tables of `gatas explain` for links whose log-odds are a sum of parts, and for types of link."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from gatas.cli.output import plain_table, print_json, print_table, signed, stdout

if TYPE_CHECKING:
    from rich.table import Table

    from gatas.inference import LinkExplanation, PathContribution, Predictor, StrongPath

NAMED = 8
"""Nodes that are named in one line."""
LINK_COLUMNS = """log-odds: what is added to ln p / (1 - p); all lines add up to it. without: p if it were not there.
P forth: probability of walking a typed path from the source to the target. about P back: that times the ratio of both ends'
degrees, an estimate of the probability of the way back. constant, forth, back: what is added for the path being there, for
ln P forth and for that estimate's ln. share: of the path's probability."""
TYPE_COLUMNS = """mean: what the path adds to the log-odds of a link, over all {split} links, 0 where it is not there.
links: share that it connects. where there: what it adds to those. negatives: the mean over the split's negatives."""
HIDDEN = "Training links are hidden from the graph, a tenth at a time, as in training."


def print_link(explanation: "LinkExplanation", top: int) -> None:
    """Print the answer, the terms of its log-odds, and the walks behind the strongest paths."""
    from gatas.inference.link_picture import link_heading

    stdout.print(link_heading(explanation), style="bold", soft_wrap=True)
    stdout.print(explanation.known_in_words, soft_wrap=True)
    stdout.print()
    print_table("What its log-odds are the sum of", contribution_table(explanation, top))
    if explanation.paths:
        print_table("Typed paths from the source to the target", path_table(explanation.paths[:top]))
        print_table("The likeliest walks over them", walk_table(explanation.paths[:top]))
    for path in explanation.paths[:top]:
        if path.num_between:
            named = [f"{one.node} {one.share:.1%}" for one in path.between[:NAMED]]
            stdout.print(f"Between, {path.name}: {listed(named, path.num_between)}", soft_wrap=True)
    shared = listed([str(one) for one in explanation.shared_neighbours[:NAMED]], len(explanation.shared_neighbours))
    stdout.print(f"Shared neighbours: {shared}", soft_wrap=True)
    stdout.print()
    stdout.print(LINK_COLUMNS, style="dim", soft_wrap=True)


def listed(names: list[str], count: int) -> str:
    """Return `3: a, b, c` or `12: a, b, … 10 more`."""
    if not count:
        return "none"
    more = f", … {count - len(names):,} more" if count > len(names) else ""
    return f"{count:,}: {', '.join(names)}{more}"


def contribution_table(explanation: "LinkExplanation", top: int) -> "Table":
    """Tabulate everything that adds up to the log-odds, and the sum."""
    table = plain_table("", "log-odds#", "without#")
    for one in (*explanation.terms, *explanation.paths[:top]):
        table.add_row(one.name, signed(one.value), f"{one.probability_without:.1%}")
    if rest := explanation.paths[top:]:
        table.add_row(f"… {len(rest):,} more paths", signed(sum(path.value for path in rest)), "")
    table.add_row("sum", signed(explanation.answer.log_odds), f"{explanation.answer.probability:.1%}", style="bold")
    return table


def path_table(paths: tuple["PathContribution", ...]) -> "Table":
    table = plain_table("typed path", "P forth#", "about P back#", "constant#", "forth#", "back#", "walks#")
    for path in paths:
        chances = (small_share(chance) for chance in (path.probability, path.probability_back))
        terms = (signed(value) for value in (path.constant, path.forth, path.back))
        table.add_row(path.name, *chances, *terms, "" if path.num_walks is None else f"{path.num_walks:,}")
    return table


def small_share(share: float) -> str:
    """Return a share in percent with two digits behind the point, or a bound where these would be zeros."""
    return "< 0.01%" if 0 < share < 0.00005 else f"{share:.2%}"


def walk_table(paths: tuple["PathContribution", ...]) -> "Table":
    table = plain_table("share#", "walk")
    for path in paths:
        for walk in path.walks:
            steps = (f"– {relation} → {node}" for relation, node in zip(path.relations, walk.nodes[1:], strict=True))
            table.add_row(f"{walk.share:.1%}", " ".join([str(walk.nodes[0]), *steps]))
    return table


def print_strongest(predictor: "Predictor", edge_type: str, split: str | None, top: int, json: bool) -> None:
    """Print the typed paths that speak most for links of a type."""
    from gatas.inference.strongest_paths import split_with_links

    predictor.check_predicts_links()
    split = split or split_with_links(predictor, edge_type)
    found = predictor.strongest_paths(edge_type, top, split=split)
    if json:
        print_json({"type": edge_type, "split": split, "paths": [asdict(path) for path in found]})
        return
    name = {"valid": "validation", "train": "training"}.get(split, split)
    print_table(f"Typed paths that speak most for “{edge_type}”", strongest_table(found))
    said = [TYPE_COLUMNS.format(split=name), *([HIDDEN] if split == "train" else [])]
    stdout.print("\n".join(said), style="dim", soft_wrap=True)


def strongest_table(found: list["StrongPath"]) -> "Table":
    table = plain_table("typed path", "mean#", "links#", "where there#", "negatives#")
    for path in found:
        values = signed(path.contribution), f"{path.share_of_links:.1%}", signed(path.where_present), signed(path.of_negatives)
        table.add_row(path.name, *values)
    return table
