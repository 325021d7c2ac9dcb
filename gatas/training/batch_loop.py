"""`Loop`: the work of one batch after another, on a CPU or as a captured CUDA graph that is replayed."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gatas.tasks.batches import SHARED

Batch = dict[str, Tensor]


class Loop:
    """Does one batch's `work` after another. If it `captures`, a CUDA graph is replayed that knows which batch is next.

    To warm up before the capture, `work` is done a few times: what it changes is `changed`, and is put back.
    """

    def __init__(
        self,
        work: Callable[[Batch], Tensor],
        captures: bool,
        changed: list[Tensor],
        ahead: Callable[[Batch], None] = lambda batch: None,
    ) -> None:
        self.work, self.captures, self.changed, self.ahead = work, captures, changed, ahead
        self.graph: Any = None
        self.columns: Batch = {}

    def __call__(
        self,
        columns: Batch,
        sizes: list[int],
        first: int = 0,
        stop: Callable[[], bool] = lambda: False,
        enter: Callable[[int], None] = lambda number: None,
    ) -> Tensor:
        """Return (num_batches, …) of what `work` returns, up to where it was stopped; `enter` is told each batch's number."""
        if self.captures:
            return self._replayed(columns, first, stop)
        results = []
        batches = [
            {name: column[k] if name in SHARED else column[k, ..., : sizes[k]] for name, column in columns.items()}
            for k in range(len(sizes))
        ]
        for batch in batches[first : first + 1]:
            self.ahead(batch)
        for number in range(first, len(sizes)):
            if number + 1 < len(sizes):
                self.ahead(batches[number + 1])
            enter(number)
            results.append(self.work(batches[number]))
            if stop():
                break
        return even(results)

    def _replayed(self, columns: Batch, first: int, stop: Callable[[], bool]) -> Tensor:
        if {name: column.shape for name, column in columns.items()} != {n: c.shape for n, c in self.columns.items()}:
            self._capture(columns)
        for name, column in columns.items():
            self.columns[name].copy_(column)
        self.next.fill_(first)
        done = first
        while done < len(self.results):
            self.graph.replay()
            done += 1
            if stop():
                break
        return self.results[first:done].clone()

    def forget(self) -> None:
        self.graph, self.columns = None, {}

    def _capture(self, columns: Batch) -> None:
        self.columns = {name: column.clone() for name, column in columns.items()}
        count, device = next((len(column), column.device) for column in columns.values())
        self.next = torch.zeros((), dtype=torch.int64, device=device)
        before = [tensor.detach().clone() for tensor in self.changed]
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        from gatas.ops.launch import compile_ahead  # Triton, which a CPU does without

        with torch.cuda.stream(side):
            with compile_ahead():
                self.work({name: column[0] for name, column in self.columns.items()})
            for _ in range(3):
                result = self.work({name: column[0] for name, column in self.columns.items()})
            self.results = result.new_zeros(count, *result.shape)
            del result
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            batch = {name: column.index_select(0, self.next.view(1)).squeeze(0) for name, column in self.columns.items()}
            self.results.index_copy_(0, self.next.view(1), self.work(batch)[None].to(self.results.dtype))
            self.next += 1
        with torch.no_grad():
            for tensor, value in zip(self.changed, before, strict=True):
                tensor.copy_(value)


def even(results: list[Tensor]) -> Tensor:
    """Stack results; short batches, which are narrower, are filled up with zeros."""
    if not results:
        return torch.zeros(0)
    widest = max(results, key=lambda result: result.numel())
    together = widest.new_zeros(len(results), *widest.shape)
    for number, result in enumerate(results):
        together[number][tuple(slice(size) for size in result.shape)] = result
    return together
