"""Names and numbers, both ways."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restive.desk.names import ERASED, Names
from restive.desk.pseudonyms import Pseudonyms


def roster(*names: str | None) -> pl.Series:
    return pl.Series("name", names, dtype=pl.String)


def test_names_are_found_by_place_and_places_by_name() -> None:
    names = Names(roster("ann", None, "cem"))
    assert names.find(pl.Series(["cem", "ann", "dee", "cem"])).to_list() == [2, 0, None, 2]
    assert names.call(np.array([2, 1, 0])) == ["cem", ERASED, "ann"]
    assert names.call([]) == []
    assert len(names) == 3


def test_an_erased_place_is_found_by_no_name() -> None:
    names = Names(roster("ann", None, None))
    assert names.find(roster(ERASED, "", None)).to_list() == [None, None, None]


def test_new_names_are_found_after_the_last_also_when_some_were_looked_up_before() -> None:
    names = Names(roster("ann"))
    assert names.find(roster("ben")).to_list() == [None]
    names.add(roster("ben", "cem"))
    assert names.find(roster("cem", "ben", "ann")).to_list() == [2, 1, 0]
    assert names.call([0, 1, 2]) == ["ann", "ben", "cem"]


def test_names_differ_by_case_accents_and_leading_zeros() -> None:
    names = Names(roster("Ann", "ann", "änn", "7", "007"))
    assert names.find(roster("007", "7", "änn", "ann", "Ann", "ANN")).to_list() == [4, 3, 2, 1, 0, None]


SOME = st.lists(st.sampled_from(["a", "A", "b", "é", "7", "07", ""]), max_size=7)


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(SOME.map(lambda names: list(dict.fromkeys(names))), SOME, st.booleans())
def test_few_names_are_found_as_many_are(known: list[str], asked: list[str], same: bool) -> None:
    names, wanted = Names(roster(*(name or None for name in known))), roster(*(known if same else asked), None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("restive.desk.names.FEW", -1)
        by_join = Names(names.roster).find(wanted).to_list()
    assert names.find(wanted).to_list() == by_join


@pytest.mark.parametrize("few", [-1, 10])
def test_names_are_known_when_all_of_them_are_on_the_roster_letter_by_letter(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("restive.desk.names.FEW", few)
    names = Names(roster("ann", "ben"))
    assert names.knows(roster("ann", "ben"))
    assert names.knows(roster("ben")) is (few > 0)  # of many this would take too long to say
    for others in (roster("ann", "Ben"), roster("ann "), roster("ann", None), pl.Series([1, 2])):
        assert not names.knows(others)
    assert not Names(roster("ann", None)).knows(roster("ann", None))


def test_with_pseudonyms_the_roster_has_codes_and_people_hear_the_names_that_they_gave() -> None:
    key = Pseudonyms(b"not so secret")
    names = Names(roster(), key)
    inward = names.inward(roster("ann", "ben"))
    assert inward.to_list() == key.hide(["ann", "ben"])
    names.add(inward)
    assert names.roster.to_list() == key.hide(["ann", "ben"])
    assert names.call([1, 0]) == ["ben", "ann"]
    later = Names(names.roster, key)
    later.inward(roster("ben"))
    assert later.call([0, 1]) == [*key.hide(["ann"]), "ben"]


def test_nobody_yet_is_a_roster_too() -> None:
    names = Names(roster())
    assert names.find(roster("ann")).to_list() == [None]
    assert names.inward(roster("ann")).to_list() == ["ann"]


def test_names_are_alike_when_only_zeros_before_them_or_capitals_differ() -> None:
    names = Names(roster("007", "Ann", None, "Straße", "10"))
    asked = roster("7", "0007", "ANN", "1", "100", "70", "straße", "anna", "")
    assert names.find_alike(asked) == {"7": "007", "0007": "007", "ANN": "Ann", "straße": "Straße"}
    assert names.find_alike(roster("007", "Ann")) == {}  # who is known is like nobody else
    assert names.find_alike(roster()) == {}
    assert Names(roster()).find_alike(asked) == {}


def test_zeros_alone_are_alike_and_the_first_of_several_is_named() -> None:
    assert Names(roster("0")).find_alike(roster("000")) == {"000": "0"}
    assert Names(roster("7", "07")).find_alike(roster("007")) == {"007": "7"}


def test_with_pseudonyms_nothing_can_be_said_of_likeness() -> None:
    key = Pseudonyms(b"not so secret")
    names = Names(pl.Series("name", key.hide(["007"])), key)
    assert names.find_alike(roster("7")) == {}
