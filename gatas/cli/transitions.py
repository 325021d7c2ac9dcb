"""`gatas transitions`: build a store of typed transitions, and look into it."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from gatas.cli import jobs
from gatas.cli.graphs import (
    ColumnOption,
    DataDirOption,
    HeaderOption,
    InverseOption,
    NodeColumnOption,
    NodesOption,
    UndirectedOption,
    is_stored,
    load_graph,
)
from gatas.cli.output import plain_table, print_json, print_table, progress_bar, stderr, stdout
from gatas.cli.verify import verified
from gatas.cli.whole_help import WholeHelp
from gatas.errors import StoreError, TransitionError

if TYPE_CHECKING:
    from gatas.transitions import Row, Transitions
    from gatas.transitions.build import Walks
    from gatas.transitions.cost import Caps
    from gatas.transitions.table import Setting

app = typer.Typer(cls=WholeHelp, no_args_is_help=True, help="Build typed transition probabilities, and look at them.")


@app.command()
def build(
    edges: str = typer.Argument(help="Edge file (.parquet, .csv, .tsv, also .gz), saved graph folder, or data set name."),
    out: Path = typer.Option(..., "--out", help="Folder to write; must not exist."),
    steps: int = typer.Option(3, "--steps", help="C: longest path considered."),
    kind: Literal["walk", "count"] = typer.Option(
        "walk", "--kind", help="walk: the paper's probabilities; count: shortest walks counted."
    ),
    max_candidates: str | None = typer.Option(
        None, "--max-candidates", help="Keep the likeliest per node and step; 64,256: a number for each step."
    ),
    max_degree: int | None = typer.Option(None, "--max-degree", help="Do not walk on through nodes with more edges."),
    revisits: bool = typer.Option(False, "--revisits", help="Let walks meet a node again one step after it was first met."),
    threads: int | None = typer.Option(None, "--threads", help="Threads, of each worker; all cores if not given."),
    device: str | None = typer.Option(None, "--device", help="Compute with torch on this device, such as cuda."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace the folder if it exists."),
    engine: jobs.EngineChoice | None = jobs.EngineOption,
    workers: int | None = jobs.WorkersOption,
    parts: int | None = jobs.PartsOption,
    job: Path | None = jobs.JobOption,
    ray_address: str | None = jobs.RayAddressOption,
    gpus_per_worker: float = jobs.GpusOption,
    nodes: Path | None = NodesOption,
    column: list[str] = ColumnOption,
    node_column: list[str] = NodeColumnOption,
    header: bool = HeaderOption,
    inverse: bool = InverseOption,
    undirected: bool = UndirectedOption,
    data_dir: Path | None = DataDirOption,
    verify: bool = typer.Option(False, "--verify", help="Check the checksums of a saved graph first."),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Compute the transitions of every node and store them."""
    from gatas.files import recover_overwritten
    from gatas.scale.transitions import TransitionsTask
    from gatas.transitions import Transitions
    from gatas.transitions.build import Walks, check_settings

    caps, begun = given_caps(max_candidates), (engine or job) is not None and jobs.is_begun(jobs.job_folder(job, out))
    walks = Walks(steps, kind, caps, max_degree, revisits)
    check_settings(walks, threads)
    chosen = jobs.chosen_engine(engine, workers, parts, job, ray_address, threads, gpus_per_worker)
    if verify and is_stored(edges):
        verified(Path(edges))
    source = (nodes, column, node_column, header, inverse, undirected, data_dir)
    recover_overwritten(out)
    if out.exists() and not overwrite and not begun:  # before the work, not after it; a job knows its own result
        table = built_before(out, edges, source, walks)
        jobs.remove_emptied(jobs.job_folder(job, out))
        stderr.print(f"{out} was built before, by the same command: nothing is left to do", soft_wrap=True)
        report(out, table.num_rows, table.num_entries, table.num_bytes, json)
        return
    if chosen is not None:
        folder = jobs.job_folder(job, out)
        stored = Path(edges) if is_stored(edges) else jobs.kept_graph(load_graph(edges, *source), folder)
        task = TransitionsTask(str(stored.resolve()), steps, kind, caps, max_degree, revisits, device)
        written = jobs.do_job(task, folder, out, chosen, parts, keep=job is not None, overwrite=overwrite)
        report(out, written["rows"], written["entries"], written["bytes"], json)
        return
    graph = load_graph(edges, *source)
    with progress_bar("transitions") as progress:
        settings: Any = {"max_degree": max_degree, "revisits": revisits, "device": device, "progress": progress}
        table = Transitions.build(graph, steps, kind, None, caps, threads, **settings)
    table.save(out, overwrite=overwrite)
    report(out, table.num_rows, table.num_entries, table.num_bytes, json)


