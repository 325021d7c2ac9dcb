"""What is published: what the wheel and the source distribution hold, and that the wheel works outside the tree."""

import json
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import zipfile
from email import message_from_bytes

import pytest
import yaml

import gatas
from tests.installed import ROOT, Installed, build

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MISSING = {
    "serve": ("serve", "runs/mine"),
    "tune": ("tune", "mine.yaml", "--trials", "1"),
    "ingest": ("ingest", "edges.csv", "--out", "store"),
    "experiments": ("compare", "--data", "mine.yaml", "--models", "mlp"),
    "pyg": ("train", "cora"),
    "ray": ("predict", "runs/mine", "--engine", "ray", "--out", "classes.csv"),
    "mlflow": ("train", "mine.yaml", "--mlflow"),
}
ONE_AFTER_ANOTHER = """
import json, sys
from gatas.cli import main
for words in json.loads(sys.argv.pop()):
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as end:
        print(end.code)
"""
FROM_PYG = """
import gatas
data = gatas.to_pyg(gatas.Graph.from_edges([0, 1], [1, 2]))
assert gatas.from_pyg(data).num_edges == 2
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("built"))


def files_below_gatas():
    files = [path for path in ROOT.joinpath("gatas").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(ROOT)) for path in files}


def test_the_wheel_holds_the_package_with_its_page_and_nothing_else(built):
    with zipfile.ZipFile(built[1]) as wheel:
        names = set(wheel.namelist())
        assert wheel.read("gatas/serving/page/explorer.js") == ROOT.joinpath("gatas/serving/page/explorer.js").read_bytes()
    info = f"gatas-{gatas.__version__}.dist-info/"
    assert {name for name in names if not name.startswith(info)} == files_below_gatas()
    assert {f"{info}licenses/LICENSE", f"{info}licenses/gatas/serving/page/LICENSES.txt"} <= names


def test_the_source_distribution_has_what_the_wheel_is_built_from_and_no_tests_or_results(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert files_below_gatas() | {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "setup.py"} <= names
    others = {name.split("/")[0] for name in names if "/" in name}
    assert others == {"gatas", "gatas.egg-info"}


def test_the_version_is_written_in_one_place(built):
    with zipfile.ZipFile(built[1]) as wheel:
        about = message_from_bytes(wheel.read(f"gatas-{gatas.__version__}.dist-info/METADATA"))
    assert about["Version"] == gatas.__version__
    assert "version" in PROJECT["dynamic"] and "version" not in yaml.safe_load(ROOT.joinpath("CITATION.cff").read_text())


def test_the_description_for_pypi_leads_to_files_of_the_repository(built):
    with zipfile.ZipFile(built[1]) as wheel:
        text = wheel.read(f"gatas-{gatas.__version__}.dist-info/METADATA").decode()
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert all(link.startswith(("https://", "#")) for link in links)
    hosts = r"github\.com/gatas/gatas/blob|raw\.githubusercontent\.com/gatas/gatas"
    place = re.compile(rf"https://(?:{hosts})/v{re.escape(gatas.__version__)}/([^#]+)")
    paths = [found[1] for link in links if (found := place.match(link))]
    assert len(paths) > 10 and all(ROOT.joinpath(path).exists() for path in paths)


def test_images_and_links_with_a_place_become_absolute():
    setup = runpy.run_path(str(ROOT / "setup.py"))
    text = "![map](docs/map.png) [nodes](docs/nodes.md#labels) [here](#install) [paper](https://arxiv.org/abs/2006.04637)"
    assert setup["for_pypi"](text, "v9") == (
        "![map](https://raw.githubusercontent.com/gatas/gatas/v9/docs/map.png) "
        "[nodes](https://github.com/gatas/gatas/blob/v9/docs/nodes.md#labels) [here](#install) [paper](https://arxiv.org/abs/2006.04637)"
    )


@pytest.mark.slow
def test_the_wheel_works_outside_the_tree_with_the_core_alone_and_with_each_extra(built, tmp_path):
    installed = Installed.from_wheel(built[1], tmp_path)
    use_the_core(installed)
    refuse_what_needs_an_extra(installed)
    serve_the_page(installed)
    use_other_extras(installed)


def use_the_core(installed):
    """From tables to answers, with nothing of any extra, and of the wheel rather than of the tree."""
    where = installed.run("-c", "import gatas; print(gatas.__file__)").stdout
    assert where.strip() == str(installed.packages / "gatas" / "__init__.py")
    assert installed.gatas("--version").strip() == gatas.__version__
    write_tables(installed.work)
    installed.gatas("init", "edges.csv", "--nodes", "nodes.csv", "--out", "mine.yaml", "--yes")
    installed.gatas("train", "mine.yaml", "--set", "training.epochs=2")
    assert {"weights.safetensors", "curve.png", "report.html"} <= {
        path.name for path in (installed.work / "runs/mine").iterdir()
    }
    answers = json.loads(installed.gatas("predict", "runs/mine", "n3", "--json"))
    assert "n3" in json.dumps(answers)


def write_tables(folder):
    """A ring of 60 nodes in two halves, one class each."""
    edges = [f"n{node},n{(node + step) % 60}" for node in range(60) for step in (1, 2)]
    nodes = [f"n{node},{'left' if node < 30 else 'right'},{node % 7}" for node in range(60)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    (folder / "nodes.csv").write_text("\n".join(["id,label,size", *nodes]) + "\n")


def refuse_what_needs_an_extra(installed):
    done = installed.run("-c", ONE_AFTER_ANOTHER, json.dumps(list(MISSING.values())))
    assert done.stdout.split() == ["1"] * len(MISSING), done.stdout + done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(MISSING), done.stderr
    for extra, line in zip(MISSING, lines, strict=True):
        assert line.startswith("error: ") and line.endswith(f"pip install 'gatas[{extra}]'"), line


def serve_the_page(installed):
    command = [sys.executable, str(installed.packages / "bin" / "gatas"), "serve", "runs/mine", "--port", "0"]
    given = {"cwd": installed.work, "env": installed.environment("serve"), "text": True}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **given) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[2].rstrip(";")
            for name in ("index.html", "explorer.js", "explorer.css", "icon.svg"):
                page = fetched(f"{address}/{'' if name == 'index.html' else name}")
                assert page == (ROOT / "gatas/serving/page" / name).read_bytes(), name
            assert json.loads(fetched(f"{address}/openapi.json"))["info"]["version"] == gatas.__version__
        finally:
            server.terminate()
        assert server.wait(60) == 0


def fetched(address):
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(address, timeout=60) as response:
        return response.read()


def use_other_extras(installed):
    found = json.loads(installed.gatas("neighbours", "runs/mine", "n3", "--top", "2", "--json", extras=("serve",)))
    assert found
    installed.gatas("ingest", "edges.csv", "--out", "store", extras=("ingest",))
    installed.gatas("tune", "mine.yaml", "--trials", "1", "--set", "training.epochs=1", extras=("tune",))
    installed.run("-c", FROM_PYG, extras=("pyg",))
    installed.gatas(
        "compare", "--data", "mine.yaml", "--models", "mlp", "--seeds", "1", "--epochs", "1", "--out", "results",
        extras=("experiments",),
    )  # fmt: skip
