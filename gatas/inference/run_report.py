"""`write_report`: one page about a run, report.html in its folder, which opens from disk without a network."""

import json
from base64 import b64encode
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gatas import __version__
from gatas.errors import GatasError
from gatas.inference.embedding_map import embedding_map
from gatas.inference.files import results_file
from gatas.inference.loading import load
from gatas.inference.predictor import Predictor
from gatas.inference.report_answers import MOST_RANKED, Answers, answers_of
from gatas.training.plots import png
from gatas.training.run import with_ranks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPORT = "report.html"
MAPPED = 1000
"""Nodes of the map: t-SNE takes some seconds for them."""
MOST_ROWS = 40
"""Classes or types with a row of their own."""
NAMES = {
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "f1": "F1",
    "roc_auc": "ROC-AUC",
    "pr_auc": "PR-AUC",
    "mrr": "MRR",
    "hits_at_1": "Hits@1",
    "hits_at_3": "Hits@3",
    "hits_at_10": "Hits@10",
    "mae": "MAE",
    "rmse": "RMSE",
    "r2": "R²",
}
PICTURES = {
    "curve.png": "Loss and validation metric, epoch by epoch; of the encoder alone where labels are spread",
    "depth.png": "The learned depth q: how much the model looks at each distance",
    "confusion.png": "Truth by row, answers by column",
    "predictions.png": "Truth and answers",
    "reliability.png": "How often answers of a probability are right, before and after calibration",
}
CAPTIONS = {
    "ROC and PR curves": "Beside names: areas below ROC curves, and mean precisions; dashed: a baseline without training",
    "Calibration": "Pairs of the split by tenths of their probability, with the number of pairs in each",
    "Ranks of true links": f"Ranks of both ends of at most {MOST_RANKED} links, without other known links",
}
"""Captions by heading."""
ON_VALIDATION_EDGES = (
    "Links of validation are edges of the graph in these test metrics (data.validation_edges). What follows on answers and "
    "ranks is without these edges."
)
STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
p, li { max-width: 46rem; } .note { opacity: .7; font-size: .9rem; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; margin: .5rem 0; }
th, td { padding: .3rem 1rem .3rem 0; vertical-align: top; text-align: left; border-bottom: 1px solid #8884; }
td { overflow-wrap: break-word; }
td + td, th + th { text-align: right; white-space: nowrap; } .words td + td { text-align: left; white-space: normal; }
.table { overflow-x: auto; } figure { margin: 1rem 0; } img { max-width: 100%; background: white; border-radius: 6px; }
figcaption { opacity: .7; font-size: .9rem; }
"""


def write_report(folder: str | Path, *, device: str = "auto") -> Path:
    """Write report.html into the folder of a finished run of one seed, and return where it is.

    It shows the data and the model, curves, depth, scores by class or type, ROC and PR curves, ranks, calibration, a map
    of the nodes, the worst errors with what they rest on, and baselines without training.
    """
    folder = Path(folder)
    predictor = load(folder, device=device)
    try:
        metrics = json.loads(folder.joinpath("metrics.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GatasError(f"{folder} has no metrics.json that can be read ({error}). Train the model again.") from None
    split = next((name for name in ("test", "valid") if name in predictor.dataset.splits), None)
    answers = None if split is None else answers_of(predictor, split)
    parts = [*_learned(predictor, metrics), *_measured(metrics), *_floors(answers), *_pictures(folder), *_answers(answers)]
    page = _page(predictor.dataset.name, [*parts, *_map(predictor), *_errors(answers)])
    with results_file(folder / REPORT) as file:
        file.write(page.encode())
    return folder / REPORT


def _page(title: str, parts: Iterable[str]) -> str:
    name, view = escape(title), '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f'<meta charset="utf-8">{view}<title>{name}</title><style>{STYLE}</style>'
    lines = ["<!DOCTYPE html>", f'<html lang="en"><head>{head}</head><body>', f"<h1>{name}</h1>", *parts, "</body></html>"]
    return "\n".join(lines) + "\n"


def _model(predictor: Predictor) -> str:
    """Say what looks at a node's neighbourhood, and what links are scored by."""
    model, parts = predictor.model.config, predictor.exact.parts
    said = [f"links by {', '.join(parts)}; paths of up to {model.num_steps} steps"] if parts else [f"{model.num_steps} steps"]
    drawn = f"{model.sample_size} neighbours drawn, {model.num_heads} heads"
    return ", ".join([*said, drawn] if predictor.exact.encodes else said)


def _learned(predictor: Predictor, metrics: dict[str, Any]) -> list[str]:
    """Tabulate the data and the model."""
    dataset = predictor.dataset
    splits = ", ".join(f"{name} {len(rows):,}" for name, rows in dataset.splits.items())
    rows = {
        "task": dataset.task,
        "graph": f"{dataset.graph.num_nodes:,} nodes, {dataset.graph.num_edges:,} edges",
        "edge types": _listed(dataset.graph.edge_type_names),
        "node types": _listed(dataset.nodes.node_type_names) or "none",
        "features": f"{dataset.nodes.num_features:,}",
        "predicted": _listed(dataset.names),
        "splits": splits,
        "model": _model(predictor),
        "weights": f"of epoch {metrics['best_epoch'] + 1} of {metrics['epochs']}",
        "note": dataset.note,
    }
    cells = "".join(f"<tr><td>{name}</td><td>{escape(value)}</td></tr>" for name, value in rows.items() if value)
    about = f"gatas {__version__}, model {predictor.fingerprint[:12]}; config.yaml beside this page has all settings."
    return [
        "<h2>Data and model</h2>",
        f'<div class="table"><table class="words">{cells}</table></div>',
        _note(about),
    ]


def _measured(metrics: dict[str, Any]) -> list[str]:
    """Return a table of metrics by split, and one by class, type or number of the last split."""
    splits = {name: with_ranks(own) for name, own in metrics.items() if isinstance(own, dict)}
    names = list(dict.fromkeys(name for own in splits.values() for name, value in own.items() if isinstance(value, float)))
    rows = [[NAMES.get(name, name.replace("_", " ")), *(_number(own.get(name)) for own in splits.values())] for name in names]
    found = ["<h2>Metrics</h2>", _table(["", *splits], rows)]
    split, last = next(reversed(splits.items()), ("", {}))
    found += [_note(ON_VALIDATION_EDGES)] if last.get("validation_edges") else []
    for part, what in (("by_class", "class"), ("by_type", "type of link"), ("by_target", "number")):
        own = last.get(part, {})
        if len(own) > 1:
            numbers = ((name, value) for values in own.values() for name, value in values.items())
            columns = list(dict.fromkeys(name for name, value in numbers if isinstance(value, int | float)))
            frequent = sorted(
                own.items(), key=lambda one: -one[1].get("positives", one[1].get("support", 0) if part == "by_class" else 0)
            )
            rows = [[name, *(_number(values.get(column)) for column in columns)] for name, values in frequent]
            found += [
                f"<h2>By {what}, {split} data</h2>",
                _table([what, *(NAMES.get(name, name.replace("_", " ")) for name in columns)], rows[:MOST_ROWS]),
            ]
            found += [_note(f"{len(rows) - MOST_ROWS:,} more are in metrics.json.")] if len(rows) > MOST_ROWS else []
    return found


def _floors(answers: Answers | None) -> list[str]:
    if answers is None or not answers.floors:
        return []
    rows = [[one.metric, _number(one.model), f"{one.name}: {_number(one.floor)}"] for one in answers.floors]
    ranked = any(one.metric == "MRR" for one in answers.floors)
    said = f"On {answers.count:,} {'pairs' if ranked else 'nodes'} of the {answers.split} split."
    said += f" MRR: ranks of both ends of at most {MOST_RANKED} links, among all nodes." if ranked else ""
    return ["<h2>Baselines without training</h2>", _table(["", "model", "without training"], rows), _note(said)]


def _pictures(folder: Path) -> list[str]:
    """Embed the plots that the folder has."""
    there = [(folder / name, caption) for name, caption in PICTURES.items() if (folder / name).is_file()]
    return ["<h2>Training and answers</h2>", *(_image(path.read_bytes(), caption) for path, caption in there)] if there else []


def _answers(answers: Answers | None) -> list[str]:
    figures: dict[str, Figure] = {} if answers is None else answers.figures
    images = {title: _image(png(figure), CAPTIONS[title]) for title, figure in figures.items()}
    return [part for title, image in images.items() for part in (f"<h2>{escape(title)}</h2>", image)]


def _map(predictor: Predictor) -> list[str]:
    """Draw a map of the nodes, where they have representations that differ."""
    if not predictor.embedding_size:
        return []
    try:
        found = embedding_map(predictor, method="t-sne", most=MAPPED)
    except GatasError as error:
        return ["<h2>Map of the nodes</h2>", _note(str(error))]
    return ["<h2>Map of the nodes</h2>", _image(png(found.draw()), "Near one another where the model represents them alike")]


def _errors(answers: Answers | None) -> list[str]:
    if answers is None or not answers.errors:
        return []
    found = ["<h2>The worst errors, and what they rest on</h2>"]
    found.append(
        _note("Effect: log-odds (or the number) that the answer would lose without it; below 0 it speaks against the answer.")
    )
    for error in answers.errors:
        rows = [[words, f"{effect:+.3f}"] for words, effect in error.reasons]
        found += [f"<p><strong>{escape(error.words)}</strong></p>", _table(["evidence", "effect"], rows)]
    return found


def _listed(names: Iterable[str], most: int = 20) -> str:
    every = list(names)
    return ", ".join(every[:most]) + (f" and {len(every) - most:,} more" if len(every) > most else "")


def _number(value: Any) -> str:
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    cells = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="table"><table><tr>{titles}</tr>{cells}</table></div>'


def _image(content: bytes, caption: str) -> str:
    source = f"data:image/png;base64,{b64encode(content).decode()}"
    return f'<figure><img src="{source}" alt="{escape(caption)}"><figcaption>{escape(caption)}</figcaption></figure>'
