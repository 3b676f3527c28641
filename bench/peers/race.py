"""Runs all contenders on this machine and writes peers.json.

    race.py --build DIR --headrace PROGRAM --data DIR [--rounds 3] [--seconds 6] ...

One process at a time, pinned with taskset. A round runs every contender once, and each round
starts with a different one, so that interference affects different contenders. Every finished
run is appended to raw.jsonl in the build folder; an interrupted race resumes when it is started
again with the same settings.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from importlib import metadata
from pathlib import Path

from contenders import CONTENDERS, WORKS
from peer import tree

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SWEEP_SECONDS = 2.5
RUN_SECONDS_MAX = 180


class Absent(Exception):
    """A contender cannot run here; the message says why."""


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--headrace", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--cores", default="2,1", help="numbers of cores to use")
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--no-sweep", action="store_true", help="use only the usual settings")
    parser.add_argument("--only", default="", help="keys of contenders, comma-separated")
    return parser.parse_args()


# ---- one run ----

def headrace_command(args, contender, cores, epochs):
    graph, _, form = contender.form.partition(":")
    command = [str(args.headrace), "run", str(ROOT / "examples" / f"{graph}.yaml"), "--json",
               "--threads", str(cores)]
    if contender.work == "noop":
        command += ["-p", f"n={epochs * 1_000_000}"]
    else:
        command += ["-p", f"data={args.data}", "--epochs", str(epochs)]
    if form == "exact":
        command += ["-p", "mode=exact"]
    if form == "unfused":
        command += ["--no-fuse", "-p", "mode=exact"]  # in mode close the decode stays composed
    return command


def command_of(args, contender, cores, knob, seconds, epochs):
    if contender.ours:
        return headrace_command(args, contender, cores, epochs)
    if contender.module == "full_decode":
        return [str(args.build / "full_decode"), str(args.data), knob, str(seconds)]
    return [sys.executable, str(HERE / "peer.py"), contender.module, contender.work,
            contender.form, knob, str(args.data), str(seconds)]


def pss_bytes(pid):
    """Proportional memory of a process and its children (shared pages divided among their users)."""
    total = 0
    for member in tree(pid):
        try:
            for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += 1024 * int(line.split()[1])
        except OSError:
            pass
    return total


def kill_tree(process):
    for member in tree(process.pid):
        try:
            os.kill(member, 9)
        except ProcessLookupError:
            pass
    process.communicate()


def watched(command, cpus):
    """Runs to the end; returns (stdout, seconds, peak PSS). Raises Absent."""
    env = dict(os.environ, HR_PEERS_T0=str(time.monotonic()))
    begin = time.monotonic()
    process = subprocess.Popen(["taskset", "-c", ",".join(map(str, cpus))] + command, env=env,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    peak, over = 0, threading.Event()

    def watch():
        nonlocal peak
        while not over.wait(0.7):
            peak = max(peak, pss_bytes(process.pid))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        out, err = process.communicate(timeout=RUN_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        kill_tree(process)
        raise Absent(f"not finished after {RUN_SECONDS_MAX} s") from None
    except KeyboardInterrupt:
        kill_tree(process)
        raise
    finally:
        over.set()
        watcher.join()
    seconds = time.monotonic() - begin
    if process.returncode != 0:
        lines = [line for line in err.strip().splitlines() if line] or ["no message"]
        raise Absent(f"exit {process.returncode}: {lines[-1][:200]}")
    return out, seconds, peak


def headrace_result(out, wall):
    """The rate after the three batches that it makes concurrently, as for the peers."""
    said = json.loads(out)
    steady = said["steady"]
    if steady["records"] == 0:
        raise Absent("too few batches to measure")
    return {"records": steady["records"], "seconds": steady["seconds"],
            "rate": steady["records"] / steady["seconds"],
            "cpu_seconds": steady["cpu_seconds"],
            "start_seconds": wall - said["seconds"] + said["first_batch_seconds"],
            "peak_rss_bytes": said["peak_rss_bytes"]}


def run(args, contender, cores, knob, seconds, epochs):
    cpus = sorted(os.sched_getaffinity(0))[:cores]
    command = command_of(args, contender, cores, knob, seconds, epochs)
    out, wall, peak = watched(command, cpus)
    if contender.ours:
        result = headrace_result(out, wall)
    else:
        result = json.loads(out.strip().splitlines()[-1])
    result["pss_bytes"] = peak
    return result


# ---- the race ----

class Raw:
    """raw.jsonl: finished runs with these settings."""

    def __init__(self, path, settings):
        self.path, self.done = path, {}
        lines = path.read_text().splitlines() if path.exists() else []
        if lines and json.loads(lines[0]) == settings:
            for line in lines[1:]:
                entry = json.loads(line)
                self.done[tuple(entry["what"])] = entry["result"]
        else:
            path.write_text(json.dumps(settings) + "\n")

    def get(self, *what):
        return self.done.get(what)

    def put(self, result, *what):
        self.done[what] = result
        with self.path.open("a") as file:
            file.write(json.dumps({"what": what, "result": result}) + "\n")


def attempt(args, raw, what, *run_args):
    """The stored result of `what`, or a new one; {"absent": why} if it cannot run."""
    result = raw.get(*what)
    if result is None:
        try:
            result = run(args, *run_args)
        except Absent as why:
            result = {"absent": str(why)}
        raw.put(result, *what)
    return result


def unit(contender, result):
    if "absent" in result:
        return f"absent: {result['absent']}"
    if contender.work == "noop":
        return f"{1e9 / result['rate']:.0f} ns per record"
    return f"{result['rate']:.0f} img/s"


def sweep(args, raw, contender, cores):
    """Returns (best setting, number of our epochs that take long enough, {setting: rate or why})."""
    tried = {}
    knobs = contender.knobs[cores]
    for knob in knobs[:1] if args.no_sweep else knobs:
        what = ("sweep", contender.work, contender.key, cores, knob)
        epochs = 20 if contender.work == "noop" else 10
        result = attempt(args, raw, what, contender, cores, knob, SWEEP_SECONDS, epochs)
        say(f"sweep, {cores} core{'s' * (cores > 1)}, {contender.work}: {contender.label}, setting {knob}: "
            f"{unit(contender, result)}")
        tried[knob] = result.get("rate") or result["absent"]
    good = {knob: rate for knob, rate in tried.items() if isinstance(rate, float)}
    if not good:
        return None, 0, tried
    best = max(good, key=good.get)
    records = 1_000_000 if contender.work == "noop" else count_photos(args.data)
    return best, max(2, round(good[best] * args.seconds / records)), tried


def race(args, raw, entries):
    """Runs all rounds of the contenders that can run; fills entry["runs"]."""
    able = [e for e in entries if e["knob"] is not None]
    steps, step = args.rounds * len(able), 0
    for number in range(args.rounds):
        shift = number * len(able) // args.rounds
        for entry in able[shift:] + able[:shift]:
            contender, cores = entry["contender"], entry["cores"]
            what = ("round", number, contender.work, contender.key, cores, entry["knob"])
            result = attempt(args, raw, what, contender, cores, entry["knob"], args.seconds,
                             entry["epochs"])
            step += 1
            say(f"[{step}/{steps}] round {number + 1}, {cores} core{'s' * (cores > 1)}, {contender.work}: "
                f"{contender.label}: {unit(contender, result)}")
            entry["runs"].append(result)


def say(text):
    print(text, flush=True)


def count_photos(data):
    return sum(1 for p in data.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))


# ---- output ----

def machine(args):
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo")
                if line.startswith("model name")), platform.machine())
    flags = next((line for line in open("/proc/cpuinfo") if line.startswith("flags")), "")
    memory = int(open("/proc/meminfo").readline().split()[1]) * 1024
    system = next((line.split("=", 1)[1].strip().strip('"') for line in open("/etc/os-release")
                   if line.startswith("PRETTY_NAME")), "Linux")
    commit = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
                            capture_output=True, text=True, check=False).stdout.strip()
    versions = {}
    for name in ("torch", "torchvision", "pillow", "tensorflow-cpu", "grain", "numpy",
                 "nvidia-dali-cuda130", "opencv-python-headless"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    photos = [p.stat().st_size for p in args.data.rglob("*")
              if p.suffix.lower() in (".jpg", ".jpeg")]
    return {"cpu": cpu, "cores": os.cpu_count(), "avx2": " avx2 " in flags,
            "avx512": " avx512bw " in flags, "memory_bytes": memory, "system": system,
            "kernel": platform.release(), "python": platform.python_version(),
            "headrace_commit": commit, "versions": versions, "photos": len(photos),
            "photo_bytes_mean": round(statistics.mean(photos)) if photos else 0,
            "load_before": os.getloadavg()[0], "date": time.strftime("%Y-%m-%d %H:%M")}


def summary(entry):
    contender = entry["contender"]
    runs = [r for r in entry["runs"] if "absent" not in r]
    said = {"key": contender.key, "work": contender.work, "label": contender.label,
            "note": contender.note, "ours": contender.ours, "cores": entry["cores"],
            "setting": entry["knob"], "sweep": entry["tried"], "runs": entry["runs"]}
    if not runs:
        why = [r["absent"] for r in entry["runs"]] or list(entry["tried"].values())
        return dict(said, absent=why[0])
    for name in ("rate", "start_seconds", "pss_bytes", "peak_rss_bytes"):
        values = [r[name] for r in runs if name in r]
        if values:
            said[name] = statistics.median(values)
    said["cpu_seconds_per_1000"] = statistics.median(
        1000 * r["cpu_seconds"] / r["records"] for r in runs)
    said["rate_least"] = min(r["rate"] for r in runs)
    said["rate_most"] = max(r["rate"] for r in runs)
    return said


def main():
    args = arguments()
    works = args.works.split(",")
    only = set(filter(None, args.only.split(",")))
    here = machine(args)
    cores = [int(c) for c in args.cores.split(",")]
    most = len(os.sched_getaffinity(0))
    if max(cores) > most:
        say(f"this machine has only {most} cores: using those")
        cores = [c for c in cores if c <= most] or [most]
    settings = {"rounds": args.rounds, "seconds": args.seconds, "cores": cores,
                "works": works, "only": sorted(only), "no_sweep": args.no_sweep, "data": str(args.data),
                "headrace": [str(args.headrace), args.headrace.stat().st_mtime]}
    raw = Raw(args.build / "raw.jsonl", settings)
    entries = []
    for contender in CONTENDERS:
        if contender.work not in works or (only and contender.key not in only):
            continue
        for count in cores:
            best, epochs, tried = sweep(args, raw, contender, count)
            entries.append({"contender": contender, "cores": count, "knob": best,
                            "epochs": epochs, "tried": tried, "runs": []})
    entries.sort(key=lambda e: (list(WORKS).index(e["contender"].work), -e["cores"]))
    race(args, raw, entries)
    result = {"machine": here, "settings": settings, "works": WORKS,
              "results": [summary(e) for e in entries]}
    part = args.build / "peers.json.part"
    part.write_text(json.dumps(result, indent=1))
    part.replace(args.build / "peers.json")
    raw.path.unlink()
    say(f"wrote {args.build / 'peers.json'}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        say("stopped; run the same command again to resume")
        sys.exit(130)
