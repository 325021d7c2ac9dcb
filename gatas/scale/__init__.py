"""Beyond one process. Jobs in parts: transitions, embeddings and predictions for all nodes, by one process, a pool, or Ray."""

from gatas.scale.engines import Engine, EngineName, open_engine
from gatas.scale.job import run_job
from gatas.scale.progress import JobProgress
from gatas.scale.task import Job, JobTask

__all__ = ["Engine", "EngineName", "Job", "JobProgress", "JobTask", "open_engine", "run_job"]
