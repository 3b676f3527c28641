#!/usr/bin/env python3
"""Checks the built site: check_links.py FOLDER

Every link, image and anchor inside it exists, pictures have a text, and no page is heavy to load.
"""

from __future__ import annotations

import html.parser
import pathlib
import sys
import urllib.parse

PAGE_MAX, LOADED_MAX = 512 << 10, 1600 << 10  # bytes of a page; with what a browser loads to show it


class Page(html.parser.HTMLParser):
    """The links of a page, and the places that links can name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.loaded: set[str] = set()  # scripts, styles and pictures; without those loaded when they are scrolled to
        self.untold = 0  # pictures without a text for those who cannot see them
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.places.update(value for key in ("id", "name") if (value := given.get(key)))
        self.links += [value for key in ("href", "src") if (value := given.get(key))]
        shown = given.get("href") if tag == "link" and given.get("rel") == "stylesheet" else given.get("src")
        if shown and given.get("loading") != "lazy":
            self.loaded.add(shown)
        self.untold += tag == "img" and not given.get("alt")


def weight(path: pathlib.Path, page: Page) -> int:
    """Bytes of a page and of what it loads."""
    files = {(path.parent / urllib.parse.unquote(urllib.parse.urlsplit(link).path)).resolve() for link in page.loaded}
    return path.stat().st_size + sum(file.stat().st_size for file in files if file.is_file())


def main() -> None:
    folder = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path.read_text()) for path in folder.rglob("*.html")}
    wrong, count = [], 0
    for path, page in pages.items():
        if page.untold:
            wrong.append(f"{path.relative_to(folder)}: {page.untold} pictures without alt")
        loaded = weight(path, page)
        if path.stat().st_size > PAGE_MAX or loaded > LOADED_MAX:
            wrong.append(f"{path.relative_to(folder)}: {path.stat().st_size} bytes, {loaded} with what it loads")
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            count += 1
            found = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            found = found / "index.html" if found.is_dir() else found
            if not found.exists():
                wrong.append(f"{path.relative_to(folder)}: there is no {link}")
            elif parts.fragment and found in pages and urllib.parse.unquote(parts.fragment) not in pages[found].places:
                wrong.append(f"{path.relative_to(folder)}: there is no place {link}")
    heaviest = max(weight(path, page) for path, page in pages.items()) >> 10
    good = f"docs-site: {len(pages)} pages of at most {heaviest} KiB, {count} links, all of which exist, in {folder}"
    print("\n".join(sorted(set(wrong))) or good)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
