"""tools/release refuses what must not be released; what it would build is built elsewhere."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import pytest

from conftest import ROOT

FILES = {
    "meson.build": "project('headrace', 'c',\n  version: '1.2.3',\n)\nshared_library('headrace', version: '1.2.3')\n",
    "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.3\n",
    "pyproject.toml": '[project.urls]\nHomepage = "https://code.example/some/headrace"\n',
    "CHANGELOG.md": "# Changelog\n\n## [1.2.3] - 2026-11-23\n",
}


def git(folder: pathlib.Path, *args: str) -> None:
    name = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *name, *args], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> pathlib.Path:
    """A clone with the release tool, equal to its origin."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    origin, folder = tmp_path / "some/headrace.git", tmp_path / "tree"
    git(tmp_path, "init", "-q", "--bare", str(origin))
    git(tmp_path, "init", "-q", str(folder))
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools/release", folder / "tools/release")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    git(folder, "remote", "add", "origin", str(origin))
    git(folder, "push", "-q", "origin", "HEAD:main")
    return folder


def release(folder: pathlib.Path, version: str = "1.2.3") -> tuple[int, str]:
    done = subprocess.run([folder / "tools/release", version, "--check"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def commit(folder: pathlib.Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    git(folder, "commit", "-qam", "two")
    git(folder, "push", "-q", "origin", "HEAD:main")


def test_a_clean_and_published_tree_may_be_released(tree: pathlib.Path) -> None:
    code, out = release(tree)
    assert code == 0 and "v1.2.3 could be made" in out


@pytest.mark.parametrize("name", ["meson.build", "new"])
def test_a_dirty_tree_is_refused(tree: pathlib.Path, name: str) -> None:
    with (tree / name).open("a") as file:
        file.write("more\n")
    code, out = release(tree)
    assert code == 1 and "the tree is not clean" in out and name in out


def test_commits_that_origin_lacks_are_refused(tree: pathlib.Path) -> None:
    git(tree, "commit", "-q", "--allow-empty", "-m", "two")
    assert release(tree) == (1, "release: main is not what origin has; push or pull first\n")


def test_another_branch_and_a_version_that_exists_are_refused(tree: pathlib.Path) -> None:
    git(tree, "tag", "v1.2.3")
    assert release(tree) == (1, "release: v1.2.3 exists already\n")
    git(tree, "checkout", "-qb", "other")
    assert release(tree) == (1, "release: check out main first\n")


def test_another_repository_is_refused(tree: pathlib.Path) -> None:
    commit(tree, "pyproject.toml", FILES["pyproject.toml"].replace("some/", "other/"))
    code, out = release(tree)
    assert code == 1 and "https://code.example/other/headrace" in out and "some/headrace.git" in out


def test_the_version_of_the_library_counts(tree: pathlib.Path) -> None:
    commit(
        tree, "meson.build", FILES["meson.build"].replace("headrace', version: '1.2.3'", "headrace', version: '1.2.2'")
    )
    code, out = release(tree)
    assert code == 1 and "version: '1.2.2'" in out


@pytest.mark.parametrize("name", sorted(FILES.keys() - {"pyproject.toml"}))
def test_files_that_name_another_version_are_refused(tree: pathlib.Path, name: str) -> None:
    commit(tree, name, FILES[name].replace("1.2.3", "1.2.4"))
    code, out = release(tree)
    assert code == 1 and name in out


@pytest.mark.parametrize("version", ["", "v1.2.3", "1.2", "1.2.3; true"])
def test_what_is_no_version_is_refused(tree: pathlib.Path, version: str) -> None:
    code, out = release(tree, version)
    assert code == 1 and "say which version" in out
