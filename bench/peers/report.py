"""Converts peers.json to peers.md (tables) and peers.png (a plot), and prints the tables.

    report.py BUILD
"""
import json
import statistics
import sys
from pathlib import Path

from contenders import TARGETS

OURS, PEER, REFERENCE = "#1b6ca8", "#b8bec6", "#5b6470"


def find(results, work, key, cores):
    return next((r for r in results if (r["work"], r["key"], r["cores"]) ==
                 (work, key, cores)), None)


def ratios(upper, lower):
    """Ratio of upper's rate to lower's, round by round."""
    pairs = zip(upper["runs"], lower["runs"])
    return [u["rate"] / l["rate"] for u, l in pairs if "rate" in u and "rate" in l]


def ratio(upper, lower):
    values = ratios(upper, lower)
    return statistics.median(values) if values else None


def range_of(upper, lower):
    values = ratios(upper, lower)
    return f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""


def speed(result):
    if result is None:
        return ""
    if "absent" in result:
        return "absent"
    if result["work"] == "noop":
        return f"{1e9 / result['rate']:.0f} ns"
    return f"{result['rate']:.0f}"


def spread(result):
    """Half the range from the slowest to the fastest round, in per cent of the median."""
    if result is None or "absent" in result or len(result["runs"]) < 2:
        return ""
    half = (result["rate_most"] - result["rate_least"]) / 2
    return f" ±{100 * half / result['rate']:.0f} %"


def times(value):
    return f"{value:.2f}" if value else ""


def row(data, work, key):
    results, cores = data["results"], data["settings"]["cores"]
    all_of = [find(results, work, key, c) for c in cores]
    shown = next((r for r in all_of if r and "absent" not in r), None)
    label = all_of[0]["label"] + (f" ({all_of[0]['note']})" if all_of[0]["note"] else "")
    if shown is None:
        return f"| {label} | absent: {all_of[0]['absent']} |" + " |" * (2 * len(cores) + 4)
    cells = [f"**{label}**" if shown["ours"] else label]
    for count, result in zip(cores, all_of):
        ours = find(results, work, "ours", count)
        racing = result and ours and "absent" not in result and "absent" not in ours
        cells += [speed(result) + spread(result),
                  times(ratio(ours, result)) if racing and not shown["ours"] else ""]
    first = shown.get("start_seconds")
    cells += [f"{1e6 * shown['cpu_seconds_per_1000']:.0f} ns" if work == "noop"
              else f"{shown['cpu_seconds_per_1000']:.2f}",
              f"{shown['pss_bytes'] / 1e6:.0f}" if shown.get("pss_bytes") else "",
              f"{first:.1f}" if first is not None else "",
              ", ".join(r["setting"] or "-" for r in all_of if r)]
    return "| " + " | ".join(cells) + " |"


def table(data, work):
    cores = data["settings"]["cores"]
    keys = list(dict.fromkeys(r["key"] for r in data["results"] if r["work"] == work))
    if not keys:
        return []

    def order(key):
        result = find(data["results"], work, key, cores[0])
        return -(result or {}).get("rate", 0)

    what = "per record" if work == "noop" else "img/s"
    head = ["what"]
    for count in cores:
        head += [f"{count} core{'s' * (count > 1)}, {what}", "Headrace is x times as fast"]
    head += ["CPU per record" if work == "noop" else "CPU s / 1000", "PSS MB",
             "start -> first batch s", "settings"]
    lines = [f"## {work}: {data['works'][work]}", "", "| " + " | ".join(head) + " |",
             "|" + "---|" * len(head)]
    return lines + [row(data, work, key) for key in sorted(keys, key=order)] + [""]


def targets(data):
    cores = max(data["settings"]["cores"])
    lines = []
    for work, key, least in TARGETS:
        ours, peer = (find(data["results"], work, k, cores) for k in ("ours", key))
        if not ours or not peer:
            continue
        if "absent" in ours or "absent" in peer:
            lines.append(f"| {work} | {peer['label']} | absent | | |")
            continue
        value = ratio(ours, peer)
        claim = "" if least is None else f">= {least:g}"
        verdict = "" if least is None else "reached" if value >= least else "NOT REACHED"
        lines.append(f"| {work} | {peer['label']} | {value:.2f}{range_of(ours, peer)} | {claim} "
                     f"| {verdict} |")
    if not lines:
        return []
    return [f"## Headrace vs. peers, {cores} core{'s' * (cores > 1)}", "",
            "| work | peer | times as fast | claim | |", "|---|---|---|---|---|"] + lines + [""]


