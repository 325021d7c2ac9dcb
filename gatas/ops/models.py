"""A leading dimension of independent models: every operator has one, and `torch.func.vmap` folds into it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor


def folding_rule(operator: Any, shared: Sequence[int] = ()) -> Callable[..., tuple[Any, Any]]:
    """How an operator runs under vmap: the mapped dimension joins the models', one launch for all.

    Arguments at the places `shared` are one for all models. Gradients are taken outside the vmap: of what it returns.
    """

    def unfolded(result: Tensor, size: int) -> Tensor:
        return result.view(size, -1, *result.shape[1:])

    def rule(info: Any, in_dims: Sequence[int | None], *arguments: Any) -> tuple[Any, Any]:
        if any(in_dims[place] is not None for place in shared):
            raise ValueError(f"{operator} takes one of its arguments for all models; it cannot be mapped over.")
        folded = [
            value if place in shared else _folded(info.batch_size, dim, value)
            for place, (dim, value) in enumerate(zip(in_dims, arguments, strict=True))
        ]
        results = operator(*folded)
        if isinstance(results, Tensor):
            return unfolded(results, info.batch_size), 0
        several = type(results)  # a tuple or a list
        return several(unfolded(result, info.batch_size) for result in results), several(0 for _ in results)

    return rule


def _folded(size: int, dim: int | None, value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    mapped = value.expand(size, *value.shape) if dim is None else value.movedim(dim, 0)
    return mapped.flatten(0, 1)


def one_model(arguments: Sequence[Any]) -> list[Any]:
    """Tensors with a leading dimension for a single model; other arguments as they are."""
    return [value[None] if isinstance(value, Tensor) else value for value in arguments]


def each_model(work: Callable[..., Tensor | tuple[Tensor, ...]], *arguments: Any) -> Any:
    """Call `work` for one model after another and stack what comes back; for devices where a loop costs nothing.

    Tensors have a leading dimension of models, also those within a named tuple; other arguments are the same for all.
    """
    count = len(next(_tensors(arguments)))
    results = [work(*(_of_model(argument, model) for argument in arguments)) for model in range(count)]
    if isinstance(results[0], Tensor):
        return results[0][None] if count == 1 else torch.stack(results)  # type: ignore[arg-type]
    columns = zip(*results, strict=True)
    return tuple(column[0][None] if count == 1 else torch.stack(column) for column in columns)


def _tensors(arguments: Sequence[Any]) -> Iterator[Tensor]:
    for argument in arguments:
        if isinstance(argument, Tensor):
            yield argument
        elif isinstance(argument, tuple):
            yield from _tensors(argument)


def _of_model(argument: Any, model: int) -> Any:
    if isinstance(argument, Tensor):
        return argument[model]
    if isinstance(argument, tuple):
        return type(argument)(*(_of_model(value, model) for value in argument))
    return argument
