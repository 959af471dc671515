from pathlib import Path

import pytest

from restive.desk.pseudonyms import FOLDER, find_key
from restive.errors import InputError
from restive.policies.loader import load_policy
from restive.server.hiding import hide_configs, hide_folders, name_policy


def test_a_sentence_loses_folders_of_policies_and_nothing_else() -> None:
    assert hide_folders("the policy C:\\Users\\ann\\mine.py is gone") == "the policy mine.py is gone"
    assert hide_folders("see /api/v1/programs, and either/or.") == "see /api/v1/programs, and either/or."


def test_configs_are_found_however_deep() -> None:
    given = {"answer": {"config": {"policy": "/x/y/a.py:k=1", "shadow": None, "states": ["low"]}}, "round": 3}
    reported = {"answer": {"config": {"policy": "a.py:k=1", "shadow": None, "states": ["low"]}}, "round": 3}
    assert hide_configs(given) == reported


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        ("/home/ann/.local/share/restive/keys/1844.key: the key is not there", "1844.key: the key is not there"),
        ("/srv/our rules/v 2/mine.py: cannot be run (NameError: x).", "mine.py: cannot be run (NameError: x)."),
        ("policy is '/home/ann/a b/x.py'; choose", "policy is 'x.py'; choose"),
        (r"policy is 'C:\\Users\\An Na\\x.py'; choose", "policy is 'x.py'; choose"),
        (r"\\host\our share\x.py: gone", "x.py: gone"),
        ("C:/Program Files (x86)/x.py: gone", "x.py: gone"),
        ("/home/o'brien/x.py: gone", "x.py: gone"),
        ("/tmp/x.csv (or /var/y.csv), it is either/or", "x.csv (or y.csv), it is either/or"),
        ("see https://example.org/home/a/b and ann/home/ben", "see https://example.org/home/a/b and ann/home/ben"),
        ("/programs/a/list", "/programs/a/list"),
    ],
)
def test_files_are_reported_by_their_last_name_alone(said: str, reported: str) -> None:
    assert hide_folders(said) == reported


def test_what_the_desk_says_of_its_own_files_names_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "it's: odd, (very) odd"
    monkeypatch.setenv(FOLDER, str(folder))
    with pytest.raises(InputError) as of_key:
        find_key("1844")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as of_policy:
        load_policy(str(tmp_path / "no such" / "mine.py"))
    for error, file in ((of_key, "1844.key"), (of_policy, "mine.py")):
        assert str(tmp_path) in str(error.value)
        assert hide_folders(str(error.value)).startswith(f"{file}: ")


def test_a_policy_is_named_without_its_folder_on_every_system() -> None:
    given = ["C:\\our rules\\mine.py:depth=2", "/a b/mine.py", "egt", "x:file=/a.py"]
    assert [name_policy(spec) for spec in given] == ["mine.py:depth=2", "mine.py", "egt", "x:file=/a.py"]
