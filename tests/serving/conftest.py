"""Servers on ports of this machine, in threads, over models of toys."""

import threading
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

import gatas
from gatas.serving.desk import Desk
from gatas.serving.served import Served
from gatas.serving.server import Server
from gatas.serving.settings import Settings
from tests.inference.conftest import shop_folder, trained, with_names
from tests.tasks.toys import camps, classifier, likes, predictor

__all__ = ["shop_folder"]

WAIT = 100


class Client(httpx.Client):
    """Knows what is behind the server, too."""

    desk: Desk
    leave: Any


@contextmanager
def running(load, **settings):
    """A server and a client of it; `load` makes a `Served`."""
    desk = Desk(Settings(port=0, **settings), load)
    started, addresses = threading.Event(), list[str]()

    def listening(address):
        addresses.append(address)
        started.set()

    server = Server(desk, listening)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert started.wait(WAIT)
    try:
        with Client(base_url=addresses[0], timeout=WAIT, limits=httpx.Limits(), verify=False) as client:
            client.desk = desk
            client.leave = lambda: server.loop.call_soon_threadsafe(server.leave)
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
def ready(served, **settings):
    with running(lambda: served, **settings) as client:
        until(lambda: client.desk.ready)
        yield client


class Gate:
    """Keeps a model from answering until it is opened, and says when a question has come."""

    def __init__(self, served):
        self.served, self.represent = served, served.view.represent
        self.asked, self.opened, self.batches = threading.Event(), threading.Event(), []
        served.view.represent = self

    def __call__(self, nodes, draw=-1):
        self.batches.append(len(nodes))
        self.asked.set()
        assert self.opened.wait(WAIT)
        return self.represent(nodes, draw)


@pytest.fixture(scope="session")
def camp_model():
    """One class a node, known by names, with features and embeddings."""
    dataset = with_names(camps())
    return trained(classifier(dataset, node_embedding_size=3), dataset).model


@pytest.fixture(scope="session")
def other_camp_model():
    dataset = with_names(camps())
    return trained(classifier(dataset, node_embedding_size=3, seed=9), dataset, learning_rate=0.05).model


@pytest.fixture(scope="session")
def like_model():
    """Links of two types, nodes known by numbers."""
    dataset = likes()
    return trained(predictor(dataset), dataset, evaluation_mode="all").model


@pytest.fixture(scope="session")
def camp_client(camp_model):
    with ready(Served(camp_model)) as client:
        yield client


@pytest.fixture(scope="session")
def like_client(like_model):
    with ready(Served(like_model)) as client:
        yield client


@pytest.fixture(scope="session")
def shop_client(shop_folder):
    """A model of tables of one's own."""
    with ready(Served(gatas.load(shop_folder))) as client:
        yield client


@pytest.fixture
def gate(camp_model):
    """A model that waits until it is told to answer."""
    gate = Gate(Served(camp_model))
    yield gate
    gate.opened.set()