def heading(data):
    m, s = data["machine"], data["settings"]
    simd = "AVX-512" if m["avx512"] else "AVX2" if m["avx2"] else "no AVX2"
    versions = ", ".join(f"{k} {v}" for k, v in m["versions"].items() if v)
    return [
        "# Comparison with other loaders", "",
        f"{m['cpu']} ({simd}), {m['cores']} CPUs, {m['memory_bytes'] / 2**30:.0f} GiB, "
        f"{m['system']}, Linux {m['kernel']}, Python {m['python']}; {m['date']}, load "
        f"{m['load_before']:.1f} before.",
        f"{m['photos']} photos of {m['photo_bytes_mean'] / 1000:.0f} kB in the page cache; "
        f"headrace {m['headrace_commit']}; {versions}.", "",
        f"One process at a time, pinned with taskset; {s['rounds']} round{'s' * (s['rounds'] > 1)}, alternating, at least "
        f"{s['seconds']:g} s each; the first batches, as many as a contender makes concurrently, are not "
        "counted. Figures are medians, with "
        "half the range of the rounds; ratios are medians of the ratios within a round. " +
        ("Every peer runs with its usual setting, without a sweep. " if s["no_sweep"] else
         "Every peer runs with the best of the settings that a sweep tried for it on that number of "
         "cores. ") +
        "CPU, memory (peak proportional set size of all processes) and start are for the first "
        "column." + (
            " **Fewer than three rounds: ratios may be off by a fifth.**" if s["rounds"] < 3
            else ""), ""]


def plot(data, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    works = [w for w in ("vision", "simclr") if any(
        r["work"] == w and "rate" in r for r in data["results"])]
    if not works:
        return False
    cores = data["settings"]["cores"]
    counts = [len({r["key"] for r in data["results"] if r["work"] == w}) for w in works]
    figure, axes = plt.subplots(len(works), 1, squeeze=False, layout="constrained",
                                figsize=(9, 1.2 + 0.52 * sum(counts)),
                                gridspec_kw={"height_ratios": counts})
    for axis, work in zip(axes[:, 0], works):
        panel(axis, [r for r in data["results"] if r["work"] == work and "rate" in r], cores)
        axis.set_title(data["works"][work], fontsize=9, loc="left")
    axes[-1, 0].set_xlabel(f"photos per second ({cores[0]} cores wide, {cores[-1]} core narrow)"
                           if len(cores) > 1 else "photos per second")
    figure.savefig(path, dpi=150)
    return True


def panel(axis, results, cores):
    keys = list(dict.fromkeys(r["key"] for r in sorted(
        results, key=lambda r: (r["cores"] == cores[0], r["rate"]), reverse=True)))
    for at, key in enumerate(reversed(keys)):
        for result in (r for r in results if r["key"] == key):
            first = result["cores"] == cores[0]
            color = OURS if result["ours"] else REFERENCE if key == "full_decode" else PEER
            y = at + (0.13 if first else -0.27)
            axis.barh(y, result["rate"], height=0.46 if first else 0.2, color=color,
                      alpha=1 if first else 0.6)
            low, high = result["rate_least"], result["rate_most"]
            axis.plot([low, high], [y, y], color="black", linewidth=0.8)
            axis.text(max(high, result["rate"]), y, f" {result['rate']:.0f}", va="center",
                      fontsize=8 if first else 6.5)
    labels = {r["key"]: r["label"] for r in results}
    axis.set_yticks(range(len(keys)), [labels[k] for k in reversed(keys)], fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(x=0.08)


def main():
    build = Path(sys.argv[1])
    data = json.loads((build / "peers.json").read_text())
    lines = heading(data) + targets(data)
    for work in data["works"]:
        lines += table(data, work)
    if plot(data, build / "peers.png"):
        lines += ["![the same as bars](peers.png)", ""]
    text = "\n".join(lines)
    (build / "peers.md").write_text(text)
    print(text)
    print(f"wrote {build / 'peers.md'}, {build / 'peers.json'} and {build / 'peers.png'}")


if __name__ == "__main__":
    main()
