"""`report`: all results as one HTML page and as Markdown, tables and charts, each with the files it came from."""

import statistics
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gatas.errors import ConfigError, GatasWarning
from gatas.experiments import paper, recipes
from gatas.experiments.compare_table import ComparisonTable, rendered, side_by_side, spoken
from gatas.experiments.published import PUBLISHED
from gatas.experiments.report_benchmarks import MarkdownTable, Scaling, read_scaling
from gatas.experiments.report_charts import (
    Chart,
    accuracy_against_seconds,
    accuracy_against_size,
    depth_bars,
    sample_size,
    scaling_curves,
    step_name,
    training_curves,
)
from gatas.experiments.report_page import CHARTS, Block, ReportSection, alone, html_page, markdown_page
from gatas.experiments.report_results import Result, Results, by_data, read_results, views_of
from gatas.experiments.results import ResultRecord
from gatas.experiments.tables import TABLES
from gatas.training.checkpoint import write_whole

TITLE = "gatas: results"
COMPARE = "Nothing here yet: `gatas compare --data cora --models gatas,gat,gcn` makes it."
VARIANTS = "Rows without costs are variants of ours, run by `gatas reproduce`."
REPRODUCE = "Nothing here yet: `gatas reproduce table1` makes it."


@dataclass(frozen=True)
class WrittenReport:
    """Where a report was written, and what could not be used."""

    html: Path
    markdown: Path
    problems: tuple[str, ...]


def report(results: Path, benchmarks: Path, folder: Path, readme: Path | None = None) -> WrittenReport:
    """Write report.html, report.md and its charts into a folder. What cannot be used is warned of and listed there.

    A `readme` gets the short table of all peers, or that of published figures, between their marks.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; expected a folder to write the report to. Name another: --out.")
    found = read_results(results)
    for problem in found.problems:
        warnings.warn(problem, GatasWarning, stacklevel=2)
    sections = sections_of(found, read_scaling(benchmarks))
    text, page = (make(TITLE, lead(found), sections, folder) for make in (markdown_page, html_page))
    (folder / CHARTS).mkdir(parents=True, exist_ok=True)
    for section in sections:
        for chart in (chart for block in section.blocks for chart in block.charts):
            write_whole(folder / CHARTS / f"{chart.name}.svg", alone(chart).encode())
    made = WrittenReport(folder / "report.html", folder / "report.md", tuple(found.problems))
    write_whole(made.markdown, text.encode())
    write_whole(made.html, page.encode())
    if readme is not None:
        for name in marked(readme):
            paper.update_readme(readme, name, TABLES_OF_PEERS[name](found) or COMPARE)
    return made


def marked(readme: Path) -> list[str]:
    """The tables of peers that a file has marks for."""
    content = readme.read_text(encoding="utf-8")
    return [name for name in TABLES_OF_PEERS if f"<!-- results: {name} -->" in content] or ["peers"]


def lead(found: Results) -> str:
    """What was run, when and on what."""
    every = [*found.recipes.values(), *found.peers]
    sessions = [session for result in every for session in result.record.sessions]
    if not sessions:
        return "No results yet."
    dates, hardware = (sorted({str(getattr(session, name)) for session in sessions}) for name in ("date", "hardware"))
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    runs = sum(len(result.runs) for result in every)
    counts = [f"{len(found.recipes)} recipes"] * bool(found.recipes) + [f"{len(found.peers)} comparisons"] * bool(found.peers)
    return f"{runs:,} runs of {' and '.join(counts)}, {when}, on {'; on '.join(hardware)}."


def sections_of(found: Results, scalings: list[Scaling]) -> list[ReportSection]:
    """The whole report. Those that are empty say what fills them; of benchmarks and problems there may be none."""
    sections = [
        ReportSection("tables", "The paper's tables", tuple(paper_table(name, found) for name in TABLES)),
        ReportSection("peers", "Beside other models", peers(found)),
        ReportSection("seconds", "Accuracy against seconds", seconds(found)),
        ReportSection("size", "Accuracy against S", sizes(found)),
        ReportSection("depth", "Learned depth", depth(found)),
        ReportSection("curves", "Training curves", curves(found)),
    ]
    if scalings:
        sections.append(ReportSection("scaling", "As graphs grow", tuple(scaling(scalings))))
    if found.problems:
        sections.append(
            ReportSection("left-out", "Left out", (Block("\n".join(f"- {problem}" for problem in found.problems)),))
        )
    return sections


def paper_table(name: str, found: Results) -> Block:
    table = TABLES[name]
    wanted = list(dict.fromkeys(cell.recipe for cell in table.cells))
    there = {recipe: found.recipes[recipe] for recipe in wanted if recipe in found.recipes}
    text = paper.rendered(table, {recipe: result.record for recipe, result in there.items()})
    command = f"gatas reproduce {name.removesuffix('-gatne')}"
    hint = f"\n`{command}` runs what is missing." if len(there) < len(wanted) else ""
    return Block(text + hint, tuple(result.path for result in there.values()))


def notes(results: Sequence[Result]) -> list[str]:
    """What a reader must know of their data."""
    return sorted({f"{result.data}: {result.record.note}" for result in results if result.record.note})


def mean(result: Result) -> float:
    """Those without a run come last."""
    return statistics.fmean(result.percent) if result.runs else float("-inf")


def shown(results: Sequence[Result]) -> list[tuple[ComparisonTable, list[Result]]]:
    """The tables of each data set, the paper's in its order, the best first; for links one for each protocol."""
    found, known = [], recipes.names()
    place = {data: known.index(data) if data in known else len(known) for data in by_data(results)}
    for data, own in sorted(by_data(results).items(), key=lambda one: place[one[0]]):
        for view in views_of(data, own[0].metric):
            measured = [replace(result, metric=view.metrics[0]) for result in own]
            found.append((view, sorted(measured, key=mean, reverse=True)))
    return found


