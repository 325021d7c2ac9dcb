"""`compare` on link data: every kind of model, both protocols from one training, own data, own models, what is refused."""

import json
import re
import sys
from functools import partial

import pytest
import torch
from torch import nn

from gatas.cli import main
from gatas.errors import ConfigError
from gatas.experiments import comparison_data, recipes
from gatas.experiments.baselines.links import LINK_PEERS, embeddings, runs, skipgram
from gatas.experiments.baselines.links.neighbours import HEURISTICS
from gatas.experiments.compare import compare
from gatas.experiments.compare_table import rendered, views
from gatas.experiments.contenders import LINKS, check_models, contender
from gatas.experiments.report import report
from gatas.experiments.results import file_name
from gatas.training.limit import Limit
from tests.experiments.baselines.links.toys import NUM_NODES, clubs, family_files
from tests.experiments.records import record
from tests.tasks.toys import camps, likes

HERE = "tests.experiments.test_compare_links"
OWN = f"{HERE}:Own"


class Own(nn.Module):
    """A user's model of links: an embedding of each node, and a weight for each type."""

    training_settings = {"epochs": 3, "batch_size": 50}  # noqa: RUF012

    def __init__(self, dataset):
        super().__init__()
        self.embedding = nn.Embedding(dataset.graph.num_nodes, 4)
        self.weight = nn.Parameter(torch.ones(len(dataset.names), 4))

    def represent(self, nodes):
        return self.embedding(nodes)

    def score(self, source, target, edge_type):
        return (source * self.weight[edge_type] * target).sum(-1)


class Full(Own):
    def represent(self, nodes):
        raise torch.OutOfMemoryError("no | memory\nleft")


class OfNodes(nn.Module):
    def forward(self, target):
        return target


@pytest.fixture
def quick(monkeypatch):
    """Toys by name, and a tiny recipe."""
    toys = {"clubs": clubs(), "camps": camps()}
    monkeypatch.setattr(comparison_data, "load_dataset", lambda name, _: toys[name])
    monkeypatch.setattr(runs, "SkipGramSettings", partial(skipgram.SkipGramSettings, num_walks=2))
    model = {"num_steps": 2, "sample_size": 5, "num_heads": 1, "node_embedding_size": 4, "pair_hidden_size": 8}
    monkeypatch.setitem(recipes.OWN, "clubs", {"model": model, "training": {"epochs": 2}})