def built_before(out: Path, edges: str, source: tuple[Any, ...], walks: "Walks") -> "Transitions":
    """Open the table that this very command has written; whatever else is there is refused."""
    from gatas.graph.saved import id_arrays
    from gatas.transitions import Transitions
    from gatas.transitions.table import listed, opened_for

    refused = StoreError(f"{out} exists already. Choose another folder, or pass --overwrite.")
    try:
        found = Transitions.open(out).setting
        if (found.num_steps, found.kind) != (walks.num_steps, walks.kind):  # known without reading the graph
            raise refused
        graph = load_graph(edges, *source)
        table = opened_for(graph, out, replace(walks, max_candidates=listed(walks.max_candidates)))
    except (StoreError, TransitionError):
        raise refused from None
    ours, theirs = id_arrays(graph.node_ids), id_arrays(found.node_ids)
    if table.targets is not None or ours.keys() != theirs.keys() or any((ours[k] != theirs[k]).any() for k in ours):
        raise refused
    return table


def given_caps(text: str | None) -> "Caps":
    """Read `256`, or `64,256` with a number for each step."""
    if text is None:
        return None
    try:
        caps = [int(part) for part in text.split(",")]
    except ValueError:
        raise TransitionError(
            f"--max-candidates is {text!r}; expected a whole number, or one for each step such as 64,256."
        ) from None
    return caps[0] if len(caps) == 1 else caps


def report(out: Path, rows: int, entries: int, num_bytes: int, json: bool) -> None:
    """Print what a store holds."""
    from gatas.transitions import readable_bytes

    if json:
        print_json({"folder": str(out), "rows": rows, "entries": entries, "bytes": num_bytes})
    else:
        stdout.print(f"{out}: {rows:,} rows, {entries:,} entries, {readable_bytes(num_bytes)}", soft_wrap=True)


@app.command()
def show(
    store: Path = typer.Argument(help="Folder that `gatas transitions build` wrote."),
    node: str = typer.Argument(help="The node's id."),
    top: int = typer.Option(20, "--top", min=0, help="Show so many of the likeliest per step; 0 shows all."),
    verify: bool = typer.Option(False, "--verify", help="Check the checksums of all files first."),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show one node's candidates: neighbour, typed path, step, probability."""
    from gatas.transitions import Transitions

    table = Transitions.open(store, verify=verify)
    row = table.row(index_of(table.setting, node))
    if json:
        print_json(as_json(table.setting, row, top))
    else:
        print_row(table.setting, node, row, top)


def index_of(setting: "Setting", node_id: str) -> int:
    """Return the index of the node with this id."""
    from gatas.graph.ids import as_integer

    if setting.node_ids is not None:
        return int(setting.node_ids.indices([node_id])[0])
    index = as_integer(node_id)
    if index is None or not 0 <= index < setting.num_nodes:
        raise TransitionError(f"no node has the id {node_id!r}; ids are 0 to {setting.num_nodes - 1}.")
    return index


def print_row(setting: "Setting", node: str, row: "Row", top: int) -> None:
    """Print the likeliest candidates of each step."""
    from gatas.transitions.paths import path_name

    table = plain_table("step#", "neighbour", "typed path", "probability#")
    for step in range(setting.num_steps + 1):
        entries = likeliest(row, step, top)
        for k in entries:
            path = path_name(int(row.path[k]), setting.relation_names)
            table.add_row(str(step), str(id_of(setting, int(row.node[k]))), path, f"{row.probability[k]:.4f}")
        hidden = int((row.step == step).sum()) - len(entries)
        if hidden:
            rest = 1 - row.dropped_mass[step] - row.probability[entries].sum()
            table.add_row(str(step), f"… {hidden:,} more", "", f"{rest:.4f}")
        if row.dropped_mass[step] > 0:
            limits = [name for name in ("max_candidates", "max_degree") if getattr(setting, name) is not None]
            table.add_row(str(step), f"dropped by {' and '.join(limits)}", "", f"{row.dropped_mass[step]:.4f}")
    print_table(f"Candidates of {node}", table)


def likeliest(row: "Row", step: int, top: int) -> Any:
    """Return the positions of a step's entries, the likeliest first."""
    here = (row.step == step).nonzero()[0]
    order = here[(-row.probability[here]).argsort(kind="stable")]
    return order[:top] if top else order


def id_of(setting: "Setting", index: int) -> int | str:
    """Return the id that a user knows the node by."""
    return index if setting.node_ids is None else setting.node_ids[index]


def as_json(setting: "Setting", row: "Row", top: int) -> dict[str, Any]:
    """Return the candidates of a node as data, for JSON."""
    from gatas.transitions.paths import path_relations

    entries = [
        {
            "step": step,
            "neighbour": id_of(setting, int(row.node[k])),
            "path": [setting.relation_names[r] for r in path_relations(int(row.path[k]), len(setting.relation_names))],
            "probability": float(row.probability[k]),
        }
        for step in range(setting.num_steps + 1)
        for k in likeliest(row, step, top)
    ]
    not_shown = len(row.node) - len(entries)
    return {"candidates": entries, "not_shown": not_shown, "dropped_mass": row.dropped_mass.tolist()}
