"""The registry: every policy by its name, settings in a line of text, and sentences for what cannot be read."""

from dataclasses import is_dataclass

import pytest

from restive import POLICIES, InputError, make_policy
from restive.policies.base import Learner, Oracle, Policy
from restive.policies.egt import Egt
from restive.policies.lagrange import Lagrange
from restive.policies.wiql import Wiql


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_a_frozen_record_under_its_own_name(name: str) -> None:
    policy = POLICIES[name]
    assert policy.name == name
    assert is_dataclass(policy)
    assert issubclass(policy, Learner | Oracle)
    assert policy.__module__ == f"restive.policies.{name.replace('-', '_')}"
    assert (policy.__doc__ or "").endswith(".")


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_made_again_from_its_settings(name: str) -> None:
    policy = make_policy(name)
    assert type(policy)(**policy.settings()) == policy
    written = ",".join(f"{key}={value}" for key, value in policy.settings().items())
    assert make_policy(f"{name}:{written}") == policy


def test_no_learner_has_the_name_of_an_oracle() -> None:
    for name, policy in POLICIES.items():
        assert name.endswith("-oracle") == issubclass(policy, Oracle)


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        ("egt", Egt()),
        ("egt:", Egt()),
        ("egt:eta=0.5", Egt(eta=0.5)),
        ("egt:eta=0.5,gamma=-1,exploration=most", Egt(eta=0.5, gamma=-1, exploration="most")),
        ("egt:gamma=none", Egt()),
        ("egt:gamma=-inf", Egt(gamma=float("-inf"))),
        ("egt:D=1e-3", Egt(D=0.001)),
        ("wiql:discount=1", Wiql(discount=1)),
    ],
)
def test_settings_are_read_from_a_line_of_text(spec: str, policy: Policy[object]) -> None:
    assert make_policy(spec) == policy


def test_a_policy_passes_as_it_is() -> None:
    policy = Egt(eta=0.1)
    assert make_policy(policy) is policy


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("egtt", r"there is no policy 'egtt'; there are random, egt, .*; did you mean 'egt'\?$"),
        ("zzz", r"there is no policy 'zzz'; there are random, egt, .*[a-z]\.$"),
        ("", "there is no policy ''"),
        ("egt:epsilon=1", r"egt: 'epsilon=1' is not a setting; write setting=value. Settings: gamma, eta, D, p, expl"),
        ("egt:name=mine", "egt: 'name=mine' is not a setting"),
        ("egt:eta", "egt: 'eta' is not a setting; write setting=value"),
        ("random:seed=1", "random: 'seed=1' is not a setting; write setting=value. Settings: none"),
        ("egt:eta=true", "egt: eta is True; it must be of type float or int"),
        ("egt:eta=", "egt: eta is ''; it must be of type float or int"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused(spec: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make_policy(spec)


@pytest.mark.parametrize("spec", [Egt, None, 3, {"name": "egt"}])
def test_what_is_no_policy_is_refused(spec: object) -> None:
    with pytest.raises(
        InputError, match=r"policy is .*; it must be a policy such as Egt\(eta=0.5\), or a text such as"
    ):
        make_policy(spec)  # type: ignore[arg-type]


def test_settings_can_be_given_by_name() -> None:
    assert make_policy("lagrange:mixture=false", curiosity=2) == Lagrange(mixture=False, curiosity=2)
    assert make_policy(Lagrange(curiosity=2), mixture=False) == Lagrange(mixture=False, curiosity=2)
    for policy in ("lagrange", Lagrange()):
        with pytest.raises(InputError, match=r"lagrange: 'curious' is not a setting\. Settings: discount"):
            make_policy(policy, curious=2)
