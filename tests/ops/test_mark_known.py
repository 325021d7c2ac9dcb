"""Known links among candidates: by a plain loop, by torch, by numba and by Triton."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from gatas.ops.mark_known import KnownInputs, cuda, mark_known, mark_known_torch
from tests.ops.test_evidence import in_interpreter, on_device


def known_links(num_nodes, num_types, num_links, batch, unused_slots, seed):
    rng = np.random.default_rng(seed)
    key = np.sort(rng.integers(num_types * num_nodes, size=num_links))
    slot = np.full(num_nodes, -1, np.int32)
    candidates = rng.permutation(num_nodes)[: int(rng.integers(0, num_nodes + 1))]
    slot[candidates] = rng.permutation(len(candidates) + unused_slots)[: len(candidates)]
    return KnownInputs(
        torch.from_numpy(np.searchsorted(key, np.arange(num_types * num_nodes + 1))),
        torch.from_numpy(rng.integers(num_nodes, size=num_links).astype(np.int32 if seed % 2 else np.int64)),
        torch.from_numpy(rng.integers(num_types, size=batch)),
        torch.from_numpy(rng.integers(num_nodes, size=batch)),
        torch.from_numpy(slot),
        len(candidates) + unused_slots,
    )


def oracle(given):
    out = torch.zeros(len(given.query), given.num_slots, dtype=torch.bool)
    for b, (kind, query) in enumerate(zip(given.link_type.tolist(), given.query.tolist(), strict=True)):
        key = kind * len(given.slot) + query
        for place in range(int(given.known_indptr[key]), int(given.known_indptr[key + 1])):
            slot = int(given.slot[int(given.known_node[place])])
            if slot >= 0:
                out[b, slot] = True
    return out


@in_interpreter
@given(
    num_nodes=st.integers(1, 9),
    num_types=st.integers(1, 3),
    num_links=st.integers(0, 60),
    batch=st.integers(0, 6),
    unused_slots=st.integers(0, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_known_links_are_marked(num_nodes, num_types, num_links, batch, unused_slots, seed):
    given = known_links(num_nodes, num_types, num_links, batch, unused_slots, seed)
    expected = oracle(given)
    for ours in (mark_known(*given), mark_known_torch(given), cuda.mark(on_device(given))):
        assert ours.dtype == torch.bool and torch.equal(ours.cpu(), expected)


def test_nodes_with_more_known_links_than_a_block():
    given = known_links(2, 1, 2000, 5, 0, 1)._replace(slot=torch.tensor([1, 0], dtype=torch.int32), num_slots=2)
    for ours in (mark_known(*given), cuda.mark(on_device(given))):
        assert torch.equal(ours.cpu(), oracle(given)) and ours.all()


def test_the_operator_keeps_its_promises_to_torch():
    torch.library.opcheck(torch.ops.gatas.mark_known.default, tuple(known_links(7, 2, 30, 5, 2, 0)))
