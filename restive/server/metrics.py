"""What is counted, for Prometheus: requests by route, what the desk decided and learned, and how long it took.

Labels are route templates, methods and statuses, of which there are few whatever anybody asks for. Each app has its own
registry.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from restive.version import __version__

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """The counts of one app."""

    media_type = CONTENT_TYPE_PLAIN_0_0_4

    def __init__(self) -> None:
        self.registry = book = CollectorRegistry()
        labels = ("route", "method", "status")
        self.requests = Counter("restive_requests", "Requests answered.", labels, registry=book)
        self.seconds = Histogram(
            "restive_request_seconds", "Time to answer a request.", ("route", "method"), buckets=SECONDS, registry=book
        )
        self.running = Gauge("restive_requests_running", "Requests under way.", registry=book)
        self.rounds = Counter("restive_rounds_decided", "Rounds decided.", registry=book)
        self.people = Counter("restive_people_advised", "People on the lists of rounds decided.", registry=book)
        self.outcomes = Counter("restive_outcomes_recorded", "Outcomes recorded.", registry=book)
        self.store_errors = Counter("restive_store_errors", "Requests that the store failed at.", registry=book)
        Info("restive_build", "The version.", registry=book).info({"version": __version__})

    def note_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests.labels(route, method, str(status)).inc()
        self.seconds.labels(route, method).observe(seconds)

    def note_round(self, people: int) -> None:
        """Count a round that was decided, with so many people on its list."""
        self.rounds.inc()
        self.people.inc(people)

    def note_outcomes(self, count: int) -> None:
        """Count outcomes that were recorded."""
        self.outcomes.inc(count)

    def note_store_error(self) -> None:
        """Count a request that the store failed at."""
        self.store_errors.inc()

    def render(self) -> bytes:
        """All counts as Prometheus reads them; `media_type` says what that is."""
        return generate_latest(self.registry)
