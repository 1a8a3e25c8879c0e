"""Pages and files from their templates (*.j2): one layout, one look (page.css), nothing from the network.

Jinja escapes everything that came from a system under test, and the browser runs no other script than the given one.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from marker_sim.judges.findings import split_impact
from marker_sim.judges.guarantees import BY_ID
from marker_sim.outcome.failure import breaks_besides
from marker_sim.report.words import clipped, counted, plan_sentences, printable

SIGNS = {"violated": "✗", "inconclusive": "?", "not-promised": "○", "holds": "✓", "not-applicable": "–"}
SCRIPTS = ("foreign", "spark", "java")  # Worlds of failures that scripts show: of servers, of jobs, of Java clients.
_EVENT = re.compile(r"\bevent (\d{1,18})\b")


def _shown(value: Any) -> Any:
    return printable(value) if type(value) is str else value


def _linked(text: str, place: str) -> Markup:
    """A sentence in which the number of each event is a link to the picture in the section `place`."""
    link = f'<a href="#{place}@\\1">event \\1</a>' if place else r"\g<0>"
    return Markup(_EVENT.sub(link, str(escape(printable(text)))))


def _known(text: str) -> Markup:
    """A sentence in which each guarantee is a link to its row of the page."""
    return Markup(re.sub(r"\b(G\d{1,2})\b", r'<a href="#\1">\1</a>', str(escape(printable(text)))))


def _percent(text: str, more: str = "") -> Markup:
    """A text as a workflow command of GitHub takes it. more: characters that would end a property."""
    return Markup("".join(f"%{ord(each):02X}" if each in "%" + more else each for each in printable(text)))


_PAGES = Environment(
    loader=PackageLoader("marker_sim", ""),
    autoescape=True,
    finalize=_shown,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAGES.filters |= {"linked": _linked, "clipped": clipped, "percent": _percent, "clean": printable, "known": _known}
_PAGES.globals |= {
    "signs": SIGNS,
    "scripts": SCRIPTS,
    "guarantee": BY_ID,
    "split_impact": split_impact,
    "plan_sentences": plan_sentences,
    "breaks_besides": breaks_besides,
    "counted": counted,
}


def render(template: str, *, script: str = "", **content: Any) -> str:
    """A page as HTML. template: its file below the package; script: the only script that it runs, "" for none."""
    code = resource(script) if script else ""
    return _PAGES.get_template(template).render(
        style=Markup(resource("page.css")),
        script=Markup(code),
        script_hash=b64encode(hashlib.sha256(code.encode("utf-8")).digest()).decode("ascii"),
        **content,
    )


def resource(name: str, package: str = __name__) -> str:
    """The text of a file of a package, this one by default."""
    return (files(package) / name).read_text(encoding="utf-8")
