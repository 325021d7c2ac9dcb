"""Arrays as users hand them over: checked and copied to numpy, or refused with the place, the value and what to do."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatas.errors import GraphError

Where = Callable[[int], str]
"""Names the place of an element, such as `edge 17` or `edges.csv, row 18`."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

FLOAT32 = np.finfo(np.float32)


def as_array(values: Any) -> NDArray[Any]:
    """Return a numpy view of a list, an array or a tensor on any device; never to be written to."""
    try:
        if hasattr(values, "detach"):
            values = values.detach().cpu()
            values = (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise GraphError(
            f"a {type(values).__name__} could not be read as an array ({str(error).splitlines()[0]}). "
            "Pass a list, a numpy array or a dense tensor, with rows of one length."
        ) from error
    if np.ma.is_masked(values):
        at = int(np.argmax(np.ma.getmaskarray(values).ravel()))
        raise GraphError(f"element {at} of the array is masked, so its value is missing. Fill it in, or remove it.")
    return array


def as_count(value: Any, what: str) -> int:
    """Return a whole number ≥ 0, as a Python int: sums of these must not wrap."""
    try:
        count = operator.index(value)
    except TypeError:
        count = -1
    if count < 0 or isinstance(value, bool):
        raise GraphError(f"{what} is {value!r}; expected a whole number from 0 on.")
    return count


def as_indices(values: Any, what: str, where: Where) -> Ints:
    """Return a vector of whole numbers ≥ 0. Nothing is rounded, wrapped or read from text."""
    array = as_array(values)
    if array.ndim != 1:
        raise GraphError(f"{what} has shape {array.shape}; expected one dimension, one number per edge or node.")
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        hint = "Cast whole numbers with .astype('int64')" if array.dtype.kind == "f" else "Pass whole numbers"
        at = _first_odd(array)
        raise GraphError(
            f"{where(at)}: {what} is {array.item(at)!r}, of type {array.dtype}; expected integers. "
            f"{hint}, or use gatas.read_graph, which takes any ids."
        )
    if array.dtype == np.uint64 and int(array.max()) > np.iinfo(np.int64).max:
        at = int(array.argmax())
        raise GraphError(f"{where(at)}: {what} {array[at]} does not fit into 63 bits. Renumber from 0.")
    indices = owned(array, np.int64)
    if indices.min() < 0:
        at = int(np.argmax(indices < 0))
        raise GraphError(f"{where(at)}: {what} is {indices[at]}, but ids start at 0. Remove the row or renumber.")
    return indices


def as_weights(values: Any, where: Where) -> Floats:
    """Return positive, finite weights in float32; zeros pass, for the caller to drop."""
    array = as_array(values)
    if array.ndim != 1:
        raise GraphError(f"weight has shape {array.shape}; expected one number per edge.")
    if array.size == 0:
        return np.empty(0, np.float32)
    if array.dtype.kind not in "iuf":
        raise GraphError(f"{where(0)}: weight is {array.item(0)!r}, of type {array.dtype}; expected numbers.")
    wide = array.astype(np.float64)
    usable = (wide == 0) | ((wide >= FLOAT32.tiny) & (wide <= FLOAT32.max))  # NaN compares false
    if not usable.all():
        at = int(np.argmin(usable))
        raise GraphError(
            f"{where(at)}: weight is {array[at]}, but weights must be positive and lie between {FLOAT32.tiny:.0e} and "
            f"{FLOAT32.max:.0e}. Remove the edge, or rescale the weights."
        )
    return wide.astype(np.float32)


def as_features(values: Any, num_nodes: int, where: Where) -> Floats:
    """Return a (num_nodes, F) float32 matrix without NaN or infinity."""
    array = as_array(values)
    if array.ndim != 2:
        raise GraphError(f"features have shape {array.shape}; expected (nodes, features).")
    if len(array) != num_nodes:
        raise GraphError(
            f"features have {len(array)} rows, but the graph has {num_nodes} nodes. Give one row per node, in node order."
        )
    if array.dtype.kind not in "iufb":
        raise GraphError(f"features have type {array.dtype}; expected numbers.")
    with np.errstate(over="ignore"):  # what does not fit becomes infinite, and is refused below
        features = owned(array, np.float32)
    for first in range(0, num_nodes, rows := max(1, (1 << 22) // max(1, array.shape[1]))):
        finite = np.isfinite(features[first : first + rows])
        if not finite.all():
            row, column = (int(at[0]) for at in np.nonzero(~finite))
            raise GraphError(
                f"{where(first + row)}: feature column {column} is {array[first + row, column]}, which is not a finite "
                "float32. Fill or drop missing values first."
            )
    return features


def owned(array: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """Return a copy as `dtype`; what has it already and cannot be written to (mapped, perhaps larger than memory) stays."""
    return array if array.dtype == dtype and not array.flags.writeable else array.astype(dtype)


def kept(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array nobody else can write to: a copy, unless it is read-only already (mapped from a file, or made here)."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    return sealed(np.ascontiguousarray(array.copy() if isinstance(owner, np.ndarray) else array))


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array itself, not to be written to from now on."""
    array.flags.writeable = False
    return array


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written through; the graph's arrays are shared by everything downstream."""
    view = array.view()
    view.flags.writeable = False
    return view


def _first_odd(array: NDArray[Any]) -> int:
    """Return the index of the first element that is no whole number, or 0: what a user most wants to see."""
    if array.dtype.kind != "f":
        return 0
    return int(np.argmax(~(np.floor(array) == array)))
