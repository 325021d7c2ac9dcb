"""`mark_known` by numba."""

import numpy as np
import torch
from torch import Tensor

from gatas.ops.arrays import as_numpy
from gatas.ops.compiled import compiled
from gatas.ops.mark_known.contract import KnownInputs
from gatas.ops.threads import run_rows


def mark(given: KnownInputs) -> Tensor:
    """(B, C) bool."""
    out = np.empty((len(given.query), given.num_slots), np.bool_)  # numpy asks for huge pages
    arrays = [as_numpy(tensor) for tensor in given[:5]]
    run_rows(lambda first, last: mark_rows(*arrays, first, last, out), len(out), given.num_slots)
    return torch.from_numpy(out)


@compiled()
def mark_rows(known_indptr, known_node, link_type, query, slot, first, last, out):
    for b in range(first, last):
        out[b] = False
        key = link_type[b] * slot.size + query[b]
        for known in range(known_indptr[key], known_indptr[key + 1]):
            place = slot[known_node[known]]
            if place >= 0:
                out[b, place] = True
