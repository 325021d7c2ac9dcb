"""What a server that can be trusted promises, over HTTP: each promise with its test."""

import io
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from secrets import compare_digest
from time import perf_counter

import httpx
import numpy as np
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gatas.errors import GatasError, TrainingError
from gatas.inference import Predictor
from gatas.serving import middleware, server
from gatas.serving.errors import ApiError
from gatas.serving.handlers import RequestCancelled, handle_batch
from gatas.serving.loaded_model import LoadedModel
from gatas.serving.logs import LOGGER, JsonFormatter
from gatas.serving.requests import RankLinksRequest
from gatas.serving.service import ModelService
from gatas.serving.settings import ServerSettings
from tests.inference.conftest import digits_folder
from tests.serving.conftest import WAIT, Gate, ready, running, until

__all__ = ["digits_folder"]

TOKEN = "a-token-of-some-length"


def embed(client, *ids):
    return client.post("/v1/embed", json={"ids": list(ids)})


def at_once(count, work):
    """`work(number)` in as many threads."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def later(work):
    """What `work` gives, as a future."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(work)
    pool.shutdown(wait=False)
    return future


def counted(client, name, **labels):
    """The sum of a metric over the samples that have these labels."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


def in_progress(client):
    return client.service.metrics.in_progress.collect()[0].samples[0].value


# 1. Live is not ready.


def test_ready_is_503_until_the_model_is_loaded(camp_predictor):
    opened = threading.Event()

    def slowly():
        assert opened.wait(WAIT)
        return LoadedModel(camp_predictor, "off")

    with running(slowly) as client:
        assert client.get("/v2/health/live").status_code == 200
        for answer in (client.get("/v2/health/ready"), embed(client, "a1"), client.get("/v1/model")):
            assert answer.status_code == 503 and answer.json()["code"] == "not_ready" and "retry-after" in answer.headers
        opened.set()
        until(lambda: client.get("/v2/health/ready").status_code == 200)
        assert embed(client, "a1").status_code == 200


def test_a_first_model_that_cannot_be_loaded_ends_the_server():
    def refuse():
        raise TrainingError("there is no such run.")

    with running(refuse) as client:
        until(lambda: client.service.failure is not None)
        until(lambda: refused(client))
    assert str(client.service.failure) == "there is no such run."


def refused(client):
    try:
        httpx.get(f"{client.base_url}/v2/health/live")
    except httpx.TransportError:
        return True
    return False


# 2. SIGTERM drains.


def test_requests_in_progress_are_answered_when_the_server_ends(gate):
    with ready(gate.model, max_waiting=250, max_requests=300) as client:
        answers = [later(lambda node=node: embed(client, f"a{node % 30}"))
                   for node in range(200)]  # fmt: skip
        until(lambda: in_progress(client) == 200)
        client.shut_down()
        until(lambda: refused(client))
        gate.opened.set()
        assert [answer.result(WAIT).status_code for answer in answers] == [200] * 200
        until(lambda: not client.service.busy)


@pytest.fixture
def process(digits_folder):
    """`gatas serve` as a person starts it."""
    code = "from gatas.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", str(digits_folder), "--port", "0", "--notice-seconds", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stderr is not None
        address = server.stdout.readline().split()[2].rstrip(";")
        errors = later(server.stderr.read)
        until(lambda: httpx.get(f"{address}/v2/health/ready", timeout=WAIT).status_code == 200)
        yield server, address, errors
        server.kill()


@pytest.mark.slow
def test_sigterm_says_not_ready_then_drains_then_ends_with_0(process):
    server, address, errors = process
    statuses: list[int | str] = []

    def ask(number):
        with httpx.Client(base_url=address, timeout=WAIT, verify=False) as client:
            try:
                while server.poll() is None:
                    statuses.append(embed(client, number, number + 1).status_code)
            except httpx.TransportError:
                statuses.append("refused")

    asking = [later(lambda number=number: ask(number)) for number in range(8)]
    until(lambda: len(statuses) > 20)
    server.send_signal(signal.SIGTERM)
    until(lambda: httpx.get(f"{address}/v2/health/ready", timeout=WAIT).json().get("code") == "ending")
    assert server.wait(WAIT) == 0
    for one in asking:
        one.result(WAIT)
    assert set(statuses) <= {200, "refused"} and statuses.count("refused") <= 8
    events = [json.loads(line)["event"] for line in errors.result(WAIT).splitlines()]
    assert events[0] == "listening" and events[-1] == "stopped" and "model loaded" in events


# 3. The same answer alone or batched.


def test_answers_are_the_same_alone_and_batched_with_any_others(camp_client):
    generator = np.random.default_rng(0)
    asked = [[f"a{node}" for node in generator.integers(30, size=generator.integers(1, 12))] for _ in range(64)]
    paths = ["/v1/embed", "/v1/predict"]
    alone = [camp_client.post(paths[k % 2], json={"ids": ids}).content for k, ids in enumerate(asked)]
    batches = counted(camp_client, "gatas_batch_size_count"), counted(camp_client, "gatas_batch_size_sum")
    together = at_once(64, lambda k: camp_client.post(paths[k % 2], json={"ids": asked[k]}).content)
    assert together == alone
    calls, requests = (counted(camp_client, f"gatas_batch_size_{name}") - before
                       for name, before in zip(("count", "sum"), batches, strict=True))  # fmt: skip
    assert requests == 64 and calls < 64


def test_waiting_requests_are_answered_in_one_call_of_the_model(gate):
    with ready(gate.model) as client:
        first = later(lambda: embed(client, "a0"))
        assert gate.asked.wait(WAIT)
        others = [later(lambda node=node: embed(client, f"a{node}"))
                  for node in range(1, 21)]  # fmt: skip
        until(lambda: len(client.service.batcher.queue) == 20)
        gate.opened.set()
        assert {other.result(WAIT).status_code for other in [first, *others]} == {200}
    assert gate.batches == [1, 20]


# 4. One bad item never fails its batch mates.


def test_a_bad_request_leaves_those_it_waits_with_alone(gate):
    bodies = [
        {"ids": ["a1"]},
        {"ids": ["nobody"]},
        {"ids": ["a2"]},
        {"new": {"ids": ["zoe"], "features": [[1.0]]}},
        {"ids": []},
    ]
    with ready(gate.model) as client:
        first = later(lambda: embed(client, "a0"))
        assert gate.asked.wait(WAIT)
        answers = [later(lambda body=body: client.post("/v1/embed", json=body)) for body in bodies]
        until(lambda: len(client.service.batcher.queue) == len(bodies))
        gate.opened.set()
        assert [answer.result(WAIT).status_code for answer in (first, *answers)] == [200, 200, 422, 200, 422, 200]


def test_what_fails_for_one_node_is_told_to_those_who_ask_for_it_only(camp_predictor, capsys):
    gate = Gate(camp_predictor)
    represent = gate.represent

    def failing(nodes, mode, draw=-1):
        if 13 in nodes:
            raise RuntimeError("secret-of-13")
        return represent(nodes, mode, draw)

    gate.represent = failing
    with ready(gate.model) as client, logged() as lines:
        first = later(lambda: embed(client, "a0"))
        assert gate.asked.wait(WAIT)
        answers = [later(lambda node=node: embed(client, f"a{node}"))
                   for node in (12, 13, 14)]  # fmt: skip
        until(lambda: len(client.service.batcher.queue) == 3)
        gate.opened.set()
        found = [answer.result(WAIT) for answer in (first, *answers)]
    assert [answer.status_code for answer in found] == [200, 200, 500, 200]
    assert found[2].json()["code"] == "internal" and "secret" not in found[2].text and "Traceback" not in found[2].text
    failure = next(line for line in lines() if line["event"] == "internal error")
    assert failure["error"] == "RuntimeError" and failure["id"] == found[2].headers["x-request-id"]
    assert any("represent" in place or "failing" in place for place in failure["where"])


class logged:  # noqa: N801
    """The lines that are logged meanwhile."""

    def __enter__(self):
        self.stream = io.StringIO()
        self.handler = logging.StreamHandler(self.stream)
        self.handler.setFormatter(JsonFormatter())
        LOGGER.addHandler(self.handler)
        LOGGER.setLevel(logging.INFO)
        return lambda: [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def __exit__(self, *_):
        LOGGER.removeHandler(self.handler)


# 5. Every input error is 4xx with a code, and no stack, path or echo of the body.

NODE = {"ids": ["zoe"], "features": [[0.0] * 5]}


def with_edge(target, **more):
    return {"new": {**NODE, "edges": [{"source": "zoe", "target": target, **more}]}}


BAD = [
    ("/v1/embed", '{"ids": ["a1"', 400, "not_json", "could not be read as JSON"),
    ("/v1/embed", b"\xff\xfe{", 400, "not_json", "could not be read as JSON"),
    ("/v1/embed", "[" * 100_000, 400, "not_json", "could not be read as JSON"),
    ("/v1/embed", '{"ids": [' + "9" * 5000 + "]}", 400, "not_json", "could not be read as JSON"),
    ("/v1/embed", '{"ids": [NaN]}', 422, "invalid", "ids.0"),
    ("/v1/embed", '{"ids": [1e400]}', 422, "invalid", "ids.0"),
    ("/v1/embed", '{"ids": [1.0]}', 422, "invalid", "valid integer"),
    ("/v1/embed", '{"ids": [true]}', 422, "invalid", "valid integer"),
    ("/v1/embed", '{"ids": [null]}', 422, "invalid", "ids.0"),
    ("/v1/embed", '{"ids": ["\\ud800"]}', 422, "invalid", "ids.0"),
    ("/v1/embed", '{"ids": [92233720368547758080]}', 422, "invalid", "ids.0"),
    ("/v1/embed", '{"ids": "a1"}', 422, "invalid", "valid list"),
    ("/v1/embed", "[]", 422, "invalid", "body"),
    ("/v1/embed", "", 422, "invalid", "body"),
    ("/v1/embed", "{}", 422, "invalid", "Give ids, or new nodes"),
    ("/v1/embed", '{"ids": ["a1"], "secret-field": 1}', 422, "invalid", "Extra inputs are not permitted"),
    ("/v1/embed", {"ids": ["nobody"]}, 422, "unknown_id", "no node has the id 'nobody'"),
    ("/v1/embed", {"ids": [7]}, 422, "unknown_id", "no node has the id 7"),
    ("/v1/embed", {"new": {"ids": ["zoe"], "features": [[1.0, 2.0]]}}, 422, "wrong_features", "has 2 features; the model was"),
    ("/v1/embed", {"new": {"ids": ["zoe"]}}, 422, "unusable_new_nodes", "trained on 5 features, and new nodes came without"),
    ("/v1/embed", {"new": {"ids": ["a1"], "features": [[0.0] * 5]}}, 422, "unusable_new_nodes", "duplicate id 'a1'"),
    ("/v1/embed", {"new": {"features": [[0.0] * 5]}}, 422, "unusable_new_nodes", "Give each new node one"),
    ("/v1/embed", {"new": {**NODE, "features": [[1e300] * 5]}}, 422, "unusable_new_nodes", ""),
    ("/v1/embed", '{"new": {"ids": ["z"], "features": [[1, 2, 3, 4, Infinity]]}}', 422, "invalid", "new.features.0.4"),
    ("/v1/embed", with_edge("a1", type="hates"), 422, "unknown_type", "no edge type 'hates'"),
    ("/v1/embed", with_edge("nobody"), 422, "unusable_new_nodes", "nobody"),
    ("/v1/embed", with_edge("a1", weight=2), 422, "unusable_new_nodes", "Leave them out"),
    ("/v1/embed", {"ids": ["nobody"], "new": NODE}, 422, "unknown_id", "nobody"),
    ("/v1/predict", {"ids": ["nobody"]}, 422, "unknown_id", "nobody"),
    ("/v1/links", {"pairs": [{"source": "a1", "type": "0", "target": "a2"}]}, 422, "wrong_task", "predicts classes of nodes"),
    ("/v1/links/rank", {"source": "a1"}, 422, "wrong_task", "predicts classes of nodes"),
    ("/v1/explain", {"id": "nobody"}, 422, "unknown_id", "nobody"),
    ("/v1/explain", {}, 422, "invalid", "give the id of a node, or source, type and target"),
    ("/v1/explain", {"id": "a1", "target": "a2"}, 422, "invalid", "give the id of a node, or source"),
    ("/v1/explain", {"source": "a1", "target": "a2"}, 422, "wrong_task", "predicts classes of nodes"),
    ("/v1/explain", {"id": "a1", "answer": "blue"}, 422, "unknown_class", "there is no class 'blue'"),
    ("/v1/explain", {"id": "a1", "mode": "best"}, 422, "invalid", "mode"),
    ("/v1/neighbours", {"id": "a1", "top": 0}, 422, "invalid", "top"),
    ("/v1/neighbours", {"id": "a1", "top": 1001}, 422, "too_many", "at most 1,000 are allowed"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "status", "code", "message"), BAD)
def test_input_errors_have_a_code_and_tell_nothing_else(camp_client, path, body, status, code, message):
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    answer = camp_client.post(path, content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (status, code) and message in answer.json()["message"]
    assert set(answer.json()) == {"code", "message"} and len(answer.text) < 500
    assert not any(word in answer.text for word in ("Traceback", ".py", "secret", os.sep + "tmp"))


LINK_ERRORS = [
    ("/v1/predict", {"ids": [1]}, "wrong_task", "predicts links"),
    ("/v1/links", {"pairs": [{"source": 1, "type": "hates", "target": 2}]}, "unknown_type", "knows 'likes', 'knows'"),
    ("/v1/links", {"pairs": [{"source": 1, "target": 2}]}, "unknown_type", "the type of link is missing"),
    ("/v1/links", {"pairs": [{"source": 1, "type": "likes", "target": 12}]}, "unknown_id", "no node has the id 12"),
    ("/v1/links/rank", {"source": -1, "type": "likes"}, "unknown_id", "no node has the id -1"),
    ("/v1/links/rank", {"type": "likes"}, "invalid", "give `source` or `target`"),
    ("/v1/links/rank", {"source": 1, "target": 2, "type": "likes"}, "invalid", "give `source` or `target`"),
    ("/v1/explain", {"source": 1, "type": "hates", "target": 2}, "unknown_type", "no type of link 'hates'"),
    ("/v1/explain", {"id": 1, "answer": "likes"}, "invalid", "a link is explained by its type"),
    ("/v1/embed", {"new": {"edges": [{"source": 12, "target": 1}]}}, "unusable_new_nodes", "came without types"),
    ("/v1/embed", {"new": {"edges": [{"source": 12, "target": 1, "type": "likes"}, {"source": 12, "target": 2}]}},
     "unusable_new_nodes", "Give all of them one"),
    ("/v1/embed", {"new": {"ids": [12], "features": [[1.0]]}}, "unusable_new_nodes", "trained without features"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "code", "message"), LINK_ERRORS)
def test_errors_of_a_model_of_links(like_client, path, body, code, message):
    answer = like_client.post(path, json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, code) and message in answer.json()["message"]


def test_unknown_paths_and_methods_and_types_of_content_are_refused(camp_client):
    assert camp_client.get("/v1/nothing").json()["code"] == "not_found"
    assert camp_client.get("/v1/embed").json()["code"] == "method_not_allowed"
    assert camp_client.post("/v1/embed/", json={}).status_code == 404
    assert camp_client.post("/v1/embed", content='{"ids": ["a1"]}', headers={"content-type": "text/plain"}).status_code == 422
    assert camp_client.get("/v1/nodes?limit=many").json()["code"] == "invalid"


# 6. Bounded: bytes, ids, edges, rows, the line, time, memory.


def test_each_limit_holds_from_the_next_one_on(camp_predictor):
    limits = {"max_ids": 3, "max_edges": 2, "max_rows": 4, "max_body_bytes": 400}
    with ready(LoadedModel(camp_predictor), **limits) as client:
        assert embed(client, *["a1"] * 3).status_code == 200
        assert embed(client, *["a1"] * 4).json()["code"] == "too_many"
        edges = [{"source": "zoe", "target": "a1"}] * 3
        new = {"ids": ["zoe"], "features": [[0.0] * 5]}
        assert client.post("/v1/embed", json={"new": {**new, "edges": edges[:2]}}).status_code == 200
        assert client.post("/v1/embed", json={"new": {**new, "edges": edges}}).json()["code"] == "too_many"
        assert client.post("/v1/neighbours", json={"id": "a1", "top": 4}).status_code == 200
        assert client.post("/v1/neighbours", json={"id": "a1", "top": 5}).json()["code"] == "too_many"
        assert client.get("/v1/nodes?limit=5").json()["code"] == "too_many"
        for size, status in ((400, 200), (401, 413)):
            body = b'{"ids": ["a1"]}'.ljust(size)
            headers = {"content-type": "application/json"}
            assert client.post("/v1/embed", content=body, headers=headers).status_code == status
            streamed = client.post("/v1/embed", content=iter([body[:100], body[100:]]), headers=headers)  # no length announced
            assert streamed.status_code == status
        assert streamed.json()["code"] == "too_large"


def test_a_body_that_is_too_large_is_not_kept(camp_client):
    def parts():
        for _ in range(30):
            yield b" " * 2**20

    before = psutil.Process().memory_info().rss
    for announced in ({}, {"content-length": str(30 * 2**20)}):
        answer = camp_client.post("/v1/embed", content=parts(), headers={"content-type": "application/json", **announced})
        assert answer.status_code == 413
    assert psutil.Process().memory_info().rss - before < 15 * 2**20


def test_one_that_says_it_will_send_very_much_is_refused_at_once(camp_client):
    with socket.create_connection(address_of(camp_client), timeout=WAIT) as connection:
        connection.sendall(b"POST /v1/embed HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999999\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def address_of(client):
    return client.base_url.host, client.base_url.port


def test_a_body_that_trickles_in_is_given_up(camp_predictor):
    with ready(LoadedModel(camp_predictor, "off"), seconds=0.3) as client:
        with socket.create_connection(address_of(client), timeout=WAIT) as connection:
            connection.sendall(b"POST /v1/embed HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{")
            answer = b"".join(iter(lambda: connection.recv(1000), b""))  # until the server hangs up
        assert answer.startswith(b"HTTP/1.1 408") and b"too_slow" in answer


@pytest.mark.parametrize("sent", [b"", b"POST /v1/embed HTTP/1.1\r\nhost: local"])
def test_headers_that_trickle_in_are_given_up(camp_predictor, monkeypatch, sent):
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.3)
    with ready(LoadedModel(camp_predictor, "off")) as client:
        with socket.create_connection(address_of(client), timeout=WAIT) as connection:
            connection.sendall(sent)
            assert connection.recv(100) == b""
        with socket.create_connection(address_of(client), timeout=WAIT) as connection:  # after an answer, too
            connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
            answer = b""
            while b'"live"' not in answer:
                answer += connection.recv(1000)
            connection.sendall(sent or b"G")
            assert connection.recv(100) == b""


def test_requests_in_progress_are_bounded_before_their_bodies_are_read(gate):
    with ready(gate.model, max_requests=2) as client:
        waiting = [later(lambda: embed(client, "a0")) for _ in range(2)]
        until(lambda: in_progress(client) == 2)
        answer = embed(client, "a1")
        assert (answer.status_code, answer.json()["code"]) == (429, "busy") and int(answer.headers["retry-after"]) >= 1
        gate.opened.set()
        assert {one.result(WAIT).status_code for one in waiting} == {200}


def test_requests_leave_no_memory_behind(camp_client):
    """`benchmarks/serving.py` makes ten thousand."""

    def ask(count):
        for number in range(count):
            assert embed(camp_client, f"a{number % 30}").status_code == 200

    ask(100)
    before = psutil.Process().memory_info().rss
    ask(400)
    assert psutil.Process().memory_info().rss - before < 8 * 2**20


# 7. Who gives up frees the place.


def test_a_request_whose_time_is_up_leaves_the_line(gate):
    with ready(gate.model, seconds=0.5) as client:
        first = later(lambda: embed(client, "a0"))
        assert gate.asked.wait(WAIT)
        answer = embed(client, "a1")
        assert (answer.status_code, answer.json()["code"]) == (504, "timeout")
        assert first.result(WAIT).status_code == 504
        assert not client.service.batcher.queue
        gate.opened.set()
        assert embed(client, "a2").status_code == 200
    assert gate.batches == [1, 1]  # nobody asked the model for a1


def test_a_client_that_hangs_up_leaves_the_line(gate):
    with ready(gate.model) as client:
        first = later(lambda: embed(client, "a0"))
        assert gate.asked.wait(WAIT)
        body = b'{"ids": ["a1"]}'
        head = "POST /v1/embed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n"
        with socket.create_connection(address_of(client), timeout=WAIT) as connection:
            connection.sendall(head.encode() + body)
            until(lambda: len(client.service.batcher.queue) == 1)
        until(lambda: len(client.service.batcher.queue) == 0)
        gate.opened.set()
        assert first.result(WAIT).status_code == 200
        assert counted(client, "gatas_requests_total", code="499", route="/v1/embed") == 1
    assert gate.batches == [1]


def test_long_work_is_dropped_when_nobody_waits(like_predictor):
    model, request = LoadedModel(like_predictor, "off"), RankLinksRequest(source=0, type="likes")
    (cancelled,) = handle_batch(model, [request], [lambda: False])
    assert isinstance(cancelled, RequestCancelled)
    assert isinstance(handle_batch(model, [request], [lambda: True])[0], bytes)


def test_others_are_answered_while_links_are_ranked(like_predictor):
    predictor = Predictor(like_predictor.model, like_predictor.dataset, mode=like_predictor.mode)
    model, rank = LoadedModel(predictor, "off"), predictor.rank_links
    started, answered = threading.Event(), threading.Event()

    def slow(*args, progress, **given):
        started.set()
        for _ in range(WAIT * 100):
            progress(0.5)
            if answered.wait(0.01):
                return rank(*args, progress=progress, **given)
        raise AssertionError("nobody else was answered")

    predictor.rank_links = slow  # type: ignore[assignment, method-assign]
    with ready(model) as client:
        ranking = later(lambda: client.post("/v1/links/rank", json={"source": 0, "type": "likes"}))
        assert started.wait(WAIT)
        assert embed(client, 3).status_code == 200
        answered.set()
        assert ranking.result(WAIT).status_code == 200


# 8. Overload.


def test_more_than_can_wait_are_told_to_come_back_and_the_others_are_answered_in_time(camp_predictor):
    with ready(LoadedModel(camp_predictor, "off"), max_waiting=4, seconds=20) as client:

        def ask(number):
            started = perf_counter()
            answer = client.post("/v1/embed", json={"ids": [f"a{k}" for k in range(30)] * 20})
            return answer, perf_counter() - started

        found = at_once(40, ask)
        busy = [answer for answer, _ in found if answer.status_code == 429]
        assert {answer.status_code for answer, _ in found} == {200, 429}
        assert all(int(answer.headers["retry-after"]) >= 1 and answer.json()["code"] == "busy" for answer in busy)
        assert np.quantile([seconds for answer, seconds in found if answer.status_code == 200], 0.99) < 20
        assert embed(client, "a1").status_code == 200


# 9. Metrics.


def test_metrics_add_up_and_have_no_ids(camp_predictor):
    with ready(LoadedModel(camp_predictor, "off")) as client:
        for ids in (["a1"], ["a2", "a3"], ["a17nobody"]):
            embed(client, *ids)
        client.get("/v1/a17-nothing")
        client.request("STRANGE", "/v1/embed")
        text = client.get("/metrics").text
        assert counted(client, "gatas_requests_total", route="/v1/embed", code="200", method="POST") == 2
        assert counted(client, "gatas_requests_total", route="/v1/embed", code="422") == 1
        assert counted(client, "gatas_requests_total", route="other", code="404") == 1
        assert counted(client, "gatas_requests_total", method="OTHER") == 1
        assert counted(client, "gatas_request_seconds_count", route="/v1/embed") == 4
        assert counted(client, "gatas_batch_size_sum") == 3 and counted(client, "gatas_queue_depth") == 0
        assert counted(client, "gatas_model_info", fingerprint=client.service.model.fingerprint) == 1
        assert counted(client, "gatas_build_info") == 1 and counted(client, "gatas_model_reloads_total", outcome="loaded") == 1
        assert not any(word in text for word in ("a17nobody", "a17-nothing", "STRANGE"))


def test_metrics_and_reloading_can_be_switched_off(camp_predictor):
    with ready(LoadedModel(camp_predictor, "off"), metrics=False, reload=False) as client:
        assert client.get("/metrics").status_code == client.post("/v1/models/reload").status_code == 404


# 10. Tokens.


def test_with_a_token_only_health_is_open(camp_predictor, monkeypatch):
    compared = list[bytes]()

    def compare(one, other):
        compared.append(one)
        return compare_digest(one, other)

    monkeypatch.setattr(middleware, "compare_digest", compare)
    with ready(LoadedModel(camp_predictor, "off"), token=TOKEN) as client:
        assert client.get("/v2/health/live").status_code == client.get("/v2/health/ready").status_code == 200
        wrong = (f"Bearer {TOKEN}x", TOKEN, f"Basic {TOKEN}", "Bearer", b"Bearer \xe9")
        for headers in ({}, *({"authorization": value} for value in wrong)):
            for method, path in (
                ("POST", "/v1/embed"),
                ("GET", "/v1/nodes"),
                ("GET", "/metrics"),
                ("POST", "/v1/models/reload"),
            ):
                answer = client.request(method, path, headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthorised")
                assert answer.headers["www-authenticate"] == "Bearer"
        client.headers["authorization"] = f"Bearer {TOKEN}"
        assert embed(client, "a1").status_code == client.get("/metrics").status_code == 200
        assert TOKEN.encode() in compared  # by a function whose time says nothing


def test_without_a_token_pages_from_elsewhere_are_refused(camp_client):
    for headers, code in (
        ({"host": "evil.example"}, "wrong_host"),
        ({"host": ""}, "wrong_host"),
        ({"host": "[::"}, "wrong_host"),
        ({"origin": "http://evil.example"}, "wrong_origin"),
        ({"origin": "null"}, "wrong_origin"),
    ):
        answer = camp_client.get("/v1/model", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, code)
    own = f"http://localhost:{camp_client.base_url.port}"
    headers = {"host": own.removeprefix("http://"), "origin": own}
    assert camp_client.get("/v1/model", headers=headers).status_code == 200


# 11. Swapping models.


def test_a_new_model_takes_over_at_once_and_a_bad_one_changes_nothing(camp_predictor, other_camp_predictor):
    shelf = [camp_predictor]

    def load():
        if shelf[0] is None:
            raise TrainingError("/somewhere/secret holds no finished run.")
        return LoadedModel(shelf[0], "off")

    with running(load) as client:
        until(lambda: client.service.ready)
        old = embed(client, "a1").json()
        shelf[0] = None
        answer = client.post("/v1/models/reload")
        assert (answer.status_code, answer.json()["code"]) == (409, "model_refused") and "secret" not in answer.text
        assert embed(client, "a1").json() == old and client.get("/v2/health/ready").status_code == 200
        shelf[0] = other_camp_predictor
        assert client.post("/v1/models/reload").json()["model"] != old["model"]
        new = embed(client, "a1").json()
        assert new["embeddings"] != old["embeddings"] and new["model"] == client.get("/v1/model").json()["model"]
        assert counted(client, "gatas_model_reloads_total", outcome="refused") == 1
        assert counted(client, "gatas_model_info") == 1


def test_under_load_every_answer_is_of_one_model_wholly(camp_predictor, other_camp_predictor):
    models = [LoadedModel(camp_predictor, "off"), LoadedModel(other_camp_predictor, "off")]
    right = {own.fingerprint: own.predictor.embed(["a1", "a2"]).tolist() for own in models}
    with running(lambda: models[0]) as client:
        until(lambda: client.service.ready)
        end, seen = threading.Event(), list[str]()

        def ask(_):
            while not end.is_set():
                answer = embed(client, "a1", "a2").json()
                assert answer["embeddings"] == right[answer["model"]]
                seen.append(answer["model"])

        asking = later(lambda: at_once(6, ask))
        for _ in range(6):
            count = len(seen)
            models.reverse()
            assert client.post("/v1/models/reload").status_code == 200
            until(lambda count=count: len(seen) > count + 12)
        end.set()
        asking.result(WAIT)
        assert set(seen) == set(right)


def test_two_reloads_at_once_are_one_too_many(camp_predictor):
    began, opened = threading.Event(), threading.Event()
    model = LoadedModel(camp_predictor, "off")
    opened.set()

    def load():
        began.set()
        assert opened.wait(WAIT)
        return model

    with running(load) as client:
        until(lambda: client.service.ready and not client.service.loading.locked())
        opened.clear()
        began.clear()
        first = later(lambda: client.post("/v1/models/reload"))
        assert began.wait(WAIT)
        assert client.post("/v1/models/reload").json()["code"] == "reloading"
        assert embed(client, "a1").status_code == 200
        opened.set()
        assert first.result(WAIT).status_code == 200


def test_a_model_that_gives_no_numbers_is_refused(camp_predictor):
    from copy import deepcopy

    broken = deepcopy(camp_predictor.model)
    broken.encoder.neighbours.value.weight.data.fill_(float("nan"))
    with pytest.raises(GatasError, match="not finite numbers"):
        LoadedModel(Predictor(broken, camp_predictor.dataset), "off")


def test_a_signal_that_comes_while_a_model_is_loaded_is_not_lost():
    loads: list[int] = []
    go_on = threading.Event()

    def load():
        loads.append(len(loads))
        assert go_on.wait(WAIT)
        raise GatasError("it is gone")

    service = ModelService(ServerSettings(port=0), load)
    service.reload_in_background(wait=True)
    until(lambda: len(loads) == 1)
    service.reload_in_background(wait=True)
    with pytest.raises(ApiError, match="a model is being loaded already"):
        service.reload()
    go_on.set()
    until(lambda: len(loads) == 2)


@pytest.mark.slow
def test_sighup_loads_the_folder_that_a_link_points_to_now(digits_folder, tmp_path):
    link = tmp_path / "current"
    link.symlink_to(digits_folder)
    code = "from gatas.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", str(link), "--port", "0", "--neighbours", "off"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        events = iter(process.stderr)

        def next_event(name):
            return next(event for line in events if (event := json.loads(line))["event"] == name)

        next_event("model loaded")
        process.send_signal(signal.SIGHUP)
        next_event("model loaded")
        link.unlink()
        link.symlink_to(tmp_path)
        process.send_signal(signal.SIGHUP)
        assert "holds no finished run" in next_event("model rejected")["reason"]
        process.send_signal(signal.SIGINT)
        next_event("stopped")
        assert process.wait(WAIT) == 0


# Logs.


def test_logs_are_lines_of_json_without_what_was_asked(camp_client):
    with logged() as lines:
        embed(camp_client, "a1")
        answer = embed(camp_client, "nobody-of-this-name")
        camp_client.get("/v1/nodes?query=whom-i-look-for")
        camp_client.get("/whom-i-look-for")
        until(lambda: len(lines()) == 4)
    entries = lines()
    assert [(line["route"], line["status"]) for line in entries] == [
        ("/v1/embed", 200), ("/v1/embed", 422), ("/v1/nodes", 200), ("other", 404)]  # fmt: skip
    assert entries[1]["id"] == answer.headers["x-request-id"] and entries[0]["seconds"] > 0 and entries[0]["received"] > 0
    told = json.dumps([{name: value for name, value in line.items() if name != "id"} for line in entries])
    assert not any(word in told for word in ("nobody", "whom", '"a1'))
