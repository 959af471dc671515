"""The glossary of the pages, in templates/glossary.toml: the definitions that question marks open."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parent.parent / "templates" / "glossary.toml"


class Entry(NamedTuple):
    """A term and its definition, in one to three sentences."""

    title: str
    definition: str


@cache
def read_glossary() -> Mapping[str, Entry]:
    """All entries by the key in templates (`why("lift")`), which is also the anchor on the page (/glossary#lift)."""
    return {key: Entry(**entry) for key, entry in tomllib.loads(FILE.read_text(encoding="utf-8")).items()}
