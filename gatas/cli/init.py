"""`gatas init`: a YAML file for one's own tables, from a look at their columns and a few questions."""

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gatas.cli.configs import SetOption
from gatas.cli.output import plain_table, print_table, stderr, stdout
from gatas.errors import ConfigError, GatasError, GatasWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gatas.datasets import Dataset
    from gatas.datasets.column_roles import ColumnRole
    from gatas.datasets.config import DataConfig
    from gatas.datasets.guessing import Guess
    from gatas.training import Config

EDGES = {
    "source": "Column of the edge table: where an edge starts",
    "target": "Column: where it ends",
    "edge_type": "Column: its type (- for none)",
    "weight": "Column: its weight (- for none)",
}
NODES = {"id": "Column of the node table: the id", "node_type": "Column: its type (- for none)"}
NEEDED = ("source", "target", "id")
TASKS = {"c": "node classification", "r": "node regression", "l": "link prediction"}
MOST_LINES = 40
"""Columns that are listed one by one."""
OF_NODES = {
    "model": ("num_steps", "sample_size", "num_heads", "dropout"),
    "training": ("epochs", "patience", "batch_size", "learning_rate", "monitor"),
}
SHOWN = {
    "node classification": OF_NODES,
    "node regression": OF_NODES,
    "link prediction": {
        "model": ("link_score", "num_steps", "max_degree", "vector_size"),
        "training": ("epochs", "patience", "batch_size", "learning_rate", "n3", "monitor"),
    },
}
"""Settings that are written into the file: those that are changed most often."""
AUTOMATIC = "auto comes to, on this machine:"


def init(
    edges: Path = typer.Argument(help="Edge table: .parquet, .csv or .tsv, also .gz."),
    nodes: Path | None = typer.Option(None, "--nodes", help="Node table, with a row for each node."),
    valid: Path | None = typer.Option(None, "--valid", help="Links held out for validation, with the edge table's columns."),
    test: Path | None = typer.Option(None, "--test", help="Links held out for the test."),
    out: Path = typer.Option(Path("config.yaml"), "--out", help="The YAML file to write."),
    settings: list[str] = SetOption,
    yes: bool = typer.Option(False, "--yes", "-y", help="Ask nothing: take what the columns look like."),
    force: bool = typer.Option(False, "--force", help="Write over a file that is there."),
) -> None:
    """Look at your tables, ask what cannot be seen, and write a config for `gatas train`."""
    from gatas.datasets import open_dataset  # pydantic and pyarrow: what other commands need not wait for
    from gatas.training.config import parsed_setting
    from gatas.training.task_making import automatic_choices

    if out.exists() and not force:
        raise ConfigError(f"{out} is there already. Choose another --out, or write over it with --force.")
    given = dict(parsed_setting(setting) for setting in settings)
    data = {key.removeprefix("data."): given.pop(key) for key in list(given) if key.startswith("data.")}
    if held_out := {split: path.absolute() for split, path in (("valid", valid), ("test", test)) if path is not None}:
        data = {"task": "link prediction", "keep_reverse": True, "pairs": held_out, **data}
    has_settings = bool(data)  # what was answered is added to it
    asking = not yes and sys.stdin.isatty()
    config = (asked if asking else shown)(edges, nodes, data).with_settings(given)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* columns? (was|were) not used", GatasWarning)  # these are in the list
            dataset = open_dataset(config.data)
            if "keep_reverse" not in data and reverses_are_evidence(config.data, dataset):
                config = config.with_settings({"data.keep_reverse": True})
                dataset = open_dataset(config.data)
    except GatasError as error:
        if has_settings:  # a setting may be at fault: the corrected command is to find no file
            raise ConfigError(f"{out} was not written: {error}") from None
        write(config, out)
        raise ConfigError(f"{out} was written, but cannot be trained yet: {error}") from None
    config = config.for_data(dataset)
    automatic = automatic_choices(dataset, config) if "train" in dataset.splits else []
    write(config, out, automatic)
    stdout.print(f"Wrote {out}. Train it by: gatas train {out}", soft_wrap=True)
    stdout.print(dataset.summary(), soft_wrap=True)
    for choice in config.choices:
        stdout.print(f"  {choice}", soft_wrap=True)
    if automatic:
        stdout.print(AUTOMATIC, soft_wrap=True)
    for choice in automatic:
        stdout.print(f"  {choice}", soft_wrap=True)


def guessed(edges: Path, nodes: Path | None, data: dict[str, Any]) -> "tuple[Config, Guess]":
    """Guess the settings from the columns alone; return also what each column was taken for."""
    from gatas.datasets.guessing import guess_settings
    from gatas.datasets.settings import checked
    from gatas.training import Config

    guess = guess_settings(edges.absolute(), None if nodes is None else nodes.absolute(), data)
    named = {"name": edges.absolute().parent.name or "own data"}
    return checked(Config, {"data": named | guess.settings}), guess


def shown(edges: Path, nodes: Path | None, data: dict[str, Any]) -> "Config":
    """Guess the settings, and list what each column was taken for."""
    config, guess = guessed(edges, nodes, data)
    print_guess(edges, nodes, guess)
    return config


