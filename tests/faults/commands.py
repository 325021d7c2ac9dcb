"""Commands drawn from the whole command line: options as users combine them, from a seed.

Every option of a drawn command is in its table, with what may be given for it, or with the reason why it is left out:
`test_faults.py` compares the tables with the command line. A draw that is refused in one line is drawn again.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.faults.world import Job


@dataclass(frozen=True)
class LeftOut:
    """An option that is not drawn, and why."""

    reason: str


Choices = tuple[str, ...] | LeftOut
"""What may stand for an option, each as likely as another; nothing where it is empty."""

RAY = LeftOut("takes long to start: tests/scale")
GPU = LeftOut("there may be none")
NEW = LeftOut("answers at once, over another table: tests/cli")
LINKS = LeftOut("of a model of links; answers at once")
FLAG = "", "--json"
IN_PARTS: dict[str, Choices] = {
    "engine": ("", "--engine serial", "--engine serial", "--engine pool"),
    "workers": ("", "--workers 1", "--workers 2", "--workers 3"),
    "parts": ("", *(f"--parts {number}" for number in range(1, 13))),
    "job": ("", "--job {disk}/job"),
    "ray_address": RAY,
    "gpus_per_worker": GPU,
}
ONLY_WITH = {"workers": "--engine pool", "parts": "--engine", "job": "--engine"}
"""Options that are refused without another."""


@dataclass(frozen=True)
class Kind:
    """A command that is drawn from; `plain` is one of it, in parts where it can be."""

    name: str
    words: str
    outs: tuple[str, ...]
    choices: dict[str, Choices]
    plain: str
    state: str = ""  # where it keeps what it goes on from, if not in the folder of a job
    in_parts: bool = False
    once: bool = False  # it refuses to write what is there, also what it wrote itself
    prompt: bool = True

    @property
    def plain_job(self) -> Job:
        state = "job" if self.in_parts else self.state
        return Job(self.name, f"{self.words} {self.plain}", self.outs[0], state, self.once, self.prompt)

    def drawn(self, chance: random.Random) -> Job:
        """Draw a command."""
        out, given = chance.choice(self.outs), list[str]()
        for name, choices in self.choices.items():
            if isinstance(choices, LeftOut):
                continue
            chosen = chance.choice(choices)
            if ONLY_WITH.get(name, "") in " ".join(given):
                given.append(chosen)
        command = " ".join([self.words, *filter(None, given)])
        state = self.state
        if "--engine" in command:
            state = "job" if "--job" in command else f".{out}.job"
        return Job(self.name, command, out, state, self.once, self.prompt)

    def draws(self, chance: random.Random) -> Iterator[Job]:
        while True:
            yield self.drawn(chance)


INGEST = Kind(
    "ingest",
    "ingest",
    ("store",),
    {
        "edges": ("{data}/files/edges", "{data}/edges.csv"),
        "nodes": ("", "--nodes {data}/files/nodes"),
        "out": ("--out {out}",),
        "memory": ("--memory 400MB", "--memory 600MB"),
        "threads": ("", "--threads 1", "--threads 2"),
        "settings": ("", "--set direction=undirected", "--set direction=directed --set weight=null"),
        "json": FLAG,
    },
    "{data}/files/edges --nodes {data}/files/nodes --out {out} --memory 400MB --threads 1",
    ".store.ingest",
)
BUILD = Kind(
    "transitions",
    "transitions build",
    ("table",),
    {
        "edges": ("{data}/graph", "{data}/edges.csv"),
        "out": ("--out {out}",),
        "steps": ("--steps 1", "--steps 2", "--steps 2"),
        "kind": ("", "--kind walk", "--kind count"),
        "max_candidates": ("", "--max-candidates 32", "--max-candidates 8,32"),
        "max_degree": ("", "--max-degree 60"),
        "revisits": ("", "--revisits"),
        "threads": ("", "--threads 1", "--threads 2"),
        "device": ("", "", "--device cpu"),
        "overwrite": ("", "--overwrite"),
        **IN_PARTS,
        "nodes": ("", "", "", "--nodes {data}/nodes.csv"),
        "column": ("", "", "--column source=source --column type=type"),
        "node_column": LeftOut("as --column"),
        "header": ("", "", "--header"),
        "inverse": ("", "", "--inverse"),
        "undirected": ("", "", "", "--undirected"),
        "data_dir": LeftOut("names no file here"),
        "verify": ("", "--verify"),
        "json": FLAG,
    },
    "{data}/graph --out {out} --steps 2 --max-candidates 32 --threads 1 --engine serial --job {disk}/job --parts 6",
    in_parts=True,
)
TRAIN = Kind(
    "training",
    "train",
    ("run",),
    {
        "named": ("{data}/config.yaml",),
        "data_dir": LeftOut("names no file here"),
        "seeds": ("", "--seeds 1", "--seeds 2"),
        "settings": ("", "--set training.batch_size=30", "--set model.num_steps=1 --set training.epochs=3"),
        "out": ("--out {out}",),
        "device": ("--device cpu", "--device auto"),
        "seed": ("", "--seed 3"),
        "mlflow": LeftOut("writes to a tracker: tests/training"),
        "mlflow_experiment": LeftOut("as --mlflow"),
        "timeout": ("", "--timeout 60"),
        "max_seconds": LeftOut("what is learned depends on how fast the machine is: tests/training"),
        "report": ("", "--no-report"),
        "json": FLAG,
    },
    "{data}/config.yaml --out {out} --device cpu",
    "run/checkpoints",
    prompt=False,
)
EMBED = Kind(
    "embedding",
    "embed",
    ("all.parquet", "all.npy"),
    {
        "run": ("{data}/run",),
        "out": ("--out {out}",),
        "map_file": LeftOut("a picture, drawn at the end"),
        "map_method": LeftOut("as --map"),
        "nodes": ("", "", "", "--nodes {data}/nodes.csv"),
        "new_nodes": NEW,
        "new_features": NEW,
        "new_edges": NEW,
        "new_embeddings": NEW,
        "batch_size": ("", "--batch-size 16", "--batch-size 64", "--batch-size 100"),
        "device": ("", "--device cpu", "--device auto"),
        **IN_PARTS,
        "verify": ("", "--verify"),
        "json": FLAG,
    },
    "{data}/run --out {out} --batch-size 64 --device cpu --engine serial --job {disk}/job --parts 6",
    in_parts=True,
)
PREDICT = Kind(
    "prediction",
    "predict",
    ("all.parquet", "all.csv", "all.json"),
    {
        "run": ("{data}/run",),
        "ids": ("", "", "", "n001 n002"),
        "out": ("--out {out}",),
        "nodes": ("", "", "", "--nodes {data}/nodes.csv"),
        "pairs": LINKS,
        "source": LINKS,
        "sources": LINKS,
        "target": LINKS,
        "edge_type": LINKS,
        "top": LINKS,
        "known": LINKS,
        "draws": ("", "", "--draws 2"),
        "new_nodes": NEW,
        "new_features": NEW,
        "new_edges": NEW,
        "new_embeddings": NEW,
        "device": ("", "--device cpu", "--device auto"),
        **IN_PARTS,
        "verify": ("", "--verify"),
        "json": FLAG,
    },
    "{data}/run --out {out} --device cpu --engine serial --job {disk}/job --parts 6",
    in_parts=True,
)
GENERATE = Kind(
    "generating",
    "generate",
    ("made",),
    {
        "out": ("{out}",),
        "nodes": ("--nodes 600", "--nodes 50"),
        "edges": ("--edges 4000", "--edges 500"),
        "settings": ("", "--set features=3", "--set text_ids=true"),
        "seed": ("", "--seed 2"),
        "part_rows": ("", "--part-rows 300"),
        "threads": ("", "--threads 1", "--threads 2"),
        "json": FLAG,
    },
    "{out} --nodes 600 --edges 4000 --threads 1",
    once=True,
)
COMPARE = Kind(
    "comparison",
    "compare",
    ("found",),
    {
        "data": ("--data {data}/config.yaml",),
        "models": ("--models mlp,label-propagation", "--models label-propagation,gcn", "--models gatas,mlp"),
        "seeds": ("--seeds 1", "--seeds 2"),
        "trials": ("", "--trials 2"),
        "splits": LeftOut("a store has one"),
        "at_once": ("--at-once 1",),  # seeds of one program go together, so that sessions depend on where it was ended
        "protocol": LINKS,
        "epochs": ("--epochs 2", "--epochs 3"),
        "max_seconds": LeftOut("what is learned depends on how fast the machine is"),
        "out": ("--out {out}",),
        "data_dir": LeftOut("names no file here"),
        "device": ("--device cpu", "--device auto"),
    },
    "--data {data}/config.yaml --models mlp,label-propagation --seeds 2 --at-once 1 --epochs 2 --out {out} --device cpu",
)
KINDS = {kind.name: kind for kind in (INGEST, BUILD, TRAIN, EMBED, PREDICT, GENERATE, COMPARE)}
NOT_DRAWN = {
    "demo": "trains as `train` does",
    "reproduce": "trains as `train` does and writes as `compare` does, for hours",
    "tune": "takes long: plots, and a training after the trials; tests/tuning",
    "serve": "is killed on its own: `served`",
    "jobs": "goes on with what the others began: tests/cli",
    "init": "asks",
    "inspect": "writes nothing",
    "evaluate": "writes nothing",
    "neighbours": "writes nothing",
    "explain": "writes a picture at once",
    "report": "writes a page at once",
    "export": "writes a program at once: tests/inference",
    "verify": "writes nothing",
    "config": "writes nothing",
}
"""Commands that are not drawn, and why."""
