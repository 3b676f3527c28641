"""Ctrl-C while a function of a pipeline runs in another thread."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import textwrap

SCRIPT = """\
    import os, signal, threading, time
    import headrace as hr

    signal.signal(signal.SIGINT, signal.default_int_handler)
    waiting, stuck = threading.Event(), threading.Event()
    helped, returned = 0, False

    def is_main():
        return threading.current_thread() is threading.main_thread()

    def before(x):
        global helped
        helped += is_main()
        if is_main() and helped == 20:  # the loop's thread has records on their way to `one`
            waiting.set()
            stuck.wait(10)
        return x

    def one(x):
        global returned
        if not is_main() and (waiting.is_set() or x >= 20000) and not stuck.is_set():
            stuck.set()
            threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            until = time.monotonic() + 15
            while time.monotonic() < until:
                time.sleep(0.01)
            returned = True
        return x

    same = {"value": hr.spec("int64")}
    pipe = hr.range(10**9).map(before, outputs=same).map(one, outputs=same, variant="inline").batch(10)
    try:
        for batch in pipe.loader(threads=2):
            pass
    except KeyboardInterrupt:
        print("interrupted", "late" if returned else "at once")
    """


def test_ctrl_c_arrives_while_an_inline_function_runs_in_a_thread(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "interrupted at once", done.stderr
