"""The folder of a finished run, and the model back from it."""

import csv
import json
import shutil
from dataclasses import replace
from io import BytesIO

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from pytest import approx

import gatas
from gatas.datasets.encoding import Encoding
from gatas.errors import TrainingError
from gatas.files import checksum_of_json
from gatas.graph import Graph
from gatas.graph.storage import store_fingerprint
from gatas.inference import fit, fit_many
from gatas.training import Config, load_config
from gatas.training.evaluation import evaluate_run
from gatas.training.plots import curve_plot, depth_plot
from tests.tasks.toys import SMALL, camps, classifier, labelled_graphs, likes, predictor

FILES = {
    "config.yaml", "weights.safetensors", "metrics.json", "history.jsonl", "curve.png", "depth.png", "ids.parquet",
    "about.json", "checksums.json", "classes.csv", "confusion.csv", "confusion.png", "reliability.png",
}  # fmt: skip


def named_camps():
    dataset = camps()
    ids = [f"node {number}" for number in range(dataset.graph.num_nodes)]
    graph = Graph.from_edges(dataset.graph.source, dataset.graph.neighbour, num_nodes=30, node_ids=ids)
    return replace(dataset, graph=graph, note="a toy")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "deep" / "down"
    dataset = named_camps()
    run = fit(classifier(dataset), dataset, seed=3, folder=folder, epochs=6, batch_size=5, learning_rate=0.02, device="cpu")
    return folder, run


def test_a_run_with_a_folder_leaves_all_of_itself_there(saved):
    folder, run = saved
    assert {path.name for path in folder.iterdir() if path.is_file() and path.name != ".lock"} == FILES
    assert load_config(folder / "config.yaml") == run.config
    assert json.loads(folder.joinpath("metrics.json").read_text()) == run.metrics
    assert [json.loads(line) for line in folder.joinpath("history.jsonl").read_text().splitlines()] == run.history
    about = json.loads(folder.joinpath("about.json").read_text())
    assert about["seed"] == 3 and about["names"] == ["even", "odd"] and about["note"] == "a toy"
    assert about["gatas"] == gatas.__version__


def test_ids_come_back_out(saved):
    table = pq.read_table(saved[0] / "ids.parquet").to_pydict()
    assert table == {"node": list(range(30)), "id": [f"node {number}" for number in range(30)]}


def test_a_run_without_a_folder_can_be_saved_to_one(tmp_path, saved):
    _, run = saved
    run.save(tmp_path / "elsewhere")
    assert {path.name for path in (tmp_path / "elsewhere").iterdir()} == {*FILES, "data"}
    assert (tmp_path / "elsewhere" / "weights.safetensors").read_bytes() == saved[0].joinpath(
        "weights.safetensors"
    ).read_bytes()


def answers(model, dataset):
    nodes = torch.arange(dataset.graph.num_nodes)
    with torch.no_grad():
        return model.eval().represent(nodes, draw=torch.tensor(-1))


@pytest.mark.parametrize(
    ("make", "dataset", "settings"),
    [
        (classifier, camps(), {}),
        (classifier, labelled_graphs(), {"hidden_sizes": (4, 3)}),
        (predictor, likes(), {}),
        (classifier, camps(), {"ablation": "base"}),
        (classifier, camps(), {"path_attention": "mlp", "transition_kind": "count", "max_candidates": 3}),
    ],
)
def test_a_loaded_model_gives_the_same_answers(tmp_path, make, dataset, settings):
    run = fit(make(dataset, **settings), dataset, epochs=2, batch_size=5, device="cpu")
    run.save(tmp_path)
    loaded = gatas.load(tmp_path).model
    assert type(loaded) is type(run.model) and loaded.config == run.model.config and not loaded.training
    assert torch.equal(answers(loaded, dataset), answers(run.model, dataset))
    assert all(torch.equal(tensor, run.model.state_dict()[name]) for name, tensor in loaded.state_dict().items())


def test_a_loaded_model_can_learn_on(saved):
    folder, run = saved
    dataset = named_camps()
    again = fit(gatas.load(folder).model, dataset, warm_start=True, epochs=3, batch_size=5, device="cpu")
    assert again.history[0]["loss"] < run.history[0]["loss"]


def test_data_that_gatas_knows_comes_from_the_folder_too(tmp_path):
    dataset = gatas.load_dataset("kinship")
    run = fit(predictor(dataset), dataset, epochs=1, batch_size=2000, device="cpu")
    run.save(tmp_path)
    assert torch.equal(answers(gatas.load(tmp_path).model, dataset), answers(run.model, dataset))


def test_another_graph_in_its_place_is_refused(tmp_path, saved):
    saved[1].save(tmp_path / "run")
    camps(name="others", seed=4).save(tmp_path / "run/data", overwrite=True)
    with pytest.raises(TrainingError, match=r"was trained on other data: fingerprint \w{12}, but its folder data has \w{12}"):
        gatas.load(tmp_path / "run")


