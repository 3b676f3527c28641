#!/usr/bin/env python3
"""The source of the site: the pages of docs/ and what is generated, in SITE/pages: assemble.py SITE

Links that leave docs/ get pages of their own: texts in project/, sources in source/.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import sys

import gallery
import reference

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LANGUAGES = {".py": "python", ".c": "c", ".h": "c", ".yaml": "yaml", ".yml": "yaml", ".sh": "sh"}
PROJECT = ("CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")

LISTS = {
    "coming-from": ("Coming from", "Programs as they were and as they are here, argument by argument."),
    "decisions": ("Decisions", "Design decisions and their reasons, a page each."),
    "formats": ("File formats", "What is in each file that Headrace reads and writes itself."),
}


class Pages:
    """The pages that are written, each once. made: what is generated for a page, by its path in docs/."""

    def __init__(self, folder: pathlib.Path, made: dict[str, str]) -> None:
        self.folder, self.made = folder, made
        self.done: set[pathlib.Path] = set()

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def place(self, file: pathlib.Path) -> str:
        """Where a file of the tree is on the site."""
        if file.is_relative_to(DOCS):
            return str(file.relative_to(DOCS))
        inner = file.relative_to(ROOT)
        return f"project/{inner}" if file.suffix == ".md" else f"source/{inner}.md"

    def add(self, file: pathlib.Path) -> None:
        """Write the page of a file, and those of the files that it links to."""
        if file in self.done:
            return
        self.done.add(file)
        name = self.place(file)
        if file.suffix in (".png", ".svg", ".css"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, self.folder / name)
        elif file.is_dir():
            self.write(name, listing(file))
        elif file.suffix == ".md":
            made = self.made.get(name, "")
            text = re.sub(r"<!-- the site shows .*? here -->", lambda _: made, file.read_text())
            self.write(name, self.linked(text, file, name))
        else:
            language = LANGUAGES.get(file.suffix, "text")
            self.write(name, f"# {file.relative_to(ROOT)}\n\n````{language}\n{file.read_text()}````\n")

    def linked(self, text: str, file: pathlib.Path, name: str) -> str:
        """The text with links to where their files are on the site."""

        def target(match: re.Match[str]) -> str:
            path, mark, anchor = match[1].partition("#")
            if "://" in path or path == "" or path.startswith("mailto:"):
                return match[0]
            found = (file.parent / path).resolve()
            if not found.exists() or not found.is_relative_to(ROOT):
                return match[0]  # mkdocs reports it
            if found.is_dir() and (found.is_relative_to(DOCS) or (found / "README.md").exists()):
                found /= "README.md"
            if found.parent.name in LISTS and not found.exists():  # written by main()
                return f"]({os.path.relpath(self.place(found), os.path.dirname(name) or '.')}{mark}{anchor})"
            self.add(found)
            return f"]({os.path.relpath(self.place(found), os.path.dirname(name) or '.')}{mark}{anchor})"

        parts = re.split(r"(^```.*?^```|`[^`\n]+`)", text, flags=re.DOTALL | re.MULTILINE)
        return "".join(part if part.startswith("`") else re.sub(r"\]\(([^)\s]+)\)", target, part) for part in parts)


def listing(folder: pathlib.Path) -> str:
    """The files of a folder outside docs/."""
    names = "\n".join(f"- `{file.name}`" for file in sorted(folder.iterdir()) if not file.name.startswith("."))
    return f"# {folder.relative_to(ROOT)}\n\n{names}\n"


def contents(folder: str, title: str, about: str) -> str:
    """A list of the pages of a folder, by their titles."""
    lines = [f"# {title}", "", about, ""]
    for file in sorted((DOCS / folder).glob("*.md")):
        heading = re.search(r"^# (.+)$", file.read_text(), re.MULTILINE)
        lines.append(f"- [{heading[1] if heading else file.stem}]({file.name})")
    return "\n".join(lines) + "\n"


def scripts() -> str:
    """The cookbook's scripts, in the order of its table."""
    made = []
    for name in re.findall(r"\(\.\./examples/cookbook/(\w+\.py)\)", (DOCS / "cookbook.md").read_text()):
        text = (ROOT / "examples/cookbook" / name).read_text()
        made.append(f"## {name}\n\n```python\n{text}```\n")
    return "\n".join(made)


def measured() -> str:
    """The README's table of measurements."""
    found = re.search(r"^## Measured\n(.*?)(?=^## )", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    if found is None:
        sys.exit("README.md has no section Measured, which docs/performance.md shows")
    return found[1].strip()


def main() -> None:
    site = pathlib.Path(sys.argv[1]).resolve()
    folder = site / "pages"
    pictures = gallery.draw(folder / "gallery")
    pages = Pages(folder, {"cookbook.md": scripts(), "gallery.md": pictures, "performance.md": measured()})
    shutil.copyfile(DOCS / "mkdocs.yml", site / "mkdocs.yml")
    pages.write("extra.css", (DOCS / "extra.css").read_text())
    for name, (title, about) in LISTS.items():
        pages.write(f"{name}/README.md", contents(name, title, about))
    for name, text in reference.python_pages().items():
        pages.write(f"reference/{name}", text)
    pages.write("reference/c.md", reference.c(ROOT / "include/headrace"))
    pages.write("reference/command.md", reference.command())
    for file in sorted(DOCS.rglob("*.md")):
        pages.add(file)
    for name in PROJECT:
        pages.add(ROOT / name)


if __name__ == "__main__":
    main()
