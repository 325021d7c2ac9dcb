"""Servers on ports of this machine, in threads, over models of toys."""

import threading
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

import gatas
from gatas.datasets import Dataset
from gatas.graph import Graph
from gatas.inference import Predictor
from gatas.serving.loaded_model import LoadedModel
from gatas.serving.server import Server
from gatas.serving.service import ModelService
from gatas.serving.settings import ServerSettings
from tests.inference.conftest import shop_folder, trained
from tests.tasks.toys import camps, classifier, likes, predictor

__all__ = ["shop_folder"]

WAIT = 100


class Client(httpx.Client):
    """Knows what is behind the server, too."""

    service: ModelService
    shut_down: Any


@contextmanager
def running(load, **settings):
    """A server and a client of it; `load` makes a `LoadedModel`."""
    service = ModelService(ServerSettings(port=0, **settings), load)
    started, addresses = threading.Event(), list[str]()

    def listening(address):
        addresses.append(address)
        started.set()

    server = Server(service, listening)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert started.wait(WAIT)
    try:
        with Client(base_url=addresses[0], timeout=WAIT, limits=httpx.Limits(), verify=False) as client:
            client.service = service
            client.shut_down = lambda: server.loop.call_soon_threadsafe(server.shut_down)
            yield client
    finally:
        server.should_exit = True
        thread.join(WAIT)


def until(condition):
    """Wait for what another thread does."""
    pause = threading.Event()
    for _ in range(WAIT * 100):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not come about")


@contextmanager
def ready(model, **settings):
    with running(lambda: model, **settings) as client:
        until(lambda: client.service.ready)
        yield client


class Gate:
    """Keeps a model from answering until it is opened, and says when a request has come."""

    def __init__(self, predictor):
        own = Predictor(predictor.model, predictor.dataset, mode=predictor.mode, draws=len(predictor.draws))
        self.model, self.represent = LoadedModel(own), own.exact.represent
        self.asked, self.opened, self.batches = threading.Event(), threading.Event(), []
        own.exact.represent = self  # type: ignore[method-assign]

    def __call__(self, nodes, mode, draw=-1):
        self.batches.append(len(nodes))
        self.asked.set()
        assert self.opened.wait(WAIT)
        return self.represent(nodes, mode, draw)


def with_ids(dataset, ids, class_names=None):
    """The nodes of a data set, known by other ids."""
    graph, targets = dataset.graph, dataset.node_targets
    relations = {"edge_type_names": graph.edge_type_names, "inverse_of": graph.inverse_of}
    named = Graph.from_edges(graph.source, graph.neighbour, graph.edge_type, num_nodes=len(ids), node_ids=ids, **relations)
    names = class_names or targets.class_names
    return Dataset.for_nodes(named, targets.labels, targets.splits, class_names=names, features=dataset.features)


def named_camps():
    dataset = camps()
    return with_ids(dataset, [f"a{node}" for node in range(dataset.graph.num_nodes)])


@pytest.fixture(scope="session")
def camp_predictor():
    """One class a node, known by names, with features and embeddings."""
    dataset = named_camps()
    return trained(classifier(dataset, node_embedding_size=3), dataset).predictor


@pytest.fixture(scope="session")
def other_camp_predictor():
    dataset = named_camps()
    return trained(classifier(dataset, node_embedding_size=3, seed=9), dataset, learning_rate=0.05).predictor


@pytest.fixture(scope="session")
def like_predictor():
    """Links of two types, nodes known by numbers."""
    dataset = likes()
    return trained(predictor(dataset), dataset, evaluation_mode="all").predictor


@pytest.fixture(scope="session")
def part_predictor():
    """Links scored by vectors and paths."""
    dataset = likes()
    model = predictor(dataset, link_score=("vectors", "paths"), vector_size=6, revisits=True)
    return trained(model, dataset, loss="list", hidden_folds=3, n3=0.01, l2=0).predictor


@pytest.fixture(scope="session")
def part_client(part_predictor):
    with ready(LoadedModel(part_predictor)) as client:
        yield client


@pytest.fixture(scope="session")
def camp_client(camp_predictor):
    with ready(LoadedModel(camp_predictor)) as client:
        yield client


@pytest.fixture(scope="session")
def like_client(like_predictor):
    with ready(LoadedModel(like_predictor)) as client:
        yield client


@pytest.fixture(scope="session")
def shop_client(shop_folder):
    """A model of tables of one's own."""
    with ready(LoadedModel(gatas.load(shop_folder))) as client:
        yield client


@pytest.fixture
def gate(camp_predictor):
    """A model that waits until it is told to answer."""
    gate = Gate(camp_predictor)
    yield gate
    gate.opened.set()
