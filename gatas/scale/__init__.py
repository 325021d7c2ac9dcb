"""Beyond one process. Jobs in parts: transitions, embeddings and predictions for all nodes, by one process, a pool, or Ray."""

from gatas.scale.course import State
from gatas.scale.engines import Engine, EngineName, open_engine
from gatas.scale.job import Job, Task, run_job

__all__ = ["Engine", "EngineName", "Job", "State", "Task", "open_engine", "run_job"]
