"""`gatas reproduce`: the paper's tables, run and rendered; and pages compared with the files that their figures are from."""

from pathlib import Path

import typer

from gatas.cli.output import stderr, stdout


def reproduce(
    table: str = typer.Argument(
        help="table1, table2, table2-gatne, table3, ppi-raw, reference, or default, our own; or check, of README and docs."
    ),
    seeds: int = typer.Option(
        None, "--seeds", min=1, help="Seeds for each cell, from 0 on; by default as many as the table asks."
    ),
    only: list[str] = typer.Option([], "--only", help="Only recipes with this in their name; may be given more than once."),
    out: Path = typer.Option(Path("results"), "--out", help="Folder of the results, one JSON for each recipe."),
    at_once: int = typer.Option(100, "--at-once", min=1, help="Seeds trained in one program."),
    data_dir: Path = typer.Option(None, "--data-dir", help="Folder that holds the data sets."),
    device: str = typer.Option("auto", "--device", help="cpu, cuda, or auto for what there is."),
    readme: Path = typer.Option(None, "--readme", help="Put the table between its marks in this file."),
    render_only: bool = typer.Option(False, "--render-only", help="Run nothing; render what is there."),
) -> None:
    """Run what stands behind a table of the paper, go on where it stopped, and print the table."""
    from gatas.experiments.extra import check_extra

    check_extra("reproduce")
    if table == "check":
        return check_record(out)
    from gatas.experiments.paper import recipes_of, render, update_readme
    from gatas.experiments.paper import reproduce as run
    from gatas.experiments.tables import TABLES

    recipes_of(table, only)  # what is wrong with the names, before anything runs
    settings = {"at_once": at_once, "data_dir": data_dir, "device": device}
    if not render_only:
        run(table, out, seeds=seeds, only=only, begin=lambda name: stderr.print(f"{name} …"), **settings)
    text = render(TABLES[table], out)
    if readme is not None:
        update_readme(readme, table, text)
    stdout.print(text, soft_wrap=True)


def check_record(results: Path) -> None:
    """Compare every figure of README and docs with its file, and every result with its recipe; exit with 1 if any is off."""
    from gatas.experiments.check import check

    checked = check(Path(), results)
    stdout.print(str(checked), soft_wrap=True, markup=False, highlight=False)
    if checked.problems:
        raise typer.Exit(1)