def test_data_that_is_missing_is_named(tmp_path, saved):
    saved[1].save(tmp_path / "run")
    shutil.rmtree(tmp_path / "run/data")
    with pytest.raises(TrainingError, match=r"the data of .* cannot be read: .*data is not a folder"):
        gatas.load(tmp_path / "run")


def test_weights_that_do_not_fit_are_refused(tmp_path, saved):
    saved[1].save(tmp_path)
    text = (tmp_path / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(text.replace("num_heads: 2", "num_heads: 3"))
    with pytest.raises(TrainingError, match=r"the weights in .* do not fit its config\.yaml and data"):
        gatas.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("weights.safetensors", b"\0" * 50),
        ("about.json", b"{"),
        ("about.json", b'{"format": 2}'),
        ("about.json", b"3"),
        ("about.json", None),
    ],
)
def test_a_folder_without_a_finished_run_is_refused(tmp_path, saved, name, content):
    saved[1].save(tmp_path)
    (tmp_path / name).unlink() if content is None else (tmp_path / name).write_bytes(content)
    with pytest.raises(TrainingError, match=r"holds no finished run that can be read \(.*\)\. Give the folder of one\."):
        gatas.load(tmp_path)


def test_several_seeds_have_a_folder_each_and_a_summary_above(tmp_path):
    config = Config.model_validate({"model": SMALL, "training": {"epochs": 2, "batch_size": 5}})
    runs = fit_many(config, [2, 5], dataset=camps(), folder=tmp_path, device="cpu")
    summary = json.loads((tmp_path / "metrics.json").read_text())
    assert summary["seeds"] == [2, 5]
    assert summary["test"]["accuracy"] == approx({"mean": runs.mean("test.accuracy"), "std": runs.std("test.accuracy")})
    for run in runs:
        own = tmp_path / f"seed-{run.seed}"
        assert {path.name for path in own.iterdir()} == {*FILES, "data"}
        assert json.loads((own / "metrics.json").read_text()) == run.metrics
        assert torch.equal(answers(gatas.load(own).model, camps()), answers(run.model, camps()))


def test_what_could_not_be_measured_is_null(tmp_path, saved):
    _, run = saved
    run.metrics["test"]["f1"] = float("nan")
    try:
        run.save(tmp_path)
    finally:
        del run.metrics["test"]["f1"]
    assert json.loads((tmp_path / "metrics.json").read_text(), parse_constant=pytest.fail)["test"]["f1"] is None


@pytest.mark.parametrize("name", ["curve.png", "depth.png"])
def test_pictures_can_be_looked_at(saved, name):
    picture = np.asarray(Image.open(saved[0] / name).convert("L"))
    assert picture.shape[0] > 300 and picture.shape[1] > 500 and len(np.unique(picture)) > 10
    border = np.concatenate([picture[:2].ravel(), picture[-2:].ravel(), picture[:, :2].ravel(), picture[:, -2:].ravel()])
    assert (border == 255).all()  # nothing runs over the edge


@pytest.mark.parametrize("plot", [curve_plot, depth_plot])
@pytest.mark.parametrize("splits", [("train",), ("train", "valid", "test")])
@pytest.mark.parametrize("epochs", [1, 3])
def test_legends_are_inside_the_picture_and_titles_name_the_data(plot, splits, epochs):
    whole = camps()
    parts = {name: whole.splits[name] for name in splits}
    dataset = whole.with_splits(parts)
    figure = plot(fit(classifier(dataset), dataset, epochs=epochs, device="cpu"))
    figure.savefig(BytesIO())
    axes = [one for one in figure.axes if one.get_visible()]
    assert "camps" in (figure.get_suptitle() + axes[0].get_title())
    assert len(axes) == (1 if plot is depth_plot or splits == ("train",) else 2)
    legend = axes[0].get_legend().get_window_extent()
    assert 0 <= legend.x0 < legend.x1 <= figure.bbox.x1 and 0 <= legend.y0 < legend.y1 <= figure.bbox.y1


def test_how_columns_became_features_is_kept(shop_folder, tmp_path):
    manifest = json.loads((shop_folder / "data/manifest.json").read_text())
    kept = manifest["parameters"]["encoding"]
    assert [column["name"] for column in kept["columns"]] == ["age", "town", "colour"]
    shutil.copytree(shop_folder, tmp_path / "run")
    assert gatas.load(tmp_path / "run").dataset.encoding == Encoding.model_validate(kept)


