"""A server that has decided once before anybody asks."""

from pathlib import Path

import pytest

from restive.desk import Desk
from restive.server import warming
from restive.server.warming import find_policies, warm


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk.db")


def make(desk: Desk, name: str, policy: str, shadow: str | None = None) -> None:
    desk.create(name, states=["low", "high"], rewards=[0, 1], policy=policy, shadow=shadow)


def test_the_policies_in_use_are_found_once_each_the_newest_first(desk: Desk) -> None:
    with desk:
        assert find_policies(desk.store) == [("lagrange", None)]
        for name, policy, shadow in (("a", "egt", None), ("b", "egt:eta=0.5", "wiql"), ("c", "egt", None)):
            make(desk, name, policy, shadow)
        assert find_policies(desk.store) == [("egt", None), ("egt:eta=0.5", "wiql")]


def test_warming_plays_each_of_them_and_leaves_the_desk_alone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[tuple[str, int]] = []

    class Watched(Desk):
        def __exit__(self, *rest: object) -> None:
            played.extend((program.config.policy, len(program.rounds)) for program in self.programs())
            super().__exit__(None, None, None)

    with desk:
        make(desk, "a", "egt", "wiql")
        make(desk, "b", "lagrange")
        before = desk.store.audit_log(None)
        monkeypatch.setattr(warming, "Desk", Watched)
        warm(desk)
        assert played == [("lagrange", 2), ("egt", 2)]
        assert desk.store.audit_log(None) == before


def test_what_goes_wrong_with_it_is_nobodys_concern(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "find_policies", lambda store: [("no such policy", None)])
    with desk:
        warm(desk)