def gatas(capsys, *words):
    """What the command prints and says, and its exit code."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(sys, "argv", ["gatas", "compare", "--device", "cpu", *map(str, words)])
        main()
    out, err = capsys.readouterr()
    return out, err, end.value.code or 0


def path_of(folder, model, data="clubs"):
    return folder / "peers" / f"{file_name(data, model)}.json"


def read(folder, model, data="clubs"):
    return json.loads(path_of(folder, model, data).read_text())


def tables(text):
    """The rows of each table by its heading, cell by cell."""
    parts = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    cells = {
        part.splitlines()[0]: [line[2:-2].split(" | ") for line in part.splitlines() if line[:2] == "| "] for part in parts
    }
    return {heading: {row[0]: row[1:] for row in rows} for heading, rows in cells.items()}


def test_links_are_compared_resumed_and_shown_by_both_protocols(quick, tmp_path, capsys):
    words = ("--data", "clubs", "--models", "gatas,gcn-distmult,mne", "--epochs", "2", "--out", tmp_path)
    gatas(capsys, *words, "--seeds", "1")
    first = {name: read(tmp_path, name) for name in ("gatas", "gcn-distmult", "mne")}
    out, err, code = gatas(capsys, *words, "--seeds", "2")
    assert code == 0 and "mne on clubs" in err
    for name, before in first.items():
        found = read(tmp_path, name)
        assert found["runs"][0] == before["runs"][0] and [run["seed"] for run in found["runs"]] == [0, 1]
        assert found["task"] == LINKS and found["sessions"][-1]["seeds"] == [1]
        assert found["sessions"][-1]["seconds_for_1000"] > 0 and found["sessions"][-1]["parameters"] > NUM_NODES
        assert all(run["seconds_to_best"] > 0 for run in found["runs"])
    shown = tables(out)
    assert list(shown) == ["clubs: the paper's protocol", "clubs: GATNE's protocol"]
    paper, gatne = shown.values()
    assert paper["model"][:4] == ["ROC-AUC", "F1", "seeds", "ROC-AUC against gatas (95 %)"]
    assert gatne["model"][:4] == ["ROC-AUC", "PR-AUC", "F1", "seeds"]
    seeds = read(tmp_path, "mne")["runs"]
    for cell, values in [(paper["mne"][0], [run["test"]["roc_auc"] for run in seeds]),
                         (gatne["mne"][1], [run["test"]["gatne"]["pr_auc"] for run in seeds])]:  # fmt: skip
        assert cell.startswith(f"{50 * sum(values):.2f} ± ")
    assert paper["mne"][2] == "2, all cut at 2 epochs" and paper["gatas"][2] == "2" and " to " in paper["mne"][3]
    assert "Positives and negatives by type: friend: 19 and 19; rival: 12 and 12." in out
    assert len({len(row) for row in paper.values()}) == len({len(row) for row in gatne.values()}) == 1


def test_one_protocol_can_be_asked_for_and_changes_no_training(quick, tmp_path, capsys):
    words = ("--data", "clubs", "--models", OWN, "--seeds", "1", "--out", tmp_path)
    out, _, _ = gatas(capsys, *words, "--protocol", "gatne")
    assert list(tables(out)) == ["clubs: GATNE's protocol"] and len(read(tmp_path, OWN)["sessions"]) == 1
    out, _, _ = gatas(capsys, *words, "--protocol", "paper")
    assert list(tables(out)) == ["clubs: the paper's protocol"] and len(read(tmp_path, OWN)["sessions"]) == 1


def test_gatne_measures_twitter_by_its_first_type():
    paper, gatne = views("twitter", LINKS, "test")
    assert paper.title == "twitter: the paper's protocol" and paper.metrics == ("test.roc_auc", "test.f1")
    assert gatne.title == "twitter, type 1: GATNE's protocol"
    assert gatne.metrics == ("test.gatne.roc_auc", "test.gatne.pr_auc", "test.gatne.f1")


def test_a_table_says_whose_test_had_validation_links_as_edges():
    view, test = views("clubs", LINKS, "test")[0], {"roc_auc": 0.5, "f1": 0.5}
    ours = record("gatas", runs=[{"seed": 0, "test": {**test, "validation_edges": True}}])
    peer = record("distmult", runs=[{"seed": 0, "test": test}])
    said = "Links of validation are edges of the graph in the test of gatas."
    alone, both, none = (
        rendered(view, {one.model: one for one in found}, "").splitlines() for found in ([ours], [ours, peer], [peer])
    )
    assert said in alone and f"{said} It is without them for distmult, so that the rows are not alike." in both
    assert not any("Links of validation" in line for line in none)


def test_what_fails_on_links_becomes_a_row_of_every_table_and_the_rest_goes_on(quick, tmp_path, capsys):
    out, _, code = gatas(capsys, "--data", "clubs", "--models", f"{HERE}:Full,{OWN}", "--seeds", "1", "--out", tmp_path)
    assert code == 0 and out.count(f"| {HERE}:Full | OutOfMemoryError: no ¦ memory left | – |") == 2
    assert all(len({len(row) for row in table.values()}) == 1 for table in tables(out).values())
    assert len(read(tmp_path, OWN)["runs"]) == 1


def test_every_link_peer_has_settings_that_are_kept_with_its_results(quick, tmp_path):
    for name in LINK_PEERS:
        assert name in HEURISTICS or contender(name, clubs()).settings["training"]["learning_rate"] > 0
    compare(["clubs"], ["mve"], tmp_path, seeds=1, limit=Limit(seconds=1e-9), device="cpu")
    (run,) = read(tmp_path, "mve")["runs"]
    assert run["cut"] == "1e-09 s" and run["epochs"] == 1  # a walker's epoch is long, so that it ends within
    assert read(tmp_path, "mve")["settings"]["training"]["num_walks"] == 2


def test_nodes_and_links_may_be_compared_by_one_command(quick, tmp_path):
    text = compare(["camps", "clubs"], ["gcn", "gcn-distmult"], tmp_path, seeds=1, limit=Limit(epochs=1), device="cpu")
    assert list(tables(text)) == ["camps", "clubs: the paper's protocol", "clubs: GATNE's protocol"]
    assert [set(table) - {"model"} for table in tables(text).values()] == [{"gcn"}, {"gcn-distmult"}, {"gcn-distmult"}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--models", "gatne"), "there is no model 'gatne'. Did you mean gatne-t"),
        (("--models", "node2vec"), "Known for clubs: gatas, gcn-bilinear"),
        (("--models", "gcn"), "gcn predicts classes of nodes, which clubs is not for. Known there: gatas, gcn-bilinear"),
        (("--models", f"{HERE}:OfNodes"), "has no method represent. For links, as in clubs, expected represent(nodes)"),
        (("--models", "mve", "--protocol", "hgb"), "there is no protocol 'hgb'; expected paper or gatne or ranking."),
        (("--models", "mve", "--protocol", "ranking"), "clubs has negatives, which links are told from; nothing is ranked."),
        (("--models", "mve", "--max-seconds", "0"), "the limit is 0 seconds; expected more than 0"),
    ],
)
def test_what_makes_no_sense_for_links_is_refused_in_one_line(words, said, quick, tmp_path, capsys):
    _, err, code = gatas(capsys, "--data", "clubs", *words, "--out", tmp_path)
    assert code == 1 and said in " ".join(err.split()) and "Traceback" not in err
    assert not list(tmp_path.iterdir())


def test_link_peers_and_protocols_are_not_for_nodes(quick, tmp_path):
    with pytest.raises(ConfigError, match=r"mve predicts links, which camps is not for\. Known there: gatas, mlp"):
        check_models(["mve"], [camps()])
    with pytest.raises(ConfigError, match="none of the data is for links: camps"):
        compare(["camps"], ["gcn"], tmp_path, protocol="paper")


def test_data_without_validation_pairs_is_a_row_that_says_so(tmp_path, monkeypatch):
    dataset = likes()
    splits = {name: pairs for name, pairs in dataset.splits.items() if name != "valid"}
    monkeypatch.setattr(comparison_data, "load_dataset", lambda name, _: dataset.with_splits(splits))
    text = compare(["likes"], ["mne"], tmp_path, seeds=1, device="cpu")
    assert "| mne | TrainingError: likes has no split 'valid'; expected pairs to stop a training by" in text


def test_a_users_own_links_are_compared(tmp_path, capsys):
    rows = [f"{one},{other},knows" for one in range(24) for other in range(one) if one % 3 == other % 3]
    (tmp_path / "edges.csv").write_text("source,target,type\n" + "\n".join(rows) + "\n")
    (tmp_path / "mine.yaml").write_text(
        "data: {name: mine, edges: edges.csv, task: link prediction}\nmodel: {num_steps: 2, sample_size: 5, num_heads: 1}\n"
        "training: {epochs: 2}\n"
    )
    words = ("--data", tmp_path / "mine.yaml", "--models", f"gatas,mne,{OWN}", "--seeds", "1", "--epochs", "1")
    out, _, code = gatas(capsys, *words, "--out", tmp_path / "results")
    assert code == 0
    for table in tables(out).values():
        assert set(table) == {"model", "gatas", "mne", OWN} and all(
            float(row[0]) > 0 for name, row in table.items() if name != "model"
        )


def test_a_knowledge_graph_of_ones_own_is_ranked_and_reported(tmp_path, capsys):
    family_files(tmp_path)
    (tmp_path / "family.yaml").write_text(
        "data: {edges: edges.csv, task: link prediction, edge_type: type, pairs: {valid: valid.csv, test: test.csv}, "
        "keep_reverse: true}\nmodel: {num_steps: 2, sample_size: 5, num_heads: 1}\ntraining: {epochs: 2}\n"
    )
    models = ("gatas", "gcn-distmult", "rgcn", "mne", "complex", "rotate", "transe", "adamic-adar", "popularity", OWN)
    words = ("--data", tmp_path / "family.yaml", "--seeds", "1", "--epochs", "1", "--out", tmp_path / "results")
    out, err, code = gatas(capsys, *words, "--models", ",".join(models))
    assert code == 0, err
    shown = tables(out)
    assert list(shown) == ["family: filtered ranking", "family: the paper's protocol", "family: GATNE's protocol"]
    ranking = shown["family: filtered ranking"]
    assert ranking["model"][:6] == ["MRR", "Hits@1", "Hits@3", "Hits@10", "macro MRR", "seeds"]
    assert set(ranking) == {"model", *models} and all(float(ranking[name][4]) > 0 for name in models)
    found = read(tmp_path / "results", "complex", "family")
    assert found["runs"][0]["test"]["ranking"]["mrr"] > 0 and "pykeen" in found["sessions"][0]["versions"]
    assert found["runs"][0]["test"]["ranking"]["by_type"]["parent"]["count"] > 0
    assert found["settings"]["training"]["source"].startswith("ours") and "settled" not in found["sessions"][0]
    ours = read(tmp_path / "results", "gatas", "family")
    assert ours["settings"]["model"]["max_degree"] == ours["settings"]["model"]["link_score"] == "auto"
    assert ours["sessions"][0]["settled"] == {"max_degree": None, "link_score": ["vectors", "neighbourhood", "paths"]}
    out, _, _ = gatas(capsys, *words, "--models", "popularity", "--protocol", "ranking")
    assert list(tables(out)) == ["family: filtered ranking"]
    done = report(tmp_path / "results", tmp_path, tmp_path / "report")
    assert not done.problems and "family: filtered ranking" in done.markdown.read_text()


def test_a_model_of_pykeen_is_refused_in_one_line_where_it_is_missing(quick, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    _, err, code = gatas(capsys, "--data", "clubs", "--models", "mne,complex", "--out", tmp_path)
    assert code == 1 and "complex is PyKEEN's, which is not installed: pip install 'gatas[pykeen]'" in " ".join(err.split())
    assert not list(tmp_path.iterdir())


def test_the_report_has_a_table_and_a_chart_for_each_protocol(quick, tmp_path):
    compare(["clubs"], ["gatas", OWN], tmp_path / "results", seeds=2, device="cpu")
    done = report(tmp_path / "results", tmp_path, tmp_path / "report")
    shown = tables(done.markdown.read_text().split("## Beside other models")[1])
    assert {"clubs: the paper's protocol", "clubs: GATNE's protocol"} <= set(shown)
    assert all((done.markdown.parent / "charts" / f"seconds-clubs-{name}.svg").exists() for name in ("paper", "gatne"))
    assert not done.problems
    content = read(tmp_path / "results", OWN)
    del content["runs"][0]["test"]["gatne"]["f1"]
    path_of(tmp_path / "results", OWN).write_text(json.dumps(content))
    with pytest.warns(match=r"clubs-.*Own\.json is left out: a run has no test\.gatne\.f1"):
        report(tmp_path / "results", tmp_path, tmp_path / "report")