def rewrite_signed(run, manifest):
    """Write a manifest with its checksum, and the run's note of which data it has."""
    content = {name: value for name, value in manifest.items() if name != "sha256"}
    (run / "data/manifest.json").write_text(json.dumps({**content, "sha256": checksum_of_json(content)}))
    about = json.loads((run / "about.json").read_text())
    about["contents"] = store_fingerprint(run / "data", "dataset")
    (run / "about.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text", "the encoding of columns could not be read (it: "),
        ([], "the encoding of columns could not be read (it: "),
        ({"format": 2}, "run/data has format 2; this version of gatas reads 1. Update gatas."),
        ({"format": 1, "types": ["a"]}, "the encoding of columns could not be read (missing: "),
    ],
)
def test_a_damaged_encoding_is_refused_in_one_line(shop_folder, tmp_path, content, message):
    shutil.copytree(shop_folder, tmp_path / "run")
    manifest = json.loads((tmp_path / "run/data/manifest.json").read_text())
    manifest["parameters"]["encoding"] = content
    rewrite_signed(tmp_path / "run", manifest)
    with pytest.raises(gatas.TrainingError) as error:
        gatas.load(tmp_path / "run")
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("changed", [{"format": 1}, {}], ids=["format 1", "no format"])
@pytest.mark.parametrize("ask", [gatas.load, evaluate_run])
def test_a_run_of_gatas_0_1_is_refused_in_one_line(tmp_path, saved, changed, ask):
    saved[1].save(tmp_path)
    about = json.loads((tmp_path / "about.json").read_text())
    del about["format"]
    (tmp_path / "about.json").write_text(json.dumps(about | changed))
    with pytest.raises(TrainingError) as error:
        ask(tmp_path)
    assert str(error.value) == f"{tmp_path} was written by gatas 0.1, whose runs do not hold their data. Train the model again."


def test_the_folder_of_each_seed_answers_alone_and_their_data_is_stored_once(tmp_path):
    config = Config.model_validate({"model": SMALL, "training": {"epochs": 1, "batch_size": 5}})
    runs = fit_many(config, [2, 5], dataset=camps(), folder=tmp_path / "runs", device="cpu")
    first, second = (tmp_path / "runs" / f"seed-{seed}" for seed in (2, 5))
    names = sorted(file.name for file in (first / "data").iterdir())
    assert "neighbour.npy" in names and names == sorted(file.name for file in (second / "data").iterdir())
    for name in names:
        assert (first / "data" / name).stat().st_ino == (second / "data" / name).stat().st_ino
    shutil.rmtree(first)
    alone = second.rename(tmp_path / "alone")
    np.testing.assert_array_equal(gatas.load(alone).embed_all(), runs[1].predictor.embed_all())


def test_a_temperature_is_kept_with_the_run_and_changes_no_class(saved):
    folder, run = saved
    predictor = gatas.load(folder, device="cpu")
    assert predictor.temperature == run.metrics["temperature"] == run.model.temperature
    run.model.temperature, nodes = 2.0, np.arange(30)
    try:
        tempered = run.predictor.predict_indices(nodes).probabilities
        run.model.temperature = 1.0
        plain = run.predictor.predict_indices(nodes).probabilities
    finally:
        run.model.temperature = run.metrics["temperature"]
    assert np.array_equal(tempered.argmax(1), plain.argmax(1)) and not np.array_equal(tempered, plain)
    np.testing.assert_allclose(tempered, plain**0.5 / (plain**0.5).sum(1, keepdims=True), rtol=1e-5)


def test_a_run_of_an_earlier_version_has_a_temperature_of_one(saved, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(saved[0], folder)
    about = json.loads((folder / "about.json").read_text())
    del about["temperature"]
    (folder / "about.json").write_text(json.dumps(about))
    assert gatas.load(folder, device="cpu").temperature == 1


def test_what_is_measured_by_class_is_in_metrics_and_in_tables(saved):
    folder, run = saved
    scores = run.metrics["test"]["by_class"]
    rows = list(csv.DictReader((folder / "classes.csv").read_text().splitlines()))
    assert [row["class"] for row in rows] == list(scores) == ["even", "odd"]
    assert [float(row["recall"]) for row in rows] == [own["recall"] for own in scores.values()]
    confusion = [
        [int(count) for count in row[1:]] for row in list(csv.reader((folder / "confusion.csv").read_text().splitlines()))[1:]
    ]
    assert [sum(row) for row in confusion] == [own["support"] for own in scores.values()]
    calibration = evaluate_run(folder, "valid", device="cpu")["calibration"]
    assert calibration == approx(run.metrics["valid"]["calibration"])
    assert calibration["loss_after"] <= calibration["loss_before"] == approx(run.metrics["valid"]["loss"])


def test_probabilities_stay_as_they_are_where_calibration_is_off():
    dataset = camps()
    on, off = (fit(classifier(dataset), dataset, epochs=3, device="cpu", calibrate=choice) for choice in (True, False))
    assert "temperature" not in off.metrics and off.model.temperature == 1 and "temperature" in on.metrics
    assert on.history[-1]["loss"] == off.history[-1]["loss"] and on.metrics["test"]["loss"] == off.metrics["test"]["loss"]


def test_counts_of_any_number_of_labels_are_by_class(tmp_path):
    dataset = labelled_graphs()
    run = fit(classifier(dataset), dataset, epochs=2, batch_size=5, device="cpu", folder=tmp_path)
    rows = list(csv.reader((tmp_path / "confusion.csv").read_text().splitlines()))
    assert rows[0] == ["class", "true positives", "false negatives", "false positives", "true negatives"]
    assert all(sum(map(int, row[1:])) == len(dataset.splits["valid"]) for row in rows[1:])
    assert not (tmp_path / "confusion.png").exists() and (tmp_path / "reliability.png").exists()
    assert list(run.metrics["valid"]["by_class"]) == ["a", "b", "c"]
