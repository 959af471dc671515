"""Help inside the product: the documents of the project, rendered from Markdown.

The documents are files of the package, or of the repository if it is installed from there. Links between documents lead
to pages of the server; links to other files are shown as text.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fastapi import Depends
from fastapi.responses import FileResponse
from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape
from mdit_py_plugins.dollarmath import dollarmath_plugin

from restive.errors import NotFound
from restive.server.auth import need_session
from restive.server.views.base import Data, page, router

PACKAGED, REPOSITORY = Path(__file__).parents[1] / "help", Path(__file__).parents[3] / "docs"
FIRST = ("pages", "desk", "templates")  # for people who work in a program


class Heading(NamedTuple):
    """A heading of the second level, and the anchor that leads to it."""

    title: str
    anchor: str


class Document(NamedTuple):
    """A rendered document."""

    title: str
    headings: tuple[Heading, ...]
    anchors: frozenset[str]
    html: Markup


@cache
def find_topics() -> dict[str, Path]:
    """The documents by the name in their URL, which is that of the file: no two files have the same name."""
    return {path.stem: path for path in sorted(_folder().rglob("*.md"))}


@cache
def find_pictures() -> dict[str, Path]:
    """The pictures of the documents by file name."""
    return {path.name: path for path in (_folder() / "pictures").glob("*.*")}


def _folder() -> Path:
    return PACKAGED if PACKAGED.is_dir() else REPOSITORY


@page("/help", "help.html")
async def show_help() -> Data:
    """The documents for people who work in a program, with their sections."""
    topics = [(name, read_document(name)) for name in FIRST if name in find_topics()]
    return {
        "topics": [
            {"name": name, "title": found.title, "headings": [each._asdict() for each in found.headings]}
            for name, found in topics
        ]
    }


@page("/help/{topic}", "help_topic.html")
async def show_topic(topic: str) -> Data:
    """A document."""
    if topic not in find_topics():
        raise NotFound("There is no such page of help.")
    found = read_document(topic)
    return {"topic": topic, "title": found.title, "html": found.html}


@router.get("/help/pictures/{file}", dependencies=[Depends(need_session("viewer"))])
def send_picture(file: str) -> FileResponse:
    """A picture of a document."""
    if file not in find_pictures():
        raise NotFound("There is no such picture.")
    return FileResponse(find_pictures()[file])


@cache
def read_document(topic: str) -> Document:
    """A document, rendered."""
    path = find_topics()[topic]
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.use(dollarmath_plugin, renderer=_show_formula)
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", _close_table)
    parser.add_render_rule("image", _show_image)
    tokens = parser.parse(path.read_text(encoding="utf-8"))
    headings = _name_headings(tokens)
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                _lead(child, path.parent)
    shown = [Heading(title, anchor) for level, title, anchor in headings if level == "h2"]
    anchors = frozenset(anchor for _, _, anchor in headings)
    html = parser.renderer.render(tokens, parser.options, {}).replace("<pre>", '<pre tabindex="0">')
    return Document(headings[0][1], tuple(shown), anchors, Markup(html))


def _name_headings(tokens: Sequence[Token]) -> list[tuple[str, str, str]]:
    """Give each heading an anchor, as GitHub does; their levels, texts and anchors."""
    found = []
    for opened, inline in pairwise(tokens):
        if opened.type == "heading_open":
            title = "".join(child.content for child in inline.children or ())
            anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            opened.attrSet("id", anchor)
            found.append((opened.tag, title, anchor))
    return found


def _lead(link: Token, folder: Path) -> None:
    """Let a link between documents lead to the page of help; without a target it is text."""
    target = urlsplit(str(link.attrs["href"]))
    if target.scheme or not target.path:
        return
    topic = PurePosixPath(target.path).stem
    if target.path.endswith(".md") and find_topics().get(topic) == (folder / target.path).resolve():
        link.attrSet("href", topic + (f"#{target.fragment}" if target.fragment else ""))
    else:
        del link.attrs["href"]


def _show_formula(formula: str, options: dict[str, Any]) -> str:
    return convert(formula, display="block" if options["display_mode"] else "inline")


def _open_table(*_: Any) -> str:
    return '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>'


def _close_table(*_: Any) -> str:
    return "</table></div>"


def _show_image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, environment: EnvType
) -> str:
    text = escape(renderer.renderInlineAsText(tokens[index].children or [], options, environment))
    name = PurePosixPath(str(tokens[index].attrs["src"])).name
    if name not in find_pictures():
        return f"<em>{text}</em>"
    return f'<img src="pictures/{escape(name)}" alt="{text}" loading="lazy">'
