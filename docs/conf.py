"""The site of the documents, by Sphinx: `tox -e docs`. The files stay as a forge shows them; the rest is here.

README.md is the first page. Pages that NAVIGATION does not name stand under its last heading: new ones need no line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers.data import JsonLexer
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.highlighting import lexers

ROOT = Path(__file__).parent.parent
NAVIGATION = {
    "Tutorial": ["tutorial/README", "tutorial/*"],
    "Guides": [
        "third-party",
        "command",
        "foreign-servers",
        "hudi-spark",
        "audit",
        "handing-over",
        "nightly",
        "troubleshooting",
    ],
    "Reference": ["guarantees", "faults", "protocol", "report", "ci", "history", "glossary", "../CHANGELOG"],
    "Development": ["../CONTRIBUTING", "development", "architecture", "decisions", "../benchmarks/README"],
    "Findings": ["findings", "findings/*", "benchmarks/*"],
    "Background": ["comparison", "honesty", "search", "mutants", "late-writes", "*"],
}

project = "marker-sim"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**.md", "benchmarks/README.md"]
myst_heading_anchors = 6
html_theme = "furo"
html_title = "marker-sim"
html_copy_source = False
lexers["jsonl"] = JsonLexer()


def add_navigation(_app: Sphinx, page: str, source: list[str]) -> None:
    """Give the first page the table of contents, which nobody wants to see on a forge."""
    if page != root_doc:
        return
    seen: set[str] = set()
    for caption, patterns in NAVIGATION.items():
        found = [path for pattern in patterns for path in sorted((ROOT / "docs").glob(f"{pattern}.md"))]
        new = [path for path in dict.fromkeys(each.resolve() for each in found) if str(path) not in seen]
        seen.update(map(str, new))
        pages = "\n".join(str(path.relative_to(ROOT).with_suffix("")) for path in new)
        if pages:
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"


def unlink_folders(app: Sphinx, page: nodes.document) -> None:
    """A link to a folder of the project, for which there is no page, becomes plain text. Anchors have no slash."""
    folder = Path(app.env.doc2path(app.env.docname)).parent
    for node in [*page.findall(pending_xref)]:
        if "/" in node["reftarget"] and (folder / node["reftarget"]).is_dir():
            node.replace_self(node.children)


def add_start(app: Sphinx, error: Exception | None) -> None:
    """A web server opens index.html."""
    if error is None:
        start = f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={root_doc}.html"><title>{project}</title>\n'
        Path(app.outdir, "index.html").write_text(start, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("source-read", add_navigation)
    app.connect("doctree-read", unlink_folders)
    app.connect("build-finished", add_start)
    return {"parallel_read_safe": True}
