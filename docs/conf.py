"""The documentation site: `make docs` builds it with Sphinx, MyST and Furo, without anything from the network.

The contents are those of index.md: each heading is a part of the sidebar, each item of its list a page, titled by the text
of its link, and the indented links below an item are the pages below that page. Formulas become MathML, which browsers
render without scripts. Notebooks are stored without output and executed here; the tests build the site without them and
execute them apart.
"""

import posixpath
import re
from typing import Any, NamedTuple

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from numpy.typing import ArrayLike
from sphinx.util.typing import stringify_annotation

from restive.types import Bools, Floats, Ints
from restive.version import __version__

project, author, release = "restive", "The restive authors", __version__
project_copyright = author
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
suppress_warnings = ["misc.highlighting_failure"]  # output of curl between the lines of a command
html_theme = "furo"
html_title = "restive"
html_logo = "../restive/server/static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "../restive/server/static/icon.svg"
html_copy_source = False
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode, nb_execution_timeout, nb_execution_raise_on_error = "force", 600, True
nb_render_markdown_format = "myst"
default_role = "py:obj"  # a name in backticks in a docstring leads to its entry, if it has one
add_module_names = False
python_maximum_signature_line_length = 60
autodoc_member_order = "bysource"
napoleon_google_docstring = False
TYPES = {"ArrayLike": ArrayLike, "Floats": Floats, "Ints": Ints, "Bools": Bools}
LINK = re.compile(r"\[([^\]]+)\]\(([\w/.-]+)\.(?:md|rst|ipynb)\)")
OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)\s]+)\)")


class Page(NamedTuple):
    """A page of the sidebar."""

    title: str
    name: str


def read_contents(index: str) -> tuple[dict[str, list[Page]], dict[str, list[Page]]]:
    """The pages under each heading of the index, and the pages below each of these pages by its name."""
    parts: dict[str, list[Page]] = {}
    below: dict[str, list[Page]] = {}
    for part in index.split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        pages = parts[title] = list[Page]()
        for line in text.splitlines():
            found = [Page(text.strip("`"), name) for text, name in LINK.findall(line)]
            if line.startswith("- "):
                pages += found[:1]
            elif line.startswith("  ") and pages:
                below.setdefault(pages[-1].name, []).extend(found)
    return {title: pages for title, pages in parts.items() if pages}, below


def add_contents(app: Any, name: str, source: list[str]) -> None:
    """Append the contents for the sidebar to the index and to pages with pages below; other files' links are text."""
    source[0] = OUTSIDE.sub(lambda link: link[1] if _leaves(name, link[2]) else link[0], source[0])
    parts, below = read_contents((app.srcdir / "index.md").read_text(encoding="utf-8"))
    trees = list(parts.items()) if name == "index" else [("", below[name])] if name in below else []
    for title, pages in trees:
        caption = f":caption: {title}\n" if title else ""
        entries = "\n".join(f"{page.title} </{page.name}>" for page in pages)
        source[0] += f"\n```{{toctree}}\n:hidden:\n{caption}\n{entries}\n```\n"


def _leaves(name: str, link: str) -> bool:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), link)).startswith("..")


def render_inline(translator: Any, node: Any) -> None:
    """A formula in a line, as MathML."""
    translator.body.append(convert(node.astext()))
    raise SkipNode


def render_block(translator: Any, node: Any) -> None:
    """A formula of its own, as MathML."""
    translator.body.append(f'<div class="formula" tabindex="0">{convert(node.astext(), display="block")}</div>')
    raise SkipNode


def shorten_types(*called: Any) -> tuple[str | None, str | None]:
    """A signature with the names of array types instead of what they stand for."""
    arguments, returned = called[-2:]
    for name, kind in TYPES.items():
        for mode in ("smart", "fully-qualified-except-typing"):
            written = stringify_annotation(kind, mode)
            arguments, returned = (text and text.replace(written, name) for text in (arguments, returned))
    return arguments, returned


def setup(app: Any) -> None:
    """Connect the contents, the signatures and the formulas."""
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-signature", shorten_types)
    app.add_html_math_renderer("mathml", (render_inline, None), (render_block, None))
