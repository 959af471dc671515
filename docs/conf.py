"""The documentation site: `make docs` builds it with Sphinx, MyST and Furo, without anything from the network.

The contents are those of index.md: each heading is a part of the sidebar, each item of its list a page, and the indented
links below an item are the pages below that page. Formulas become MathML, which browsers render without scripts.
"""

import posixpath
import re
from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

from restive.version import __version__

project, author, release = "restive", "The restive authors", __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
suppress_warnings = ["misc.highlighting_failure"]  # output of curl between the lines of a command
html_theme = "furo"
html_title = "restive"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "../restive/server/static/icon.svg"
html_copy_source = False
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # the tests run them
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False
OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)\s]+)\)")


def read_contents(index: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The pages under each heading of the index, and the pages below each of these pages."""
    parts: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for part in index.split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        pages = parts[title] = list[str]()
        for line in text.splitlines():
            found = [link.rpartition(".")[0] for link in re.findall(r"\]\(([\w/.-]+\.(?:md|rst|ipynb))\)", line)]
            if line.startswith("- "):
                pages += found[:1]
            elif line.startswith("  ") and pages:
                below.setdefault(pages[-1], []).extend(found)
    return parts, below


def add_contents(app: Any, name: str, source: list[str]) -> None:
    """Append the contents for the sidebar to the index and to pages with pages below; other files' links are text."""
    source[0] = OUTSIDE.sub(lambda link: link[1] if _leaves(name, link[2]) else link[0], source[0])
    parts, below = read_contents((app.srcdir / "index.md").read_text(encoding="utf-8"))
    trees = list(parts.items()) if name == "index" else [("", below[name])] if name in below else []
    for title, pages in trees:
        caption = f":caption: {title}\n" if title else ""
        entries = "\n".join(f"/{page}" for page in pages)
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


def setup(app: Any) -> None:
    """Connect the contents and the formulas."""
    app.connect("source-read", add_contents)
    app.add_html_math_renderer("mathml", (render_inline, None), (render_block, None))
