"""A thread beside a run ends with what closes it, whenever that is."""

from __future__ import annotations

import threading
import time

import pytest

from headrace.aside import Aside


def test_a_thread_begins_and_is_waited_for():
    aside, made = Aside("aside"), []
    assert aside.thread is None and not aside.is_alive
    aside.begin(made.append, 1)
    assert aside.thread is not None
    aside.close()
    assert made == [1] and not aside.is_alive


def test_none_begins_once_it_is_closed():
    aside, made = Aside("aside"), []
    aside.close()
    aside.begin(made.append, 1)
    assert aside.thread is None and made == []


def test_close_while_a_thread_begins(monkeypatch: pytest.MonkeyPatch):
    start = threading.Thread.start
    aside, ended = Aside("aside"), threading.Event()
    closer = threading.Thread(target=lambda: (aside.close(), ended.set()))

    def work() -> None:
        assert not ended.wait(0.1)

    def begin_late(thread: threading.Thread) -> None:
        if thread.name == "aside":
            start(closer)
            time.sleep(0.05)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", begin_late)
    aside.begin(work)
    closer.join()
    assert ended.is_set() and aside.thread is not None and not aside.is_alive


def test_a_thread_may_close_what_began_it():
    aside, ended = Aside("aside"), threading.Event()
    aside.begin(lambda: (aside.close(), ended.set()))
    assert ended.wait(10)
    aside.close()
    assert not aside.is_alive
