"""`gatas init`: a YAML file for one's own tables, from a look at their columns and a few questions."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gatas.cli.configs import SetOption
from gatas.cli.output import stdout
from gatas.errors import ConfigError, GatasError

if TYPE_CHECKING:
    from gatas.training import Config

EDGES = {
    "source": "Column of the edge table: where an edge starts",
    "target": "Column: where it ends",
    "edge_type": "Column: its type (- for none)",
    "weight": "Column: its weight (- for none)",
}
NODES = {"id": "Column of the node table: the id", "node_type": "Column: its type (- for none)"}
TASKS = {"c": "node classification", "r": "node regression", "l": "link prediction"}
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


def init(
    edges: Path = typer.Argument(help="Edge table: .parquet, .csv or .tsv, also .gz."),
    nodes: Path | None = typer.Option(None, "--nodes", help="Node table, with a row for each node."),
    out: Path = typer.Option(Path("config.yaml"), "--out", help="The YAML file to write."),
    settings: list[str] = SetOption,
    yes: bool = typer.Option(False, "--yes", "-y", help="Ask nothing: take what the columns look like."),
    force: bool = typer.Option(False, "--force", help="Write over a file that is there."),
) -> None:
    """Look at your tables, ask what cannot be seen, and write a config for `gatas train`."""
    from gatas.datasets import open_dataset  # pydantic and pyarrow: what other commands need not wait for
    from gatas.training.config import parsed_setting

    if out.exists() and not force:
        raise ConfigError(f"{out} is there already. Choose another --out, or write over it with --force.")
    given = dict(parsed_setting(setting) for setting in settings)
    data = {key.removeprefix("data."): given.pop(key) for key in list(given) if key.startswith("data.")}
    asking = not yes and sys.stdin.isatty()
    config = (asked if asking else guessed)(edges, nodes, data).with_settings(given)
    write(config, out)
    stdout.print(f"Wrote {out}. Train it by: gatas train {out}", soft_wrap=True)
    try:
        stdout.print(open_dataset(config.data).summary(), soft_wrap=True)
    except GatasError as error:
        raise ConfigError(f"{out} was written, but cannot be trained yet: {error}") from None


def guessed(edges: Path, nodes: Path | None, data: dict[str, Any]) -> "Config":
    """Guess the settings from the columns alone."""
    from gatas.datasets.guessing import guess_settings
    from gatas.datasets.settings import checked
    from gatas.training import Config

    found = guess_settings(edges.absolute(), None if nodes is None else nodes.absolute(), data)
    found.setdefault("name", edges.absolute().parent.name or "own data")
    return checked(Config, {"data": found})


def asked(edges: Path, nodes: Path | None, data: dict[str, Any]) -> "Config":
    """Ask for the settings, with what was guessed from the columns as the default."""
    if nodes is None:
        answer = _answer("Node table (- for none)", None)
        nodes = None if answer is None else Path(answer)
    found = guessed(edges, nodes, data).data
    questions = {**EDGES, **(NODES if nodes is not None else {})}
    data |= {key: _answer(question, getattr(found, key)) for key, question in questions.items() if key not in data}
    if "task" not in data:
        default = next(key for key, task in TASKS.items() if task == found.task)
        answer = _answer("Predict classes of nodes (c), numbers of nodes (r) or links (l)", default) or default
        data["task"] = TASKS.get(answer.lower()[:1], answer)
    if data["task"] != "link prediction" and "label" not in data:
        what = "number" if data["task"] == "node regression" else "class"
        data["label"] = _answer(f"Column of the node table: the {what}", next(iter(found.label_columns), None))
    if data["task"] == "link prediction" and "link_types" not in data and data["edge_type"] is not None:
        answer = _answer("Edge types to predict, with commas between (- for all)", None)
        data["link_types"] = None if answer is None else [name.strip() for name in answer.split(",")]
    return guessed(edges, nodes, data)


def _answer(question: str, default: str | None) -> str | None:
    """Return what was typed; - is nothing."""
    answer = str(typer.prompt(question, default=default or "-", err=True)).strip()
    return None if answer in ("-", "") else answer


def write(config: "Config", out: Path) -> None:
    """Write the data in full, and the settings that are most often changed; paths are relative to the file."""
    folder = out.absolute().parent
    data = config.data.with_files(lambda path: Path(os.path.relpath(path, folder)))
    config = config.model_copy(update={"data": data})
    parts = [config.section("data"), *(config.section(name, _changed(config, name)) for name in ("model", "training"))]
    head = f"# gatas train {out.name}\n# Paths are relative to this file. All settings: gatas config show {out.name}\n"
    folder.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join([head, *parts]), encoding="utf-8")


def _changed(config: "Config", section: str) -> list[str]:
    """Return the settings that a first training starts from, and all that are not as usual."""
    values = getattr(config, section)
    unusual = (name for name, field in type(values).model_fields.items() if getattr(values, name) != field.default)
    return list(dict.fromkeys([*SHOWN[config.data.task][section], *unusual]))
