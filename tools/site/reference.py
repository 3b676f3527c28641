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


def members(kind: type) -> dict[str, Any]:
    """The public methods and properties of a class that have a docstring, by name."""
    names = sorted(n for n in dir(kind) if not n.startswith("_") and not hasattr(dict, n))
    found = {name: inspect.getattr_static(kind, name) for name in names}
    plain = {n: v.__func__ if isinstance(v, (staticmethod, classmethod)) else v for n, v in found.items()}
    return {name: value for name, value in plain.items() if inspect.getdoc(value)}


def member(title: str, name: str, value: Any) -> str:
    if callable(value):
        return entry("###", f"{title}.{name}", value).replace("- `pipeline`: what the operator reads.\n", "")
    return f"### {title}.{name}\n\n{prose(inspect.getdoc(value) or '')}\n"


def methods(kind: type, title: str) -> str:
    made = [f"## {title}\n\n{prose(inspect.getdoc(kind) or '')}\n"]
    return "\n".join(made + [member(title, name, value) for name, value in members(kind).items()])


FAMILIES = {  # of operators, by the first word of their names
    "Images and boxes": ("image", "boxes", "video"),
    "Sound": ("audio",),
    "Text and tokens": ("text", "tokens"),
    "Records, tensors and batches": ("record", "tensor", "batch", "code", "debug"),
    "Order and flows": ("order", "flow", "source"),
}


def family(value: Any) -> str | None:
    found = re.search(r"^Operator `(\w+)\.", inspect.getdoc(value) or "", re.MULTILINE)
    return next((title for title, words in FAMILIES.items() if found and found[1] in words), None)


def is_transform(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, hr.vision.Transform)


def python() -> dict[str, str]:
    """Pages by their titles: the public names of the package."""
    found = {name: getattr(hr, name) for name in sorted(hr.__all__) if name not in ("ops", "vision")}
    functions = {name: value for name, value in found.items() if not isinstance(value, type)}
    errors = {n: v for n, v in found.items() if isinstance(v, type) and issubclass(v, BaseException)}
    steps = members(hr.Pipeline)
    pages = {"Functions": "\n".join(entry("##", f"hr.{name}", value) for name, value in functions.items())}
    own = [member("Pipeline", name, value) for name, value in steps.items() if family(value) is None]
    pages["Pipeline"] = f"{prose(inspect.getdoc(hr.Pipeline) or '')}\n\n" + "\n".join(own)
    for title in FAMILIES:
        made = [member("Pipeline", name, value) for name, value in steps.items() if family(value) == title]
        pages[f"Steps: {title.lower()}"] = "\n".join(made)
    own = [entry("##", f"vision.{name}", value) for name, value in vars(hr.vision).items() if is_transform(value)]
    pages["Transforms"] = f"{prose(inspect.getdoc(hr.vision) or '')}\n\n" + "\n".join(own)
    kinds = (loader.Loader, hr.Batch, hr.Ragged, hr.Field, hr.Spec, hr.Optimization, hr.Tokenizer)
    pages["Loader, batches and other classes"] = "\n".join(methods(kind, kind.__name__) for kind in kinds)
    raised = [f"## hr.{name}\n\n{prose(inspect.getdoc(value) or '')}\n" for name, value in errors.items()]
    pages["Errors"] = "\n".join(raised)
    return pages


def python_pages() -> dict[str, str]:
    """File names and their Markdown: a page for each part, and their list with what each has."""
    pages, listed = {}, [PYTHON]
    for title, text in python().items():
        name = f"python-{re.sub('[^a-z]+', '-', title.lower())}.md"
        pages[name] = f"# {title}\n\n{text}"
        heads = re.findall(r"^##+ ((?:\w+\.)?(\w+))$", text, re.MULTILINE)
        links = [f"[`{full}`]({name}#{full.lower().replace('.', '')})" for full, _ in heads]
        listed += [f"## [{title}]({name})", "", ", ".join(links), ""]
    return {"python.md": "\n".join(listed), **pages}


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
