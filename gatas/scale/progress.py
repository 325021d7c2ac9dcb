"""How far a job is: parts, bytes and time left."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic

from gatas.scale.parts import Part


@dataclass(frozen=True)
class JobProgress:
    """How far a job is."""

    done: int
    total: int
    failed: int
    num_bytes: int
    share: float  # of the estimated work
    seconds: float
    seconds_left: float | None  # None: not known yet


JobProgressCallback = Callable[[JobProgress], None]


class JobProgressCounter:
    """Counts what is done, and tells."""

    def __init__(self, seconds_of: dict[Part, float], waiting: Iterable[Part], report: JobProgressCallback) -> None:
        self.seconds_of, self.report = seconds_of, report
        left = [seconds_of[part] for part in waiting]
        self.total, self.done, self.failed, self.num_bytes = len(seconds_of), len(seconds_of) - len(left), 0, 0
        self.whole = sum(seconds_of.values())
        self.before = self.work = self.whole - sum(left)
        self.started = monotonic()
        self._say()

    def tell(self, part: Part, num_bytes: int) -> None:
        self.done += 1
        self.num_bytes += num_bytes
        self.work += self.seconds_of[part]
        self._say()

    def fail(self) -> None:
        self.failed += 1
        self._say()

    def _say(self) -> None:
        seconds, now = monotonic() - self.started, self.work - self.before
        left = seconds / now * (self.whole - self.work) if now > 0 else None
        share = self.work / self.whole if self.whole else 1.0
        self.report(JobProgress(self.done, self.total, self.failed, self.num_bytes, share, seconds, left))
