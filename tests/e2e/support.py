"""Shared by the tests of the command: a temporary folder, photos, TAP.

A test is a function marked @test; its name says what it checks. It fails by raising an exception.
    python3 run_test.py HEADRACE SOURCE_DIR [part of a name]
"""
import fcntl
import json
import os
import pathlib
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import traceback

headrace = pathlib.Path(sys.argv[1]).resolve()
source = pathlib.Path(sys.argv[2]).resolve()
holder = tempfile.TemporaryDirectory(prefix="headrace-e2e-")
temp = pathlib.Path(holder.name)
tests = []


class Skip(Exception):
    """Raised if the machine lacks something that the test needs."""


def test(function):
    tests.append(function)
    return function


def run(*words, code=0, **more):
    """Runs the command, checks its exit code and returns the completed process."""
    environment = {**os.environ, "TERM": "dumb", "HEADRACE_CACHE": str(temp / "cache"), **more.pop("env", {})}
    done = subprocess.run([headrace, *map(str, words)], text=True, capture_output=True, timeout=120,
                          stdin=subprocess.DEVNULL, env=environment, cwd=temp, **more)
    assert code is None or done.returncode == code, \
        f"headrace {' '.join(map(str, words))}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done


def start(*words, **more):
    return subprocess.Popen([headrace, *map(str, words)], text=True, stdout=subprocess.PIPE, cwd=temp,
                            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **more)


def one_line(done, *parts):
    """Checks that stderr is one line with all the parts, and stdout is empty."""
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and not done.stdout, f"expected exactly one line, on stderr:\n{done.stdout}{done.stderr}"
    for part in parts:
        assert part in lines[0], f"no '{part}' in: {lines[0]}"


def at_place(done, line, caret, *parts):
    """Checks that stderr is one message with all the parts, then the line of the file and the carets under it."""
    lines = done.stderr.splitlines()
    assert len(lines) == 3 and not done.stdout, f"expected a message and its place, on stderr:\n{done.stdout}{done.stderr}"
    for part in parts:
        assert part in lines[0], f"no '{part}' in: {lines[0]}"
    shown, marks = lines[1].partition(" | ")[2], lines[2].partition(" | ")[2]
    assert shown == line, f"expected {line!r}, shown is {shown!r}"
    at = shown.index(caret)
    assert marks == " " * at + "^" + "~" * (len(caret) - 1), f"not under {caret!r}:\n{shown}\n{marks}"


def terminal(*words, code=0, env={}):
    """What the command prints on a terminal of 100 columns, stdout and stderr together."""
    environment = {**os.environ, "TERM": "xterm", "HEADRACE_CACHE": str(temp / "cache"), **env}
    main_end, its_end = pty.openpty()
    fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    process = subprocess.Popen([headrace, *map(str, words)], stdin=subprocess.DEVNULL, stdout=its_end, stderr=its_end,
                               env=environment, cwd=temp)
    os.close(its_end)
    text = b""
    try:
        while some := os.read(main_end, 65536):
            text += some
    except OSError:  # how Linux reports that the other end is closed
        pass
    os.close(main_end)
    assert process.wait(120) == code, text
    return text.decode().replace("\r\n", "\n")


def run_json(*words, **more):
    return json.loads(run(*words, "--json", **more).stdout)


def example(name):
    return source / "examples" / name


def photos():
    """A folder of 40 small photos in 4 label folders, created once."""
    folder = temp / "photos"
    if not folder.exists():
        run("synth", "photos", folder, "--count", 40, "--classes", 4, "--width", 120, "--height", 90, "-q")
    return folder


def graph(name, text):
    """Writes a graph file to the temporary folder."""
    path = temp / name
    path.write_text("headrace: 1\n" + text)
    return path


def main():
    chosen = [t for t in tests if len(sys.argv) < 4 or sys.argv[3] in t.__name__]
    print(f"1..{len(chosen)}", flush=True)
    failed = False
    for number, function in enumerate(chosen, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}", flush=True)
        except Skip as why:
            print(f"ok {number} - {function.__name__} # SKIP {why}", flush=True)
        except BaseException:
            failed = True
            print(f"not ok {number} - {function.__name__}", flush=True)
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), flush=True)
    holder.cleanup()
    sys.exit(failed)
