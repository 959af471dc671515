"""Load a policy from a Python file of the user."""

import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

from restive.errors import InputError
from restive.policies.base import Policy


def load_policy(path: str) -> type[Policy[Any]]:
    """Run the Python file and return the one policy class that it defines."""
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{file.name}: policy file not found.", location=file)
    name = f"restive_own_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a user's file may raise anything
        message = f"{file.name}: the policy file cannot be run ({type(error).__name__}: {error})."
        raise InputError(message, location=file) from error
    found = [entry for entry in vars(module).values() if _is_own(entry, name)]
    if len(found) != 1:
        listed = ", ".join(policy.__name__ for policy in found) or "none"
        message = (
            f"{file.name}: a policy file must define exactly one policy with start and rank; this one has {listed}."
        )
        raise InputError(message, location=file)
    (policy,) = found
    chosen: type[Policy[Any]] = policy
    return chosen


def _is_own(entry: object, module: str) -> bool:
    return (
        inspect.isclass(entry)
        and issubclass(entry, Policy)
        and entry.__module__ == module
        and not inspect.isabstract(entry)
    )
