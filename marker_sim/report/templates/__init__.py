"""HTML pages from their templates (*.html.j2): one layout, one look (page.css), nothing from the network.

Jinja escapes everything that came from a system under test, and the browser runs no other script than the given one.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from marker_sim.report.words import printable

SIGNS = {"violated": "✗", "inconclusive": "?", "not-promised": "○", "holds": "✓", "not-applicable": "–"}
_PAGES = Environment(
    loader=PackageLoader("marker_sim", ""),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAGES.filters["printable"] = printable


def render(template: str, *, script: str = "", **content: Any) -> str:
    """A page as HTML. template: its file below the package; script: the only script that it runs, "" for none."""
    code = resource(script) if script else ""
    return _PAGES.get_template(template).render(
        style=Markup(resource("page.css")),
        script=Markup(code),
        script_hash=b64encode(hashlib.sha256(code.encode("utf-8")).digest()).decode("ascii"),
        signs=SIGNS,
        **content,
    )


def resource(name: str, package: str = __name__) -> str:
    """The text of a file of a package, this one by default."""
    return (files(package) / name).read_text(encoding="utf-8")
