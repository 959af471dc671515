from restive.server import rate_limit
from restive.server.rate_limit import Buckets, Rates, name_address

HERE = {"client": ("10.0.0.1", 5000)}


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_gives_its_burst_at_once_and_then_its_rate() -> None:
    clock = Clock()
    buckets = Buckets(rate=8, burst=3, clock=clock)
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 0]
    assert buckets.take("a") == 0.125
    clock.now += 0.0625
    assert buckets.take("a") == 0.0625
    clock.now += 0.0625
    assert buckets.take("a") == 0
    clock.now += 1000
    assert [buckets.take("a") > 0 for _ in range(4)] == [False, False, False, True]


def test_asking_while_there_is_nothing_does_not_put_the_next_drop_off() -> None:
    clock = Clock()
    buckets = Buckets(rate=1, burst=1, clock=clock)
    buckets.take("a")
    for _ in range(9):
        clock.now += 0.1
        assert buckets.take("a") > 0
    clock.now += 0.11
    assert buckets.take("a") == 0


def test_callers_have_a_bucket_each() -> None:
    buckets = Buckets(rate=1, burst=1, clock=Clock())
    assert [buckets.take(name) for name in "abc"] == [0, 0, 0]
    assert buckets.take("b") > 0


def test_of_too_many_buckets_the_one_not_used_for_longest_is_forgotten() -> None:
    buckets = Buckets(rate=1, burst=1, most=3, clock=Clock())
    for name in ("a", "b", "c", "a", "d"):
        buckets.take(name)
    assert len(buckets) == 3
    assert buckets.take("a") > 0
    assert buckets.take("b") == 0


def test_a_good_secret_counts_against_its_token_and_a_guess_against_the_address() -> None:
    known = Rates(rate=1, burst=1, sign_ins=1)
    known.remember("rst_7_right", 7)
    assert known.name_caller("rst_7_right", HERE) == "token 7"
    assert known.name_caller("rst_7_wrong", HERE) == "10.0.0.1"
    assert known.name_caller("", HERE) == "10.0.0.1"
    known.forget("rst_7_right")
    assert known.name_caller("rst_7_right", HERE) == "10.0.0.1"


def test_secrets_are_not_kept_as_they_are_and_not_without_end() -> None:
    known = Rates(rate=1, burst=1, sign_ins=1)
    for number in range(rate_limit.MAX_SECRETS + 10):
        known.remember(f"secret {number}", number)
    assert len(known._known) == rate_limit.MAX_SECRETS
    assert not any(b"secret" in digest for digest in known._known)


def test_addresses_tell_callers_apart_but_not_what_one_caller_has_many_of() -> None:
    names = [name_address({"client": (host, 1)}) for host in ("::ffff:10.0.0.1", "fe80::1%eth0", "unix")]
    assert names == ["10.0.0.1", "fe80::/64", "unix"]
    assert name_address({}) == name_address({"client": None}) == ""
    assert name_address({"client": ("2001:db8::1", 1)}) == name_address({"client": ("2001:db8::ffff", 9)})
    assert name_address({"client": ("2001:db8::1", 1)}) != name_address({"client": ("2001:db8:0:1::1", 1)})


def test_a_secret_is_known_from_when_it_was_found_good_until_it_is_not() -> None:
    known = Rates(rate=1, burst=1, sign_ins=1)
    known.remember("right", None)
    assert [known.knows(secret) for secret in ("right", "wrong", "")] == [True, False, False]
    known.forget("right")
    assert not known.knows("right")
