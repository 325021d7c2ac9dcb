"""How many requests does `gatas serve` answer in a second, how long does one wait, and does memory grow?

    python -m benchmarks.serving RUN [--requests 10000] [--seconds 10]

Server and clients share this machine. A client sends its next request when it has the response, over one connection.
"""

import argparse
import asyncio
import json
import signal
import subprocess
import sys
from itertools import count
from time import perf_counter, sleep
from typing import Any

import httpx
import numpy as np
import psutil

from benchmarks.report import Report

CLIENTS = (1, 8, 32)
REQUESTS = {
    "/v1/embed, 1 id": ("/v1/embed", lambda node: {"ids": [node]}),
    "/v1/predict, 10 ids": ("/v1/predict", lambda node: {"ids": [(node + 97 * k) % NUM_NODES for k in range(10)]}),
    "/v1/explain": ("/v1/explain", lambda node: {"id": node, "top": 20}),
    "/v1/neighbours": ("/v1/neighbours", lambda node: {"id": node}),
}
NUM_NODES = 1797
"""Nodes of digits, which are requested one after another."""


async def send_requests(address: str, kind: str, clients: int, seconds: float, requests: int | None = None) -> list[float]:
    """Return the seconds that each request took."""
    path, body = REQUESTS[kind]
    times, numbers, end = list[float](), count(), perf_counter() + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection(*address.removeprefix("http://").split(":"))
        while perf_counter() < end if requests is None else len(times) + clients <= requests:
            started = perf_counter()
            await post(reader, writer, path, body(next(numbers) * 31 % NUM_NODES))
            times.append(perf_counter() - started)
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return times


async def post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, body: Any) -> bytes:
    """Send a request and return its response, by hand: a client that does more would take the server's share of the machine."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    writer.write(head.encode() + content)
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
    answer = await reader.readexactly(int(headers["content-length"]))
    assert lines[0].split()[1] == "200", answer
    return answer


def measure(report: Report, address: str, process: psutil.Process, seconds: float) -> None:
    rows = []
    for kind in REQUESTS:
        asyncio.run(send_requests(address, kind, 1, 1.0))  # warm
        for clients in CLIENTS:
            before, worked, started = batches(address), cpu_seconds(process), perf_counter()
            times = asyncio.run(send_requests(address, kind, clients, seconds))
            rate = len(times) / (perf_counter() - started)
            work = 1e3 * (cpu_seconds(process) - worked) / len(times)
            calls, answered = (now - then for now, then in zip(batches(address), before, strict=True))
            p50, p99 = (f"{1e3 * float(np.quantile(times, share)):.1f}" for share in (0.5, 0.99))
            rows.append([kind, clients, f"{rate:.0f}", p50, p99, f"{answered / calls:.1f}", f"{work:.1f}"])
    report.table(
        ["request", "clients", "requests/s", "p50, ms", "p99, ms", "requests per batch", "server's CPU, ms each"], rows
    )


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def batches(address: str) -> tuple[float, float]:
    """Return how many batches the model has answered, and how many requests were in them."""
    lines = httpx.get(f"{address}/metrics", verify=False).text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if line.startswith("gatas_batch_size_"))
    return float(values["gatas_batch_size_count"]), float(values["gatas_batch_size_sum"])


def grow(report: Report, address: str, process: psutil.Process, requests: int) -> None:
    """Report the memory before and after many requests by 8 clients."""
    asyncio.run(send_requests(address, "/v1/embed, 1 id", 8, 0, 1000))
    held = [process.memory_info().rss]
    for _ in range(2):
        asyncio.run(send_requests(address, "/v1/embed, 1 id", 8, 0, requests // 2))
        held.append(process.memory_info().rss)
    mib = [f"{size / 2**20:.1f}" for size in held]
    report.add(
        f"After 1,000 requests the server held {mib[0]} MiB, after {requests // 2:,} more {mib[1]}, and after {requests:,} "
        f"{mib[2]}: {(held[2] - held[0]) / 2**20:+.1f} MiB."
    )


def main() -> None:
    arguments = parse()
    report = Report("serving", "Requests answered over HTTP", ("torch", "fastapi", "uvicorn"))
    load = f"load average {psutil.getloadavg()[0]:.0f} on {psutil.cpu_count()} cores"
    report.add(f"- the machine is shared: other jobs ran beside it, {load}; server and clients share it too")
    command = [sys.executable, "-c", "from gatas.cli import main; main()", "serve", arguments.run, "--port", "0"]
    started = perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[2].rstrip(";")
        about = wait_for(address)
        process = psutil.Process(server.pid)
        report.add(f"- model: {about['num_nodes']:,} nodes, {about['num_edges']:,} edges, {about['task']}, vectors of "
                   f"{about['embedding_size']}; ready after {perf_counter() - started:.1f} s")  # fmt: skip
        measure(report, address, process, arguments.seconds)
        grow(report, address, process, arguments.requests)
        server.send_signal(signal.SIGTERM)
        report.add(f"\nThe server stopped with exit code {server.wait()}.")
    report.write()


def wait_for(address: str) -> Any:
    """Return what the server says about its model, once it is loaded."""
    while httpx.get(f"{address}/v2/health/ready", verify=False).status_code != 200:
        sleep(0.1)
    return json.loads(httpx.get(f"{address}/v1/model", verify=False).text)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="the folder of a run of digits")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each row")
    return parser.parse_args()


if __name__ == "__main__":
    main()
