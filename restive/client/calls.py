"""Calls that are written once and used in two ways: `Client` runs them, `AsyncClient` awaits them.

A call is a generator that yields requests, gets the content of each answer, and returns a value. A list is a request whose
answer comes in pages.

    class ProgramCalls:
        @call
        def status(self) -> Steps[Status]:
            return (yield Request("GET", f"{self._path}/status"))

        @listing
        def rounds(self) -> Pages[RoundSummary]:
            return Pages(f"{self._path}/rounds")

On a `Blocking` object, `status()` is a `Status` and `rounds()` an iterator; on an `Awaiting` one they are a coroutine and an
asynchronous iterator.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, ClassVar, Concatenate, Generic, Literal, ParamSpec, TypeVar, overload
from urllib.parse import parse_qs, urlsplit

from restive.client.transport import AsyncTransport, Body, Query, Transport

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """A request, and in which form its answer is wanted."""

    method: str
    path: str
    query: Query = field(default_factory=dict)
    body: Body | None = None
    key: str | None = None
    answer: Literal["json", "text", "bytes"] = "json"


@dataclass(frozen=True)
class Pages(Generic[T]):
    """A list at a path, whose answers have `items` and the address of the `next` page."""

    path: str
    query: Query = field(default_factory=dict)

    def follow(self, next_page: str | None) -> "Pages[T] | None":
        """The next page; only the query string of its address is used, so that the token never goes to another server."""
        return Pages(self.path, parse_qs(urlsplit(next_page).query)) if next_page else None


Steps = Generator[Request, Any, T]


class Blocking:
    """An object whose calls run at once."""

    _transport_type: ClassVar[type[Transport]] = Transport
    _transport: Transport

    def _run(self, steps: Steps[T]) -> T:
        try:
            request = next(steps)
            while True:
                request = steps.send(self._transport.fetch(*_arguments(request)))
        except StopIteration as end:
            value: T = end.value
            return value

    def _iterate(self, pages: Pages[T]) -> Iterator[T]:
        page: Pages[T] | None = pages
        while page is not None:
            found = self._transport.fetch("GET", page.path, page.query)
            yield from found["items"]
            page = page.follow(found["next"])


class Awaiting:
    """An object whose calls are awaited."""

    _transport_type: ClassVar[type[AsyncTransport]] = AsyncTransport
    _transport: AsyncTransport

    async def _run(self, steps: Steps[T]) -> T:
        try:
            request = next(steps)
            while True:
                request = steps.send(await self._transport.fetch(*_arguments(request)))
        except StopIteration as end:
            value: T = end.value
            return value

    async def _iterate(self, pages: Pages[T]) -> AsyncIterator[T]:
        page: Pages[T] | None = pages
        while page is not None:
            found = await self._transport.fetch("GET", page.path, page.query)
            for item in found["items"]:
                yield item
            page = page.follow(found["next"])


def _arguments(request: Request) -> tuple[str, str, Query, Body | None, str | None, str]:
    return request.method, request.path, request.query, request.body, request.key, request.answer


class call(Generic[P, T]):  # noqa: N801 - a decorator
    """A method that is run or awaited, as the object is."""

    def __init__(self, function: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self._function = function
        update_wrapper(self, function)  # type: ignore[arg-type]

    @overload
    def __get__(self, instance: None, owner: object) -> Callable[Concatenate[Any, P], Steps[T]]: ...
    @overload
    def __get__(self, instance: Blocking, owner: object) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: object) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, instance: Blocking | Awaiting | None, owner: object) -> Any:
        """The method of an object; of a class, the function, which has the documentation."""
        if instance is None:
            return self._function

        def run(*args: P.args, **settings: P.kwargs) -> Any:
            return instance._run(self._function(instance, *args, **settings))

        return update_wrapper(run, self._function)


class listing(Generic[P, T]):  # noqa: N801 - a decorator
    """A method that returns an iterator, or an asynchronous one, as the object is."""

    def __init__(self, function: Callable[Concatenate[Any, P], Pages[T]]) -> None:
        self._function = function
        update_wrapper(self, function)  # type: ignore[arg-type]

    @overload
    def __get__(self, instance: None, owner: object) -> Callable[Concatenate[Any, P], Pages[T]]: ...
    @overload
    def __get__(self, instance: Blocking, owner: object) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: object) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, instance: Blocking | Awaiting | None, owner: object) -> Any:
        """The method of an object; of a class, the function, which has the documentation."""
        if instance is None:
            return self._function

        def iterate(*args: P.args, **settings: P.kwargs) -> Any:
            return instance._iterate(self._function(instance, *args, **settings))

        return update_wrapper(iterate, self._function)


def get(kind: type[T], path: str) -> Steps[T]:
    """The answer to a GET request, which is of this type, as a part of a call."""
    answer: T = yield Request("GET", path)
    return answer


def collect(pages: Pages[T]) -> Steps[list[T]]:
    """All items of a list, as a part of a call."""
    found: list[T] = []
    page: Pages[T] | None = pages
    while page is not None:
        answer = yield Request("GET", page.path, page.query)
        found += answer["items"]
        page = page.follow(answer["next"])
    return found
