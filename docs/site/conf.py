"""The documentation as a site: `make docs`.

Pages are read from the root of the project, so that links between them, and to README, changelog
and settings, are the same here and in a checkout.
"""

import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from navigation import with_contents  # noqa: E402
from rest_reference import reference  # noqa: E402

project = "Collector"
copyright = ""
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "docs/adr/*.md"]
exclude_patterns = [".*", "build", "api", "collector", "kubernetes", "migrations", "monitoring"]
exclude_patterns += ["tests", "workers", "docs/site", "secrets"]

myst_heading_anchors = 4
myst_enable_extensions = []
nitpicky = True

html_theme = "furo"
html_title = "Collector"
html_extra_path = ["extra"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
# Nothing is loaded from another host, and the search index is part of the site.
html_theme_options = {"top_of_page_buttons": []}

# Drawn by GitHub; here the text of the diagram is shown.
lexers["mermaid"] = TextLexer()


def setup(app):
    app.connect("source-read", _read)


def _read(_app, name, source):
    if name == root_doc:
        source[0] = with_contents(source[0])
    elif name == "docs/rest-reference":
        source[0] += reference()
