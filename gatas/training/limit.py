"""`Limit`: where a training is cut short that would still go on."""

from dataclasses import dataclass

from gatas.errors import ConfigError


@dataclass(frozen=True)
class Limit:
    """An end after so many epochs, or after the epoch in which so many seconds for each model are over."""

    epochs: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("epochs", self.epochs), ("seconds", self.seconds)):
            if value is not None and not value > 0:
                raise ConfigError(f"the limit is {value:g} {name}; expected more than 0, or none at all.")

    def reached(self, epochs: int, seconds: float) -> str:
        """Return what ends a training, such as `600 epochs` or `6 s`; nothing while it may go on."""
        if self.epochs is not None and epochs >= self.epochs:
            return f"{self.epochs:,} epoch{'s' if self.epochs > 1 else ''}"
        if self.seconds is not None and seconds >= self.seconds:
            return f"{self.seconds:g} s"
        return ""
