"""Prometheus metrics: requests by route, rounds, outcomes and errors of the store.

Labels are route templates, methods and statuses, so their number is bounded. Each app has its own registry.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from restive.version import __version__

BUCKET_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """The metrics of one app."""

    media_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        labels = ("route", "method", "status")
        self.requests = Counter("restive_requests", "Requests answered.", labels, registry=registry)
        self.seconds = Histogram(
            "restive_request_duration_seconds",
            "Duration of requests.",
            ("route", "method"),
            buckets=BUCKET_SECONDS,
            registry=registry,
        )
        self.running = Gauge("restive_requests_in_progress", "Requests in progress.", registry=registry)
        self.rounds = Counter("restive_rounds_decided", "Rounds decided.", registry=registry)
        self.people = Counter("restive_people_listed", "People on the lists of decided rounds.", registry=registry)
        self.outcomes = Counter("restive_outcomes_recorded", "Outcomes recorded.", registry=registry)
        self.store_errors = Counter(
            "restive_store_errors", "Requests that failed because of the store.", registry=registry
        )
        Info("restive_build", "The version.", registry=registry).info({"version": __version__})

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests.labels(route, method, str(status)).inc()
        self.seconds.labels(route, method).observe(seconds)

    def count_round(self, people: int) -> None:
        """Count a decided round with this many people on its list."""
        self.rounds.inc()
        self.people.inc(people)

    def render(self) -> bytes:
        """All metrics in the Prometheus text format."""
        return generate_latest(self.registry)