def asked(edges: Path, nodes: Path | None, data: dict[str, Any]) -> "Config":
    """Ask for the settings, with what was guessed from the columns as the default."""
    if nodes is None:
        answer = _answer("Node table (- for none)", None)
        nodes = None if answer is None else Path(answer)
    first, guess = guessed(edges, nodes, data)
    found, of_edges, of_nodes = first.data, _names(guess.edges), _names(guess.nodes)
    print_guess(edges, nodes, guess)
    for questions, columns in ((EDGES, of_edges), (NODES if nodes is not None else {}, of_nodes)):
        asking = {key: question for key, question in questions.items() if key not in data}
        data |= {key: _column(question, getattr(found, key), columns, key in NEEDED) for key, question in asking.items()}
    if "task" not in data:
        default = next(key for key, task in TASKS.items() if task == found.task)
        answer = _answer("Predict classes of nodes (c), numbers of nodes (r) or links (l)", default) or default
        data["task"] = TASKS.get(answer.lower()[:1], answer)
    if data["task"] != "link prediction" and "label" not in data:
        what = "number" if data["task"] == "node regression" else "class"
        label = next(iter(found.label_columns), None)
        data["label"] = _column(f"Column of the node table: the {what}", label, of_nodes, True)
    if data["task"] == "link prediction" and "link_types" not in data and data["edge_type"] is not None:
        answer = _answer("Edge types to predict, with commas between (- for all)", None)
        data["link_types"] = None if answer is None else [name.strip() for name in answer.split(",")]
    config, last = guessed(edges, nodes, data)
    if last != guess:
        print_guess(edges, nodes, last)
    return config


def _names(roles: "Sequence[ColumnRole]") -> list[str]:
    return [role.column for role in roles if role.taken_for != "feature: file"]


def _column(question: str, default: str | None, columns: list[str], needed: bool) -> str | None:
    """Ask for a column until one is named that is there, or none where none is needed."""
    while True:
        answer = _answer(question, default)
        if answer in columns or (answer is None and not needed):
            return answer
        what = "it cannot be left out" if answer is None else f"there is no column {answer!r}"
        stderr.print(f"{what}; the columns are {', '.join(columns)}.", soft_wrap=True)


def _answer(question: str, default: str | None) -> str | None:
    """Return what was typed; - is nothing."""
    answer = str(typer.prompt(question, default=default or "-", err=True)).strip()
    return None if answer in ("-", "") else answer


def print_guess(edges: Path, nodes: Path | None, guess: "Guess") -> None:
    """List every column with what it was taken for, or why it was left out."""
    print_roles(str(edges), guess.edges)
    if nodes is not None:
        print_roles(str(nodes), guess.nodes)
    for note in guess.notes:
        stdout.print(note, soft_wrap=True)
    if guess.notes:
        stdout.print()


def print_roles(title: str, roles: "Sequence[ColumnRole]") -> None:
    """Print one table's columns; neighbours that were taken for the same for the same reason are one line."""
    table = plain_table("column", "taken for", "")
    for run in _runs(roles):
        first, last = run[0], run[-1]
        name = f"{first.column} … {last.column} ({len(run):,} columns)" if len(run) > 1 else first.column or "(no name)"
        why = first.why if all(role.why == first.why for role in run) else ""
        table.add_row(name, first.taken_for, why, style="yellow" if first.taken_for == "left out" else None)
    print_table(title, table)


def _runs(roles: "Sequence[ColumnRole]") -> "list[list[ColumnRole]]":
    """Return the columns of each line."""
    runs: list[list[ColumnRole]] = []
    many = len(roles) > MOST_LINES
    for role in roles:
        before = runs[-1][-1] if runs else None
        alike = before is not None and role.why and before[1:] == role[1:]
        kindred = before is not None and (before.taken_for, before.encode) == (role.taken_for, role.encode)
        if alike or (many and role.is_feature and kindred):
            runs[-1].append(role)
        else:
            runs.append([role])
    return runs


def reverses_are_evidence(data: "DataConfig", dataset: "Dataset") -> bool:
    """Say so where some links go both ways, but not nearly all of a type: then a reverse is known when a link is asked for."""
    from gatas.datasets.config import LinkTableData
    from gatas.datasets.held_out import shares_both_ways, some_go_both_ways

    if not isinstance(data, LinkTableData) or data.keep_reverse:
        return False
    shares = shares_both_ways(dataset.splits["train"], dataset.graph.num_nodes)
    if not some_go_both_ways(shares):
        return False
    most = "<1%" if shares.max() < 0.005 else f"{shares.max():.0%}"
    share = most if len(shares) == 1 else f"up to {most}, by type,"
    stdout.print(
        f"Links go both ways: {share} of them. A link may be asked for while its reverse is known, so reverses of held-out "
        "links stay in the graph; --set data.keep_reverse=false removes them.\n",
        soft_wrap=True,
    )
    return True


def write(config: "Config", out: Path, automatic: "Sequence[str]" = ()) -> None:
    """Write the data in full, and the settings that are most often changed; paths are relative to the file."""
    folder = out.absolute().parent
    data = config.data.with_files(lambda path: Path(os.path.relpath(path, folder)))
    config = config.model_copy(update={"data": data})
    parts = [config.section("data"), *(config.section(name, _changed(config, name)) for name in ("model", "training"))]
    head = f"# gatas train {out.name}\n# Paths are relative to this file. All settings: gatas config show {out.name}\n"
    head += "".join(f"# {choice}\n" for choice in config.choices)
    head += "".join(f"# {line}\n" for line in [AUTOMATIC, *(f"  {choice}" for choice in automatic)] if automatic)
    folder.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join([head, *parts]), encoding="utf-8")


def _changed(config: "Config", section: str) -> list[str]:
    """Return the settings that a first training starts from, and all that are not as usual."""
    values = getattr(config, section)
    unusual = (name for name, field in type(values).model_fields.items() if getattr(values, name) != field.default)
    return list(dict.fromkeys([*SHOWN[config.data.task][section], *unusual]))
