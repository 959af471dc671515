"""A day of a server in compressed time: as many requests as one a second makes in 24 hours, as fast as they go.

The requests are those of a team and its platform: lists, statuses, pages, rounds and outcomes as JSON and as files, uploads
that are refused, and sign-ins. After each of 24 hours the memory of the server is read.
"""

import json
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from restive.desk import Desk
from restive.desk.replay import replay
from server.trials.served import Served

HOURS, REQUESTS_PER_HOUR = 24, 3600
PROGRAMS, PEOPLE, CALLERS = 10, 200, 4
PLAN: dict[str, Any] = {
    "states": ["low", "high"],
    "rewards": [0, 1],
    "budget": 10,
    "policy": "egt",
    "display": ["phone"],
}
READS = (
    "/api/v1/programs/{name}/status", "/api/v1/programs/{name}/people?limit=50", "/api/v1/programs/{name}/rounds?limit=10",
    "/api/v1/programs/{name}/history?agent=p007", "/api/v1/programs/{name}/results", "/api/v1/programs", "/programs/{name}",
    "/programs/{name}/list", "/health", "/ready", "/metrics",
)  # fmt: skip


class Team:
    """One who uses a server: mostly reads, and now and then decides, reports or sends something wrong."""

    def __init__(self, address: str, seed: int) -> None:
        self._client = httpx.Client(base_url=address, timeout=120)
        self._generator = np.random.default_rng(seed)
        self.seen: Counter[int] = Counter()

    def ask(self, times: int) -> None:
        for _ in range(times):
            name, kind = f"p{self._generator.integers(PROGRAMS)}", self._generator.random()
            if kind < 0.004:
                answer = self._decide(name)
            elif kind < 0.02:
                answer = self._client.post(
                    f"/api/v1/programs/{name}/outcomes", json={"outcomes": [{"agent": "p001", "next_state": "loud"}]}
                )
            elif kind < 0.03:
                answer = self._client.get(f"/api/v1/programs/{name}/tables/people.csv")
            else:
                path = READS[int(self._generator.integers(len(READS)))]
                answer = self._client.get(path.format(name=name), headers={"Accept": "*/*"})
            self.seen[answer.status_code] += 1
            assert answer.status_code in (200, 201, 303, 404, 409, 422), (answer.status_code, answer.text[:300])

    def _decide(self, name: str) -> httpx.Response:
        """A round from a file or as JSON; its states are the results of the round before."""
        states = self._generator.choice(["low", "high"], PEOPLE).tolist()
        agents = [f"p{number:03}" for number in range(PEOPLE)]
        path = f"/api/v1/programs/{name}/rounds"
        if self._generator.random() < 0.5:
            return self._client.post(path, json={"states": {"agent": agents, "state": states}, "again": True})
        rows = "\n".join(f"{agent},{state},+49 30 {agent[1:]}" for agent, state in zip(agents, states, strict=True))
        headers = {"Content-Type": "text/csv"}
        return self._client.post(f"{path}?again=true", content=f"agent,state,phone\n{rows}\n", headers=headers)

    def close(self) -> None:
        self._client.close()


def read_mib(served: Served) -> float:
    """The memory of the server's process and its children."""
    processes = [served.process, *served.process.children(recursive=True)]
    return float(sum(process.memory_info().rss for process in processes)) / 2**20


def check_day(store: Path, hours: int = HOURS, requests_per_hour: int = REQUESTS_PER_HOUR) -> dict[str, Any]:
    """Play a day; the memory after each hour in MiB, and how many requests there were of each status."""
    with Desk(store) as desk:
        for number in range(PROGRAMS):
            desk.create(f"p{number}", **PLAN)
    memory: list[float] = []
    with Served(str(store)) as served, ThreadPoolExecutor(CALLERS) as threads:
        while httpx.get(f"{served.address}/ready").status_code != 200:
            time.sleep(0.1)
        teams = [Team(served.address, seed) for seed in range(CALLERS)]
        for _ in range(hours):
            for done in [threads.submit(team.ask, requests_per_hour // CALLERS) for team in teams]:
                done.result()
            memory.append(round(read_mib(served), 1))
            print(f"hour {len(memory)}: {memory[-1]} MiB", file=sys.stderr, flush=True)
        for team in teams:
            team.close()
        served.end()
    with Desk(store) as desk:
        rounds = sum(len(program.rounds) for program in desk.programs())
        assert all(replay(program).proven for program in desk.programs())
    seen = sum((team.seen for team in teams), Counter[int]())
    return {"requests": sum(seen.values()), "statuses": dict(sorted(seen.items())), "rounds": rounds, "memory": memory}


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(check_day(Path(folder) / "store.db")))
