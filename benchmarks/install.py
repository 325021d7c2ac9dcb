"""What does an installation pull in, and how large is it?

    python -m benchmarks.install

Sizes are those of the files that each installed distribution lists, in this environment. Extras that are not installed here
are left out, and so is what an installer caches.
"""

from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.report import Report

EXTRAS = ("pyg", "tune", "serve", "ingest", "experiments", "pykeen", "ray", "mlflow")
SHOWN = 8
"""The largest distributions, which the first table has a row for."""


def required(name: str, extras: tuple[str, ...] = ()) -> dict[str, Distribution]:
    """A distribution and all that it needs, with some extras of its own, by name."""
    found, waiting = dict[str, Distribution](), [(name, extras)]
    seen = set[tuple[str, tuple[str, ...]]]()
    while waiting:
        asked, wanted = waiting.pop()
        key = canonicalize_name(asked)
        if (key, wanted) in seen:
            continue
        seen.add((key, wanted))
        found[key] = distribution(asked)
        for line in found[key].requires or []:
            need = Requirement(line)
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in ("", *wanted)):
                waiting.append((need.name, tuple(sorted(need.extras))))
    return found


def megabytes(one: Distribution) -> float:
    """What the files of a distribution take."""
    paths = [Path(str(one.locate_file(file))) for file in one.files or []]
    return sum(path.stat().st_size for path in paths if path.exists()) / 1e6


def main() -> None:
    report = Report("install", "What does an installation pull in, and how large is it?", ("torch", "numba", "pyarrow"))
    core = required("gatas")
    sizes = sorted(((megabytes(one), name) for name, one in core.items()), reverse=True)
    rows = [(f"`{name}`", f"{size:.0f}") for size, name in sizes[:SHOWN]]
    rows.append((f"{len(sizes) - SHOWN} others", f"{sum(size for size, _ in sizes[SHOWN:]):.0f}"))
    report.table(("distribution", "MB"), [*rows, ("all", f"{sum(size for size, _ in sizes):.0f}")])
    added = []
    for extra in EXTRAS:
        try:
            more = {name: one for name, one in required("gatas", (extra,)).items() if name not in core}
        except PackageNotFoundError:
            continue
        added.append((f"`{extra}`", len(more), f"{sum(map(megabytes, more.values())):.0f}"))
    report.table(("extra", "distributions more than without", "MB"), added)
    report.write()


if __name__ == "__main__":
    main()
