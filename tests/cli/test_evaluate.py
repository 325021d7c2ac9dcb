"""`gatas evaluate RUN --protocol ranking`."""

import json

import numpy as np
import pytest

import gatas
from gatas.tasks.settings import ModelSettings

SMALL: ModelSettings = {
    "link_score": ("pair",),
    "num_steps": 1, "sample_size": 4, "num_heads": 1, "head_size": 4, "neighbour_size": 4, "pair_hidden_size": 8,
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two seeds of a model of 17 types of link, of which the first is the most frequent."""
    folder, generator = tmp_path_factory.mktemp("links"), np.random.default_rng(0)
    rows = [f"n{a},n{b},t{k:02}" for k in range(17) for a, b in generator.integers(40, size=(60 - k, 2)) if a != b]
    (folder / "edges.csv").write_text("source,target,type\n" + "\n".join(rows) + "\n")
    dataset = gatas.read_dataset(folder / "edges.csv", task="link prediction", direction="inverse")
    for seed in (0, 1):
        model = gatas.LinkPredictor(dataset, **SMALL)
        gatas.fit(model, dataset, seed=seed, device="cpu", epochs=1, folder=folder / f"run/seed-{seed}")
    return folder / "run"


def test_ranking_prints_micro_macro_directions_and_the_most_frequent_types(gatas, runs):
    code, out, err = gatas("evaluate", runs / "seed-0", "--protocol", "ranking")
    assert code == 0 and "test data, filtered ranking" in out
    for part in (
        "links",
        "MRR",
        "Hits@1",
        "Hits@3",
        "Hits@10",
        "micro: over links",
        "macro: over 17 types",
        "targets asked for",
    ):
        assert part in out
    assert "t00" in out and sum(f"t{k:02}" in out for k in range(17)) == 15
    assert err == "the 15 most frequent of 17 types, 2 more with --json\n"


def test_ranking_as_json_has_all_types(gatas, runs):
    code, out, _ = gatas("evaluate", runs / "seed-0", "--protocol", "ranking", "--json", "--split", "valid")
    found = json.loads(out)["valid"]
    assert code == 0 and len(found["by_type"]) == 17 and 0 < found["mrr"] < 1
    assert found["count"] == sum(own["count"] for own in found["by_type"].values())
    assert set(found["by_direction"]) == {"source", "target"} and set(found["macro"]) == {*found} & set(found["macro"])


def test_ranking_takes_the_folder_of_several_seeds_and_other_neighbourhoods(gatas, runs):
    code, out, _ = gatas("evaluate", runs, "--protocol", "ranking")
    assert code == 0 and "mean ± standard deviation of 2 seeds" in out and " ± " in out
    one, other = (
        gatas("evaluate", runs / "seed-0", "--protocol", "ranking", "--json", *more)[1] for more in ((), ("--mode", "all"))
    )
    assert one != other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{runs}/seed-0", "--split", "tst"], "has no split 'tst'; it has train, valid, test"),
        (["{folder}"], "holds no finished run"),
    ],
)
def test_what_cannot_be_ranked_is_refused_in_one_line(gatas, runs, tmp_path, arguments, message):
    code, out, err = gatas("evaluate", *(one.format(runs=runs, folder=tmp_path) for one in arguments), "--protocol", "ranking")
    assert code == 1 and out == "" and err.count("\n") == 1 and message in err
