"""The wheel, built and installed outside the tree without a network, and commands that see what pip would have installed.

What the wheel requires is taken from the environment of the tests. All that pip would not install for the extras in question
cannot be imported: a finder hides it, in the process of the command alone.
"""

import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LEFT_OUT = (".*", "__pycache__", "*.egg-info", "node_modules", "build", "dist", "demo", "showcase", "runs", "site")
HIDING = """
import os, sys
from importlib.machinery import PathFinder

HIDDEN = set(os.environ["HIDDEN_MODULES"].split())

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
"""


def build(folder: Path) -> tuple[Path, Path]:
    """Build the source distribution of a copy of the tree, and the wheel from it, as `python -m build` does."""
    tree = folder / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_OUT))
    source = _hook("build_sdist", tree, folder)
    with tarfile.open(source) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return source, _hook("build_wheel", unpacked, folder)


def _hook(name: str, tree: Path, folder: Path) -> Path:
    code = f"from setuptools import build_meta; print(build_meta.{name}({str(folder)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, check=True)
    return folder / done.stdout.splitlines()[-1]


@dataclass(frozen=True)
class Installed:
    """A folder with the wheel in it, and one that is no part of the repository, in which commands run."""

    packages: Path
    work: Path

    @classmethod
    def from_wheel(cls, wheel: Path, folder: Path) -> "Installed":
        """Install without what the wheel requires, and take along the kernels that are compiled already."""
        packages, hook = folder / "packages", folder / "hook"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
        subprocess.run([*pip, "--target", str(packages), str(wheel)], check=True)
        for path in ROOT.joinpath("gatas").rglob("*.py"):
            os.utime(packages / path.relative_to(ROOT), ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
        for path in ROOT.joinpath("gatas").rglob("__pycache__/*.nb[ic]"):  # Numba's; valid for sources of this time and size
            place = packages / path.relative_to(ROOT)
            place.parent.mkdir(exist_ok=True)
            shutil.copy(path, place)
        hook.mkdir()
        (hook / "sitecustomize.py").write_text(HIDING)
        (folder / "work").mkdir()
        return cls(packages, folder / "work")

    def environment(self, *extras: str) -> dict[str, str]:
        """Return the environment of a process in which the core and these extras are installed."""
        needed = self.needed(*extras)
        hidden = [name for name, owners in packages_distributions().items() if not needed & {*map(canonicalize_name, owners)}]
        left = {name: value for name, value in os.environ.items() if not name.startswith(("GATAS_", "TRITON_", "PYTEST"))}
        return left | {
            "PYTHONPATH": f"{self.packages.parent / 'hook'}:{self.packages}",
            "HIDDEN_MODULES": " ".join(hidden),
            "XDG_CACHE_HOME": str(self.work / "cache"),
            "OMP_NUM_THREADS": "1",
        }

    def needed(self, *extras: str) -> set[str]:
        """Return the names of all packages that pip would install, gatas included."""
        seen: set[tuple[str, frozenset[str]]] = set()
        waiting = [("gatas", frozenset(extras))]
        while waiting:
            name, wanted = here = waiting.pop()
            if here in seen:
                continue
            seen.add(here)
            for requirement in map(Requirement, self._distribution(name).requires or ()):
                marker = requirement.marker
                applies = marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *wanted))
                if applies and _is_here(requirement.name):
                    waiting.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
        return {name for name, _ in seen}

    def _distribution(self, name: str) -> Distribution:
        return next(iter(distributions(path=[str(self.packages)]))) if name == "gatas" else distribution(name)

    def gatas(self, *words: object, extras: tuple[str, ...] = ()) -> str:
        """Run the installed command, and return what it printed; it must end with 0."""
        return self.run(self.packages / "bin" / "gatas", *words, extras=extras).stdout

    def run(self, *words: object, extras: tuple[str, ...] = (), code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a program by the environment's interpreter, and check its exit code."""
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(command, cwd=self.work, env=self.environment(*extras), capture_output=True, text=True)
        assert done.returncode == code, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done


def _is_here(name: str) -> bool:
    try:
        return distribution(name) is not None
    except PackageNotFoundError:
        return False
