"""`restive new policy` writes a file that works as it is."""

from pathlib import Path

import pytest

from restive import make_policy
from restive.checks import check_policy
from restive.errors import InputError
from restive.new import new_policy


@pytest.mark.parametrize(("name", "title"), [("mine.py", "Mine"), ("next-best_1.py", "NextBest1")])
def test_a_new_policy_passes_the_checks_under_the_name_of_its_file(tmp_path: Path, name: str, title: str) -> None:
    new_policy(tmp_path / name)
    check_policy(str(tmp_path / name))
    assert type(make_policy(f"{tmp_path / name}:explore=0.2")).__name__ == title


def test_a_file_that_exists_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("kept")
    with pytest.raises(InputError, match="this file exists"):
        new_policy(tmp_path / "mine.py")
    assert (tmp_path / "mine.py").read_text() == "kept"


@pytest.mark.parametrize("name", ["mine.txt", "1st.py", "class.py", "Mine.py"])
def test_a_name_that_cannot_be_a_policy_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"a policy is a \.py file"):
        new_policy(tmp_path / name)
    assert not (tmp_path / name).exists()
