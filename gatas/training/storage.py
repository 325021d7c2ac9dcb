"""`is_narrow` and `check_range`: what happens to keys and values that float16 cannot hold."""

import torch

from gatas.errors import TrainingError
from gatas.ops.attend_neighbours.contract import STORED_AS
from gatas.training.config import TrainingConfig

ADVICE = (
    "Keys and values are kept in float16 here, and one beyond 65,504 becomes NaN: training.storage=bfloat16 has room for it in "
    "as much memory, float32 in twice as much."
)


def is_narrow(device: torch.device, config: TrainingConfig) -> bool:
    """Whether keys and values are kept in float16, whose range is small: on a GPU alone, and where settings say so."""
    kind = STORED_AS[config.precision] if config.storage == "auto" else config.storage
    return device.type == "cuda" and kind == "float16"


def check_range(logits: torch.Tensor, device: torch.device, config: TrainingConfig) -> None:
    """Refuse logits that are no numbers where a key or a value may have been too large for what it is kept in.

    Waits for the device: called where logits are about to be read by the host anyway.
    """
    if is_narrow(device, config) and bool(logits.isnan().any()):
        raise TrainingError(f"what the model makes of the data is not a number, though its weights are. {ADVICE}")
