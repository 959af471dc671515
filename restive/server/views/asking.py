"""Asking a program: in a worker thread, one question at a time; and what every page about a program begins with."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Concatenate, ParamSpec, TypeVar

from fastapi import Request

from restive.desk.program import Program
from restive.errors import NotFound
from restive.server.hiding import name_policy

Rest = ParamSpec("Rest")
Answer = TypeVar("Answer")
LONGEST = 9  # digits of a number in an address


async def ask(
    request: Request,
    name: str,
    question: Callable[Concatenate[Program, Rest], Answer],
    *args: Rest.args,
    **kwargs: Rest.kwargs,
) -> Answer:
    """What `question` answers about the program of that name, while nobody else is at it."""
    programs = request.app.state.programs
    async with programs.using(name, request) as program:
        answer: Answer = await programs.run(question, program, *args, **kwargs)
    return answer


def head(program: Program) -> dict[str, Any]:
    """What the top of every page about a program needs: name, words, how many rounds, whether there is a shadow."""
    config = program.config
    return {
        "name": program.name,
        "words": asdict(config.words),
        "policy": name_policy(config.policy),
        "shadow": name_policy(config.shadow) if config.shadow else None,
        "rounds": len(program.rounds),
    }


def read_number(text: str, what: str, usual: int = 1) -> int:
    """A number from 1 on in an address, `usual` where there is none; anything else leads nowhere.

    >>> read_number("12", "round"), read_number("", "page")
    (12, 1)
    """
    if not text:
        return usual
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST and int(text) > 0):
        raise NotFound(f"There is no such {what}; a {what} is a whole number from 1 on.")
    return int(text)
