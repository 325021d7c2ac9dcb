"""`Rates`: the few settings that may differ between models of one shape that learn as one program."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gatas.errors import ConfigError
from gatas.nn.dropout import Dropout
from gatas.training.config import Config

OWN_SETTINGS = ("training.learning_rate", "training.l2", "model.dropout", "model.input_noise")
"""What models that learn as one program may have each for itself; all else is the program's."""


@dataclass(frozen=True)
class Rates:
    """Learning rate, L2 and probabilities of dropout of each of M models."""

    learning_rate: list[float]
    l2: list[float]
    dropout: dict[str, Tensor]  # (M,) float64 by the name of the buffer that it stands for; those that all share are left out

    @classmethod
    def of(cls, models: Sequence[nn.Module], configs: Sequence[Config], device: torch.device) -> "Rates | None":
        """Collect what differs between models; None where nothing does."""
        check_one_program(configs)
        layers = [dict(_dropouts(model)) for model in models]
        found = {name: [own[name].probability for own in layers] for name in layers[0]}
        differing = {f"{name}.rate": probabilities for name, probabilities in found.items() if len(set(probabilities)) > 1}
        rates = [config.training.learning_rate for config in configs]
        l2 = [config.training.l2 for config in configs]
        if not differing and len(set(rates)) == len(set(l2)) == 1:
            return None
        dropout = {name: torch.tensor(own, dtype=torch.float64, device=device) for name, own in differing.items()}
        return cls(rates, l2, dropout)

    def part(self, rows: list[int]) -> "Rates":
        """Return what some of the models have."""
        dropout = {name: rates[rows] for name, rates in self.dropout.items()}
        return Rates([self.learning_rate[row] for row in rows], [self.l2[row] for row in rows], dropout)


def check_one_program(configs: Sequence[Config]) -> None:
    """Refuse models that differ in more than what each may have for itself."""
    first, *others = (_shared_settings(config) for config in configs)
    for other in others:
        for name, value in first.items():
            if other[name] != value:
                raise ConfigError(
                    f"{name} is {value!r} for one model and {other[name]!r} for another; models that learn as one program "
                    f"may differ in {', '.join(OWN_SETTINGS)} only. Train them one after another."
                )


def _shared_settings(config: Config) -> dict[str, object]:
    sections = {"model": config.model.model_dump(), "training": config.training.model_dump()}
    named = {f"{section}.{key}": value for section, values in sections.items() for key, value in values.items()}
    return {name: value for name, value in named.items() if name not in OWN_SETTINGS}


def _dropouts(model: nn.Module) -> list[tuple[str, Dropout]]:
    return [(name, layer) for name, layer in model.named_modules() if isinstance(layer, Dropout)]
