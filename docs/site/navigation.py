"""The site's navigation: the links of the start page under its headings, and all decisions."""

import re

_DECISIONS = "adr/*"
_LINK = re.compile(r"^- \[([^]]+)\]\(([^)#]+)\.md\)", re.M)


def with_contents(page: str) -> str:
    """The page with a hidden table of contents for every list of links in it."""
    return page + "".join(
        f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {heading}\n\n{names}\n```\n"
        for heading, names in _sections(page)
    )


def _sections(page: str) -> list[tuple[str, str]]:
    found = []
    for section in re.split(r"^## ", page, flags=re.M)[1:]:
        heading, _, rest = section.partition("\n")
        names = [f"{words} <{_document(target)}>" for words, target in _LINK.findall(rest)]
        found.append((heading, "\n".join(names)))
    return [(heading, names or _DECISIONS) for heading, names in found]


def _document(target: str) -> str:
    """A page beside the start page, or one of the project's root."""
    return f"/{target.removeprefix('../')}" if target.startswith("../") else target
