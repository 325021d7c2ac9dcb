"""`python -m tests.faults --rounds N`: the fault suite, as a table for docs/reliability.md."""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

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
    if given.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        print("| what | fault | injected | survived | bytes lost |\n|---|---|---:|---:|---:|")
        for row in rows:
            print(f"| {row.job} | {row.fault} | {row.injected} | {row.survived} | {row.bytes_lost} |")
    sys.exit(any(row.survived < row.injected or row.bytes_lost for row in rows))


if __name__ == "__main__":
    main()
