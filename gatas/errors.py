"""What can go wrong, as one tree.

GatasError              everything the user can cause; the command line shows it as one line
├── GraphError          edges, nodes, features, labels or splits that cannot be used
│   └── StoreError      a stored graph or table that is missing, damaged or of another format
├── DatasetError        a named data set that is unknown or nowhere to be found
├── TransitionError     transitions that cannot be built or do not hold what was asked for
│   └── TooLargeError   a table that would not fit in the memory available
├── ConfigError         settings that are unknown or out of range
├── TrainingError       training that cannot start, go on or be resumed
│   └── LostError       a process that trained together with this one is gone, or hangs
├── JobError            a job in parts that cannot be done, or parts of it that failed
└── MissingExtraError   a package that is needed here comes with an extra, which is not installed; an ImportError too

GatasWarning            accepted, but counted and said
"""


class GatasError(Exception):
    """What came, what was expected, what to do."""


class GraphError(GatasError):
    """Edges, nodes, features, labels or splits that cannot be used."""


class StoreError(GraphError):
    """A stored graph or table that is missing, damaged or of another format."""


class DatasetError(GatasError):
    """A named data set that is unknown or nowhere to be found."""


class TransitionError(GatasError):
    """Transitions that cannot be built, or do not hold what was asked for."""


class TooLargeError(TransitionError):
    """A table that would not fit in the memory available."""


class ConfigError(GatasError):
    """Settings that are unknown or out of range."""


class TrainingError(GatasError):
    """Training that cannot start, go on or be resumed."""


class LostError(TrainingError):
    """A process that trained together with this one is gone, or hangs; started again, they may go on."""


class JobError(GatasError):
    """A job in parts that cannot be done, or parts of it that failed."""


class MissingExtraError(GatasError, ImportError):
    """A package that is needed here comes with an extra of gatas, which is not installed."""

    def __init__(self, needs: str, extra: str) -> None:
        super().__init__(f"{needs}: pip install 'gatas[{extra}]'")


class GatasWarning(UserWarning):
    """Something accepted that may not be what was meant; says how often it occurred."""
