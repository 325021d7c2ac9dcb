"""Do explanations mean something: does an answer change more when the rows named first are left out than when others are?

    python -m benchmarks.explanations [--data digits,kinship,cora] [--data-dir FOLDER] [--questions 200]

One model each, by its recipe and seed 0. Rows are left out of the neighbourhood that the model's own encoder gets, at both
ends of a link, and attention is shared among the others.
"""

import argparse
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.report import Report
from gatas import Run, fit_many, load_dataset
from gatas.experiments.recipes import recipe
from gatas.inference import Explanation
from gatas.sampling import Neighbourhood
from gatas.tasks import LinkPredictor, Model
from gatas.transitions.paths import path_name

LEFT_OUT = (1, 5, 10, 20)
RANDOM_DRAWS = 5
ORDERS = ("effect", "attention", "share", "P", "random")
ABOUT = f"""\
`effect` orders by what each row alone does to the answer, so that with 1 row it must lose most; `attention`, `share`
and `P` by those columns of an explanation; `random` is the mean of {RANDOM_DRAWS} orders by chance. Neighbourhoods with no more
rows than are to be left out are not counted."""
Row = tuple[int, int, int]  # end, node, path


def questions(run: Run, count: int) -> list[Any]:
    """Test nodes, or test links, drawn by a seed."""
    test, id_of = run.dataset.splits["test"], run.dataset.graph.id_of
    generator = np.random.default_rng(0)
    if run.dataset.task != "link prediction":
        return [id_of(int(node)) for node in generator.choice(test, min(count, len(test)), replace=False)]
    chosen = generator.choice(np.flatnonzero(test.label == 1), count, replace=False)
    return [(id_of(int(test.source[k])), run.dataset.names[test.edge_type[k]], id_of(int(test.target[k]))) for k in chosen]


def orders(explanation: Explanation, model: Model, generator: np.random.Generator) -> dict[str, list[list[Row]]]:
    """Rows of all ends, the first to be left out first; several orders by chance."""
    columns = {"effect": "effect", "attention": "attention", "share": "share", "P": "probability"}
    paths = {path_name(int(path), model.graph.relation_names): int(path) for path in known_paths(model, explanation)}
    rows = [
        (end, model.graph.index_of(own.neighbour[k]), paths[own.path[k]])
        for end, own in enumerate(explanation.ends)
        for k in range(len(own))
    ]
    found = {}
    for name, column in columns.items():
        values = np.concatenate([getattr(own, column) for own in explanation.ends])
        found[name] = [[rows[k] for k in np.argsort(-values, kind="stable")]]
    found["random"] = [[rows[k] for k in generator.permutation(len(rows))] for _ in range(RANDOM_DRAWS)]
    return found


def known_paths(model: Model, explanation: Explanation) -> Any:
    """Ids of the paths that the ends' candidates have."""
    return np.unique(np.concatenate([model.transitions.row(model.graph.index_of(end.target)).path for end in explanation.ends]))


def without(model: Model, targets: list[int], mode: Any, left_out: list[Row]) -> list[Tensor]:
    """Representations of the ends, by the model's own encoder."""
    representations = []
    for end, target in enumerate(targets):
        own = torch.tensor([target])
        drawn = model.sampler(own, draw=-1, mode=mode)
        gone = {(node, path) for side, node, path in left_out if side == end}
        pairs = zip(drawn.node[0].tolist(), drawn.path[0].tolist(), strict=True)
        mask = drawn.mask & ~torch.tensor([[pair in gone for pair in pairs]])
        fewer = Neighbourhood(drawn.node, drawn.path, drawn.log_probability.masked_fill(~mask, -torch.inf), mask)
        representations.append(model.encoder(own, fewer, model.features))
    return representations


def log_odds(model: Model, answer: str, representations: list[Tensor]) -> tuple[float, bool]:
    """Of the answer, and whether it is still the one given."""
    logits, number = model.head(*representations)[0].double(), model.names.index(answer)
    if isinstance(model, LinkPredictor):
        return logits[number].item(), bool(logits[number] > 0)
    others = torch.cat([logits[:number], logits[number + 1 :]]).logsumexp(0)
    return (logits[number] - others).item(), bool(logits.argmax() == number)


@torch.no_grad()
def measure(run: Run, asked: list[Any]) -> dict[tuple[str, int], list[tuple[float, bool]]]:
    """By order and number of rows: how many log-odds the answer lost, and whether it is another one now."""
    model, mode, generator = run.model.eval(), run.config.training.evaluation_mode, np.random.default_rng(1)
    found: dict[tuple[str, int], list[tuple[float, bool]]] = {}
    for question in asked:
        explanation = run.predictor.explain(question, mode=mode)
        assert explanation.answer is not None
        targets = [model.graph.index_of(end.target) for end in explanation.ends]
        whole, given = log_odds(model, explanation.answer.name, without(model, targets, mode, []))
        assert abs(whole - explanation.answer.log_odds) < 1e-3
        for name, several in orders(explanation, model, generator).items():
            for count in LEFT_OUT:
                for order in several:
                    if count < len(order):
                        left = without(model, targets, mode, order[:count])
                        now, same = log_odds(model, explanation.answer.name, left)
                        found.setdefault((name, count), []).append((whole - now, same != given))
    return found


def tell(report: Report, run: Run, count: int) -> None:
    started, asked = perf_counter(), questions(run, count)
    found = measure(run, asked)
    report.add(f"## {run.dataset.name}\n")
    what = "test links" if run.dataset.task == "link prediction" else "test nodes"
    report.add(f"{len(asked)} {what}, neighbours: {run.config.training.evaluation_mode}. Each cell: log-odds the answer lost, "
               "how far they moved either way, and how many answers became others.")  # fmt: skip
    rows = []
    for name in ORDERS:
        cells = []
        for number in LEFT_OUT:
            lost = np.array([own for own, _ in found.get((name, number), [])])
            other = np.mean([changed for _, changed in found.get((name, number), [])]) if len(lost) else 0.0
            cells.append(f"{lost.mean():+.3f}, {abs(lost).mean():.3f}, {100 * other:.1f} %" if len(lost) else "–")
        rows.append([name, *cells])
    report.table(["first left out by", *(f"{number} rows" if number > 1 else "1 row" for number in LEFT_OUT)], rows)
    print(f"{perf_counter() - started:.0f} s")


def main() -> None:
    arguments = parse()
    report = Report("explanations", "Does leaving out the rows that explanations name change answers?", ("torch", "numba"))
    report.add()
    for name in arguments.data.split(","):
        runs = fit_many(recipe(name), [0], dataset=load_dataset(name, arguments.data_dir), device="cpu")
        tell(report, runs[0], arguments.questions)
    report.add(ABOUT)
    report.write()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits,kinship,cora")
    parser.add_argument("--data-dir")
    parser.add_argument("--questions", type=int, default=200)
    return parser.parse_args()


if __name__ == "__main__":
    main()
