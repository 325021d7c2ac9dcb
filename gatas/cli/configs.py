"""A config named on the command line, a recipe or a YAML file; and `gatas config`, which shows them."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gatas.cli.output import stdout
from gatas.cli.whole_help import WholeHelp

if TYPE_CHECKING:
    from gatas.training import Config

NamedArgument = typer.Argument(metavar="RECIPE|CONFIG", help="A recipe (`gatas config list`), or a YAML file.")
SetOption = typer.Option([], "--set", metavar="SECTION.KEY=VALUE", help="Change a setting, as training.epochs=200.")

app = typer.Typer(cls=WholeHelp, no_args_is_help=True, help="Look at recipes and at settings.")


def named_config(named: str, settings: list[str]) -> "Config":
    """Return the config that was named, with the settings that were changed."""
    from gatas.experiments.recipes import recipe  # torch: seconds that other commands need not wait
    from gatas.training.config import load_config, parsed_setting

    path = Path(named)
    config = load_config(path) if path.suffix in (".yaml", ".yml") or path.is_file() else recipe(named)
    return config.with_settings(dict(parsed_setting(setting) for setting in settings))


@app.command()
def show(named: str = NamedArgument, settings: list[str] = SetOption) -> None:
    """Print all settings as YAML, each with what it means; a file of these can be trained."""
    typer.echo(named_config(named, settings).to_yaml(), nl=False)


@app.command("list")
def list_recipes() -> None:
    """List the recipes, those of one data set on a line."""
    from gatas.experiments.recipes import names, recipe

    of_data: dict[str, list[str]] = {}
    for name in names():
        of_data.setdefault(recipe(name).data.name, []).append(name)
    for recipes in of_data.values():
        stdout.print("  ".join(recipes), soft_wrap=True)