def short(found: Results) -> str:
    """All models and data sets at a glance, with our recipes for each: nodes in one table, links in another."""
    tables, defaults = [], [result for result in variants(found) if result.name == f"{result.data}-default"]
    for links in (False, True):
        columns: dict[str, dict[str, ResultRecord]] = {}
        metrics = {}
        for view, results in shown([result for result in (*found.peers, *defaults) if result.runs]):
            if view.metrics[0].endswith(("roc_auc", "mrr")) == links:
                title = f"{view.title}, {spoken(view.metrics[0])}"
                columns[title] = {result.name: result.record for result in results}
                metrics[title] = view.metrics[0]
        tables += [side_by_side(columns, metrics)] if columns else []
    return "\n".join(tables)


def published(found: Results) -> str:
    """What others published of the peers, beside our runs of them; those that a limit has cut are named below."""
    ours = {result.path.stem: result.record for result in found.peers}
    cut = [
        cell.recipe
        for cell in PUBLISHED.cells
        if cell.recipe in ours and any(run.interrupted for run in ours[cell.recipe].runs)
    ]
    cells = tuple(cell for cell in PUBLISHED.cells if cell.recipe not in cut)
    said = [
        f"Left out, because a limit of time or epochs ended some or all seeds, which might have improved: {', '.join(cut)}."
    ]
    notes = (*PUBLISHED.notes, *said[: len(cut)])
    return paper.rendered(replace(PUBLISHED, cells=cells, notes=notes), ours, "published")


TABLES_OF_PEERS = {"peers": short, "published": published}
"""Tables that pages have, by the names of their marks."""


def peers(found: Results) -> tuple[Block, ...]:
    """All at a glance; then a table for each data set, and for each protocol, with variants of ours as further rows."""
    blocks = [Block(text)] if (text := short(found)) else []
    for view, results in shown([*found.peers, *variants(found)]):
        note = results[0].record.note
        if any(result.name in found.recipes for result in results):
            note = "\n".join(filter(None, [note, VARIANTS]))
        text = rendered(view, {result.name: result.record for result in results}, note)
        blocks.append(Block(text, tuple(result.path for result in results)))
    return tuple(blocks) or (Block(COMPARE),)


def variants(found: Results) -> list[Result]:
    """Recipes beside peers on their data: ablations, sample sizes and recipes of our own, but none that is there already."""
    measured = {result.data: result.metric for result in found.peers}
    there = {(result.data, result.name) for result in found.peers}
    return [
        result
        for name, result in found.recipes.items()
        if result.runs and measured.get(result.data) == result.metric
        if (result.data, name) not in there and not is_ours(name, result.data)
    ]


