"""Runs one peer for a while and prints measurements as one JSON object.

    peer.py MODULE WORK FORM KNOB DATA SECONDS

The clock covers whole rounds of batches: it starts after as many batches as the peer makes
concurrently (each DataLoader worker makes a whole batch, so batches arrive in bursts), and
stops after a multiple of that. HR_PEERS_T0 is the monotonic time at which the process was
started. Exit status 3: the peer cannot run here; the reason is the last line of stderr.
"""
import importlib
import json
import os
import sys
import time
from pathlib import Path


def tree(root):
    """The process `root` and its descendants, with their CPU ticks."""
    stats = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            stats[int(entry.name)] = (int(fields[1]), int(fields[11]) + int(fields[12]))
    members, grown = {root} & set(stats), True
    while grown:
        more = {p for p, (parent, _) in stats.items() if parent in members} - members
        members, grown = members | more, bool(more)
    return {p: stats[p][1] for p in members}


def cpu_seconds():
    return sum(tree(os.getpid()).values()) / os.sysconf("SC_CLK_TCK")


def measure(iterator, together, seconds):
    start = float(os.environ.get("HR_PEERS_T0", time.monotonic()))
    first = begin = begin_cpu = None
    count = records = 0
    for batch, size in iterator:
        now = time.monotonic()
        first = first or now
        count += 1
        if begin is not None:
            records += size
        elif count == together:
            begin, begin_cpu = now, cpu_seconds()
            begin = time.monotonic()
        if begin is not None and records and count % together == 0 and now - begin >= seconds:
            break
    cpu = cpu_seconds() - begin_cpu
    return {"records": records, "seconds": now - begin, "rate": records / (now - begin),
            "cpu_seconds": cpu, "start_seconds": first - start}


def main():
    module, work, form, knob, data, seconds = sys.argv[1:]
    files = sorted(str(p) for p in Path(data).rglob("*")
                   if p.suffix.lower() in (".jpg", ".jpeg"))
    try:
        peer = importlib.import_module(module)
        iterator, together = peer.batches(work, form, files, knob)
    except (ImportError, OSError, RuntimeError, AttributeError) as reason:
        print(f"{type(reason).__name__}: {str(reason).splitlines()[0]}", file=sys.stderr)
        sys.exit(3)
    print(json.dumps(measure(iterator, together, float(seconds))), flush=True)
    os._exit(0)  # some peers take seconds to stop their threads


if __name__ == "__main__":
    main()
