"""What every doctest may take for granted."""

import numpy
import pytest


@pytest.fixture(autouse=True)
def _names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["np"] = numpy
