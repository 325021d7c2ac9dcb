"""`ServerMetrics`: what Prometheus reads. No id, text or address is a label."""

import prometheus_client as prometheus

from gatas import __version__

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class ServerMetrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        own = self.registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=own)
        self.requests = prometheus.Counter("gatas_requests", "Requests answered", ["method", "route", "code"], registry=own)
        self.seconds = prometheus.Histogram(
            "gatas_request_seconds", "Seconds from the first byte to the response", ["route"], buckets=SECONDS, registry=own
        )
        self.in_progress = prometheus.Gauge("gatas_requests_in_progress", "Requests not answered yet", registry=own)
        self.waiting = prometheus.Gauge("gatas_queue_depth", "Requests that wait for the model", registry=own)
        self.batch = prometheus.Histogram("gatas_batch_size", "Requests answered together", buckets=SIZES, registry=own)
        self.batch_seconds = prometheus.Histogram("gatas_batch_seconds", "Seconds per batch", buckets=SECONDS, registry=own)
        self.reloads = prometheus.Counter("gatas_model_reloads", "Models loaded or refused", ["outcome"], registry=own)
        self.model = prometheus.Info("gatas_model", "The model that answers", registry=own)
        prometheus.Info("gatas_build", "The installed version", registry=own).info({"version": __version__})

    def to_text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return prometheus.generate_latest(self.registry)
