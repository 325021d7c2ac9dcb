"""Imports point one way, and heavy things stay in their rooms (STYLE: folders are the data flow)."""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import gatas

ROOT = Path(gatas.__file__).parent
LAYERS = ("errors", "progress", "files", "ops", "graph", "datasets", "transitions", "sampling", "nn", "tasks", "training",
          "inference", "tuning", "experiments", "serving", "scale", "cli", "__main__")  # fmt: skip
BESIDE = {"tuning", "experiments", "serving", "scale"}  # one storey: none of them sees another
TYPED_BY_PYG = ("gatas.graph.pyg", "gatas.datasets.pyg")  # for type checkers alone
ALLOWED = {
    "numba": ("gatas.ops", "gatas.transitions.kernels"),
    "triton": ("gatas.ops",),
    "ray": ("gatas.scale",),
    "torch.distributed": ("gatas.scale",),
    "optuna": ("gatas.tuning",),
    "torch_geometric": ("gatas.experiments", *TYPED_BY_PYG),
    "rich": ("gatas.cli", "gatas.training.progress", "gatas.tuning.display"),  # fit shows how it gets on, wherever it is called
}


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
        yield name, ast.parse(path.read_text())


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(name):
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else None


def test_imports_point_one_way():
    for module, tree in modules():
        here = layer(module)
        for name in imported(tree):
            there = layer(name) if name.startswith("gatas.") else None
            if here is None or there not in LAYERS or there == here:
                continue
            assert LAYERS.index(there) < LAYERS.index(here), f"{module} imports {name}"
            assert not {here, there} <= BESIDE, f"{module} imports {name}"


def test_nothing_below_the_command_line_imports_through_the_front_door():
    """`from gatas import X` inside the package would hide which layer X is of."""
    for module, tree in modules():
        names = {name for name in imported(tree) if name == "gatas" or (name.count(".") == 1 and name.startswith("gatas."))}
        allowed = {f"gatas.{layer}" for layer in LAYERS} | {"gatas.__version__"}
        assert names <= allowed or module == "gatas", f"{module} imports {names - allowed}"


def test_every_folder_is_a_known_storey():
    assert {layer(module) for module, _ in modules()} - {None} <= set(LAYERS)


def test_heavy_libraries_stay_in_their_rooms():
    for module, tree in modules():
        for name in imported(tree):
            for library, rooms in ALLOWED.items():
                if name == library or name.startswith(f"{library}."):
                    assert module.startswith(rooms), f"{module} imports {library}"


def durable_calls(tree):
    """Calls that rename or sync. `replace` with one argument is a file's: that of text has two, of a record names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, owner = node.func.attr, node.func.value
            of_module = isinstance(owner, ast.Name) and owner.id in ("os", "shutil") and name in ("replace", "renames", "move")
            of_path = name == "replace" and len(node.args) == 1 and not node.keywords
            if name in ("fsync", "fdatasync", "rename") or of_module or of_path:
                yield name


def test_only_files_renames_syncs_locks_and_computes_checksums():
    for module, tree in modules():
        if layer(module) != "files":
            assert {"fcntl", "hashlib"}.isdisjoint(name.split(".")[0] for name in imported(tree)), module
            assert not list(durable_calls(tree)), f"{module}: {list(durable_calls(tree))}"


def test_files_stand_on_errors_alone():
    for module, tree in modules():
        if layer(module) == "files":
            assert all(name.startswith(("gatas.files.", "gatas.errors.")) for name in imported(tree) if "gatas" in name), module


def test_operators_stand_on_errors_alone():
    for module, tree in modules():
        if layer(module) == "ops":
            assert {layer(name) for name in imported(tree) if name.startswith("gatas.")} <= {"errors", "ops"}, module


def test_what_is_private_to_torch_is_touched_in_one_place():
    for module, tree in modules():
        private = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch"
            if node.attr.startswith("_")
        }
        assert not private or module == "gatas.ops.torch_private", f"{module} uses {private} of torch"


def type_names(tree):
    """Classes and aliases of types that a module defines; constants are in capitals."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        yield from (one.id for one in targets if isinstance(one, ast.Name) and one.id[0].isupper() and not one.id.isupper())


def test_a_type_name_is_defined_once():
    defined = defaultdict(list)
    for module, tree in modules():
        for name in type_names(tree):
            defined[name].append(module)
    repeated = {name: places for name, places in defined.items() if len(places) > 1}
    assert not repeated, repeated


def test_only_the_command_line_prints():
    for module, tree in modules():
        calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        assert "print" not in calls or module.startswith("gatas.cli"), f"{module} prints"


def test_importing_gatas_loads_nothing_heavy():
    code = "import sys, gatas; print(sorted({'torch', 'numba', 'pyarrow', 'scipy', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_every_public_name_can_be_had():
    assert all(getattr(gatas, name) is not None for name in gatas.__all__)
    assert sorted(gatas.__all__) == gatas.__all__
