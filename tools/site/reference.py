"""Reference pages from the sources: Python's docstrings, the comments of C headers, the command's help."""

from __future__ import annotations

import inspect
import os
import pathlib
import re
import subprocess
import textwrap
from typing import Any

import headrace as hr
from headrace import loader

PYTHON = """# Python reference

From the docstrings: `help(hr.files)` has the same text. [The guide](../python.md) says how they fit together.

## Functions
"""
C = """# C reference

From `include/headrace`. Every function that can fail returns `enum hr_err` and fills `struct hr_error`.
"""

# ---- Python ----


def signature(name: str, value: Any) -> str:
    """A call as it is written; annotations shortened, one parameter a line if it is long."""
    try:
        made = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    parts = []
    star = False
    for one in made.parameters.values():
        if one.name in ("self", "pipeline", "cls"):
            continue
        if one.kind is one.KEYWORD_ONLY and not star:
            star = True
            parts.append("*")
        prefix = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        star = star or one.kind is one.VAR_POSITIONAL
        default = "" if one.default is one.empty else f" = {one.default!r}"
        kind = "" if one.annotation is one.empty else f": {one.annotation}"
        parts.append(f"{prefix}{one.name}{kind}{default}")
    flat = f"{name}({', '.join(parts)})"
    return flat if len(flat) <= 100 else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + ")"


def prose(text: str) -> str:
    """A docstring as Markdown: code blocks fenced, arguments as a list."""
    lines: list[str] = []
    section = ""
    code: list[str] = []

    def flush() -> None:
        while code and not code[-1].strip():
            code.pop()
        if code:
            lines.extend(["", "```python", *textwrap.dedent("\n".join(code)).splitlines(), "```", ""])
        code.clear()

    for line in [*inspect.cleandoc(text).splitlines(), "end"]:
        title = re.fullmatch(r"(Args|Returns|Raises|Yields):", line)
        if title or (line and not line.startswith(" ")):
            flush()
            section = title[1] if title else ""
            if title:
                lines.extend(["", f"**{section}**", ""])
            elif line != "end":
                lines.append(line)
        elif section in ("Args", "Raises") and re.match(r"    [\w, ]+:", line):
            name, _, rest = line.strip().partition(":")
            lines.append(f"- `{name}`:{rest}")
        elif section:
            lines.append(f"  {line.strip()}" if section in ("Args", "Raises") else line.strip())
        elif code or line.startswith("    "):
            code.append(line)
        else:
            lines.append(line)
    return "\n".join(lines)


def entry(level: str, name: str, value: Any) -> str:
    head = f"{level} {name}\n\n"
    doc = inspect.getdoc(value) or ""
    return f"{head}```python\n{signature(name, value)}\n```\n\n{prose(doc)}\n"


def methods(kind: type, title: str) -> str:
    """The public methods and properties that a class defines itself."""
    made = [f"## {title}\n\n{prose(inspect.getdoc(kind) or '')}\n"]
    for name in sorted(n for n in dir(kind) if not n.startswith("_") and not hasattr(dict, n)):
        value = inspect.getattr_static(kind, name)
        value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if callable(value) and inspect.getdoc(value):
            made.append(entry("###", f"{title}.{name}", value))
        elif inspect.getdoc(value):
            made.append(f"### {title}.{name}\n\n{prose(inspect.getdoc(value) or '')}\n")
    return "\n".join(made)


def python() -> str:
    """The public names of the package, functions first, then classes, then errors."""
    found = {name: getattr(hr, name) for name in sorted(hr.__all__) if name not in ("ops",)}
    functions = {name: value for name, value in found.items() if not isinstance(value, type)}
    errors = {n: v for n, v in found.items() if isinstance(v, type) and issubclass(v, BaseException)}
    made = [PYTHON]
    made += [entry("###", f"hr.{name}", value) for name, value in functions.items()]
    for kind in (hr.Pipeline, loader.Loader, hr.Batch, hr.Ragged, hr.Field, hr.Spec, hr.Optimization, hr.Tokenizer):
        made.append(methods(kind, kind.__name__))
    made += ["## Errors", ""]
    made += [f"### hr.{name}\n\n{prose(inspect.getdoc(value) or '')}\n" for name, value in errors.items()]
    return "\n".join(made)


# ---- C ----


def c(folder: pathlib.Path) -> str:
    """The public headers: what each is for, and its declarations with their comments."""
    made = [C]
    for header in sorted(folder.glob("*.h")):
        text = header.read_text()
        about = re.match(r"/\*\n(.*?)\*/", text, re.DOTALL)
        intro = re.sub(r"^ \* ?", "", about[1], flags=re.MULTILINE) if about else ""
        first, _, rest = intro.strip().partition("\n")
        body = re.sub(r"^.*?HR_BEGIN_DECLS\n|HR_END_DECLS.*$", "", text, flags=re.DOTALL)
        made += [f"## {header.name}", "", first.partition(" - ")[2] or first, ""]
        made += ["```text", rest.strip("\n"), "```", ""] if rest.strip() else []
        made += ["```c", body.strip(), "```", ""]
    return "\n".join(made)


# ---- the command ----


def command() -> str:
    """`headrace help`, and that of every command."""
    program = os.environ["HEADRACE_COMMAND"]

    def said(*args: str) -> str:
        return subprocess.run([program, *args], check=True, capture_output=True, text=True).stdout

    overview = said("help")
    names = re.findall(r"^  (\w+) {2,}", overview.partition("Commands\n")[2].partition("\n\n")[0], re.MULTILINE)
    made = ["# The command", "", "```text", overview.strip(), "```", ""]
    for name in names:
        made += [f"## headrace {name}", "", "```text", said("help", name).strip(), "```", ""]
    return "\n".join(made)
