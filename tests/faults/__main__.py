"""`python -m tests.faults --rounds N`: the fault suite, as a table for docs/reliability.md."""

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.faults.world import Row

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "NUMBA_THREADING_LAYER": "workqueue",
    "CUDA_VISIBLE_DEVICES": "",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="commands drawn of each kind, each with every fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="commands, 'serving' and 'damage'; all if not given")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write a result, after every row")
    given = parser.parse_args()
    os.environ |= ONE_THREAD  # before libraries look: children are forked, so there may be no threads

    from tests.faults.commands import KINDS
    from tests.faults.suite import suite
    from tests.faults.world import make_data

    chosen = given.only or [*KINDS, "serving", "damage"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        data = make_data(Path(folder) / "data")
        for row in suite(data, Path(folder) / "trials", given.rounds, given.seed, chosen):
            rows.append(row)
            said = f"{row.job}, {row.fault}: {row.survived} of {row.injected}, {row.bytes_lost} bytes lost. {row.said}"
            print("\n".join([said, *row.failed]).replace(folder, "…"), file=sys.stderr, flush=True)
            if given.out is not None:
                given.out.write_text(json.dumps(result_of(rows), indent=1) + "\n")
    if given.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        print("| what | fault | injected | survived | bytes lost |\n|---|---|---:|---:|---:|")
        for row in rows:
            print(f"| {row.job} | {row.fault} | {row.injected} | {row.survived} | {row.bytes_lost} |")
    sys.exit(any(row.survived < row.injected or row.bytes_lost for row in rows))


def result_of(rows: "Sequence[Row]") -> dict[str, Any]:
    """What came of it, with the command, the machine and the commit."""
    import torch

    from gatas.experiments.recording import commit, hardware, versions, without_folders

    about = {
        "command": shlex.join(["python", "-m", "tests.faults", *map(without_folders, sys.argv[1:])]),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    kept = ("job", "fault", "injected", "survived", "bytes_lost")
    counts = [{name: getattr(row, name) for name in kept} for row in rows]
    total = {name: sum(row[name] for row in counts) for name in kept[2:]}
    where = {"hardware": hardware(torch.device("cpu")), "versions": versions(), "commit": commit()}
    return {**about, **where, "total": total, "rows": counts}


if __name__ == "__main__":
    main()