def is_ours(name: str, data: str) -> bool:
    """Whether a recipe is what is called by our name on a data set: the paper's."""
    return {name, data} <= set(recipes.names()) and recipes.recipe(name) == recipes.recipe(data)


def seconds(found: Results) -> tuple[Block, ...]:
    timed = [result for result in found.peers if result.runs and all(run.seconds_to_best is not None for run in result.runs)]
    charts = [accuracy_against_seconds(view, results) for view, results in shown(timed)]
    if not charts:
        return (Block(COMPARE),)
    note = (
        "Mean over seeds, ± standard deviation, against the median of the seconds that one seed takes to its best epoch. "
        "÷ n: a share, the seconds of one program that trained n seeds, divided by n. It is not to be compared with those "
        "of a model that was trained alone. Arrows: far below the others."
    )
    return (Block("\n\n".join([note, *notes(found.peers)]), charts=tuple(charts)),)


def sizes(found: Results) -> tuple[Block, ...]:
    """Recipes of the paper's first table."""
    charts = []
    cells = TABLES["table1"].cells
    for column in dict.fromkeys(cell.column for cell in cells):
        own = {cell.recipe: cell for cell in cells if cell.column == column}
        there = [found.recipes[recipe] for recipe in own if recipe in found.recipes and found.recipes[recipe].runs]
        if there:
            shown = {int(recipe.rpartition("-")[2]): cell for recipe, cell in own.items()}
            theirs = {size: (1 if cell.percent else 100) * cell.paper for size, cell in shown.items() if cell.paper}
            charts.append(accuracy_against_size(column, there, theirs))
    return (Block("\n\n".join(TABLES["table1"].notes), charts=tuple(charts)),) if charts else (Block(REPRODUCE),)


def depth(found: Results) -> tuple[Block, ...]:
    """q at the best epoch, the mean over seeds, of every model that learns it."""
    own = [result for result in found.recipes.values() if result.record.settings["model"]["ablation"] == "none"]
    learned = [result for result in (*own, *found.peers) if result.runs and all(run.depth for run in result.runs)]
    if not learned:
        return (Block(REPRODUCE),)
    depths = {result.name if result in own else f"{result.data}, {result.name}": mean_depth(result) for result in learned}
    steps = max(map(len, depths.values()))
    lines = [["", *(step_name(step) for step in range(steps)), "seeds"], ["---"] * (steps + 2)]
    for (name, shares), result in zip(depths.items(), learned, strict=True):
        cells = [f"{share:.3f}" for share in shares] + ["–"] * (steps - len(shares))
        lines.append([name, *cells, str(len(result.runs))])
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    paths = tuple(result.path for result in learned)
    said = "The weights q of the steps at the best epoch, the mean over seeds."
    return (Block("\n\n".join([said, table, *notes(learned)]), paths),
            Block(charts=(depth_bars(depths, paths),)))  # fmt: skip


def mean_depth(result: Result) -> list[float]:
    return [statistics.fmean(of_step) for of_step in zip(*(run.depth or [] for run in result.runs), strict=True)]


def curves(found: Results) -> tuple[Block, ...]:
    """A chart for each recipe, those of one data set together."""
    drawn = [result for result in found.recipes.values() if result.record.curves.get("0", {}).get("loss")]
    blocks = []
    for data, results in by_data(drawn).items():
        ordered = sorted(results, key=order)
        blocks.append(
            Block("\n\n".join([f"### {data}", *notes(results)]), charts=tuple(training_curves(result) for result in ordered))
        )
    return tuple(blocks) or (Block(REPRODUCE),)


def order(result: Result) -> tuple[bool, str, int]:
    """The whole model first, then what is left of it."""
    ablation = str(result.record.settings["model"]["ablation"])
    return ablation != "none", ablation, sample_size(result)


def scaling(scalings: list[Scaling]) -> list[Block]:
    """Each table and its charts."""
    charts: dict[MarkdownTable, list[Chart]] = {}
    for place, one in enumerate(scalings):
        charts.setdefault(one.table, []).append(scaling_curves(one, place))
    return [Block(table.markdown, own[0].sources, tuple(own)) for table, own in charts.items()]
