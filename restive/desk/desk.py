"""The desk: creates and opens the programs of a store. `Desk()` opens the user's own file.

desk = Desk("coupons.db")
program = desk.create("coupons", states=["low", "high"], rewards=[0, 1], budget=50)
recommendation = program.decide("monday.csv")
program.learn("results.csv")
"""

import copy
import hashlib
import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from restive.desk.audit import NO_CONTEXT, RequestContext
from restive.desk.config import Config, Words, check_name, find_template
from restive.desk.database import check_place
from restive.desk.events import Created, WarmStarted
from restive.desk.program import Program
from restive.desk.roster import make_key
from restive.desk.store import Store
from restive.desk.warm_start import check_match, default_settings, make_warm_start, read_model
from restive.errors import Conflict, InputError

if TYPE_CHECKING:
    from restive.logs.model import FittedModel

STORE_VARIABLE = "RESTIVE_STORE"
STORE_SUFFIXES = (".db", ".sqlite", ".sqlite3")


def default_store() -> Path:
    """The SQLite file in the user's data folder."""
    return Path(platformdirs.user_data_dir("restive", appauthor=False)) / "desk.db"


def name_store(address: str) -> str:
    """The option that names this store in a command; empty for the default store."""
    default = address in (str(default_store()), os.environ.get(STORE_VARIABLE))
    return "" if default else f" --store {shlex.quote(address)}"


class Desk(AbstractContextManager["Desk"]):
    """Programs in one store."""

    def __init__(
        self,
        store: str | os.PathLike[str] | None = None,
        read_only: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if store is None and not read_only:
            default_store().parent.mkdir(parents=True, exist_ok=True)
        self.store = Store.open(default_store() if store is None else store, read_only=read_only, clock=clock)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def with_clock(self, clock: Callable[[], datetime], by: str = "") -> "Desk":
        """A desk on the same connections that records everything at the time of another clock, and by another actor."""
        other = copy.copy(self)
        other.store = copy.copy(self.store)
        other.store.clock, other.store.by = clock, by or self.store.by
        return other

    def programs(self) -> list[Program]:
        """All programs, the oldest first."""
        return [Program(self.store, row) for row in self.store.programs()]

    def program(self, name: str) -> Program:
        """The program of that name."""
        return Program(self.store, self.store.find(name))

    def create(
        self,
        name: str,
        config: Config | None = None,
        template: str | None = None,
        pseudonyms: bool = False,
        context: RequestContext = NO_CONTEXT,
        history: "FittedModel | str | os.PathLike[str] | None" = None,
        **settings: Any,
    ) -> Program:
        """Create a program from a config, from a template and settings, or from settings alone.

        With a `history`, the model of `restive.fit` or its file, the policy starts from what people did there.
        """
        check_name(name)
        model = None if history is None else read_model(history)
        made = make_config(name, template, model, **settings) if config is None else config
        with self.store.creating(name, context, "created") as writer:
            if pseudonyms and made.pseudonyms is None:  # only now: a name that is taken must not leave a key behind
                replace(made, pseudonyms="")  # nor must settings that pseudonyms do not allow
                made = replace(made, pseudonyms=make_key().fingerprint)
            writer.append(Created.kind, *Created({**made.as_json()}).record())
            if model is not None:
                names, start = make_warm_start(model, made)
                writer.add_names(names)
                writer.append(WarmStarted.kind, *start.record())
            writer.record_audit_entry("created", None, {"config": made.as_json()})
        return self.program(name)

    def delete(self, name: str, confirm: str, dry_run: bool = False, context: RequestContext = NO_CONTEXT) -> int:
        """Delete a program for good, with its log, names and audit log; `confirm` is its name again.

        The audit log of the store keeps the fact. Returns the number of events that were deleted.
        """
        if confirm != name:
            raise InputError(f"To delete {name}, repeat its name; {confirm!r} is another one.", location="confirm")
        return self.store.delete(name, dry_run, context)


def open_desk(store: str | None = None, make: bool = False) -> Desk:
    """The desk on a store; the file is created only if `make`, so that a typo does not create an empty database."""
    if store is not None and "://" in store:
        return Desk(store)
    place = default_store() if store is None else Path(store)
    if place.suffix not in STORE_SUFFIXES:
        raise InputError(
            f"{place}: a store is a file that ends in .db, or an address such as postgresql://user@host/name."
        )
    if not make and not place.exists():
        raise InputError(f"{place}: there is no store yet; the first program creates it.")
    return Desk(store, read_only=place.exists() and not os.access(place, os.W_OK))


def refuse_taken(name: str, store: str | None) -> None:
    """Refuse a name that is taken and an address that cannot be a store; creates nothing."""
    place = default_store() if store is None else Path(store)
    if (store is None or "://" not in store) and place.suffix in STORE_SUFFIXES and not place.exists():
        if store is not None:
            check_place(store, read_only=False)
        return
    with open_desk(store) as desk:
        if any(row.name == name for row in desk.store.programs()):
            raise Conflict(f"The store already has a program {name!r}.")


def make_config(
    name: str, template: str | None = None, history: "FittedModel | None" = None, **settings: Any
) -> Config:
    """The config of a template with changed settings, of a history, or of settings alone; the default seed is by name."""
    usual: dict[str, Any] = {"seed": int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")}
    if template is not None:
        usual |= from_template(template)
    elif history is not None:
        usual |= default_settings(history)
    if "states" not in usual | settings:
        raise InputError("a program needs states: their names, the worst first, or a template that has them.")
    given = usual | settings
    if "words" in usual and isinstance(given["words"], dict):
        given["words"] = usual["words"] | given["words"]
    if "states" in settings and "rewards" not in settings:
        given["rewards"] = None
    for several in ("states", "rewards"):
        if isinstance(given.get(several), list):
            given[several] = tuple(given[several])
    for spec in ("policy", "shadow"):
        if isinstance(given.get(spec), str):
            given[spec] = _settle_file(given[spec])
    config = Config.from_json(given)
    if history is not None:
        check_match(history, config)
    return config


def _settle_file(spec: str) -> str:
    """The absolute path of a policy file, so that the program runs from any folder."""
    file, colon, settings = spec.partition(":")
    return f"{Path(file).absolute()}{colon}{settings}" if file.endswith(".py") else spec


def from_template(name: str) -> Mapping[str, Any]:
    """The settings of a template."""
    template: Mapping[str, Any] = {**find_template(name)}
    taken = ("states", "rewards", "budget", "control", "cool_down", "keep", "horizon")
    words = {each.name: template[each.name] for each in fields(Words)}
    return {key: template[key] for key in taken} | {"words": words, "template": name}
