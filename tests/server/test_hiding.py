from restive.server.hiding import hide_folders, hide_plans


def test_a_sentence_loses_folders_of_policies_and_nothing_else() -> None:
    assert hide_folders("the policy C:\\Users\\ann\\mine.py is gone") == "the policy mine.py is gone"
    assert hide_folders("see /api/v1/programs, and either/or.") == "see /api/v1/programs, and either/or."


def test_plans_are_found_however_deep() -> None:
    given = {"answer": {"plan": {"policy": "/x/y/a.py:k=1", "shadow": None, "states": ["low"]}}, "round": 3}
    told = {"answer": {"plan": {"policy": "a.py:k=1", "shadow": None, "states": ["low"]}}, "round": 3}
    assert hide_plans(given) == told
