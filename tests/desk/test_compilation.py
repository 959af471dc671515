"""Compiling the kernels of policies ahead of their use."""

import pytest

from restive.desk import Desk, compilation
from restive.desk.compilation import compile_policies


def test_a_program_of_each_policy_decides_and_learns_in_a_store_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[tuple[str, str | None, int, int]] = []
    steps: list[tuple[int, int]] = []

    class Watched(Desk):
        def __exit__(self, *rest: object) -> None:
            for program in self.programs():
                outcomes = sum(totals.outcomes for totals in program.rounds)
                played.append((program.config.policy, program.config.shadow, len(program.rounds), outcomes))
            super().__exit__(None, None, None)

    monkeypatch.setattr(compilation, "Desk", Watched)
    compile_policies([("lagrange", None), ("egt", "wiql")], lambda done, total: steps.append((done, total)))
    assert played == [("lagrange", None, 2, 80), ("egt", "wiql", 2, 80)]
    assert steps == [(1, 2), (2, 2)]
