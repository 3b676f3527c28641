"""Predictions on the command line: headrace explain --profile, --what-if, --html and --accuracy, headrace run --profile."""
import json
import os
import sys
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(__file__))
from support import at_place, graph, main, one_line, run, run_json, temp, test

SPIN_THEN_FILTER = """pipeline:
  - source.range: {n: 100000}
  - debug.spin: {us: 40}
    name: spin
  - record.filter: {expr: "value % 4 == 0"}
    name: few
  - batch.stack: {size: 10}
"""


def profiled(name, text):
    """A graph and its profile."""
    written = graph(f"{name}.yaml", text)
    run("profile", written, "--fuse", "-o", f"{name}.json", "-q", "--seconds", "1")
    return written, f"{name}.json"


@test
def explain_predicts_both_orders_and_another_machine():
    written, profile = profiled("predict", SPIN_THEN_FILTER)
    made = run_json("explain", written, "--profile", profile, "--what-if", "cores=8", "disk=800B/s", "price=3.6")
    before, after, what_if = made["predictions"]
    assert [p["title"] for p in made["predictions"]] == ["as written", "cheapest order", "cores=8 disk=800B/s price=3.6"]
    assert after["rate"] > 2 * before["rate"] and after["cpu_ns"] < before["cpu_ns"] / 2, made
    assert what_if["limit"] == "disk" and what_if["node"] == "source.range" and what_if["threads"] == 8, what_if
    assert abs(what_if["rate"] - 25) < 1 and abs(what_if["price_per_million"] * what_if["rate"] / 1000 - 1) < 1e-6, what_if
    assert before["price_per_million"] is None and before["limits"]["disk"] is None, before
    assert abs(sum(n["share"] for n in before["nodes"]) - 1) < 1e-9, before
    assert [n["node"] for n in after["nodes"]] == ["source.range", "few", "spin", "batch.stack"], after
    order = made["decisions"][0]
    assert order["what"] == "order" and order["chosen"] == "cheapest order" and order["runner_up"] == "as written", made
    assert [d["what"] for d in made["decisions"]] == ["order", "threads", "variant"], made
    text = run("explain", written, "--profile", profile, "--what-if", "cores=8").stdout
    assert "limited by" in text and "times the rate of the next best, as written" in text and "cores=8" in text, text
    text = run("explain", "predict.yaml", "--profile", profile, "--threads", "1").stdout
    assert "of 1 thread" in text and "threads: 1" in text, text


@test
def explain_says_what_is_wrong_with_its_options():
    written, profile = profiled("options", SPIN_THEN_FILTER)
    other = graph("other.yaml", "pipeline:\n  - source.range: {n: 9}\n    name: nine\n")
    by = ["explain", written, "--profile", profile]
    one_line(run(*by, "--what-if", "cores=many", code=2), "--what-if cores: 'many' is not a value such as 16")
    one_line(run(*by, "--what-if", "disk=0", code=2), "--what-if disk: '0' is not a value such as 200MB/s")
    one_line(run(*by, "--what-if", "cores=0.5", code=2), "cores must be 1 to 65536, not 0.5")
    one_line(run(*by, "--what-if", "cores=2", "gpus=1", code=2), "--what-if knows cores, disk, memory, copy and price, not 'gpus'")
    one_line(run(*by, "--what-if", "cores=2", "disk=1MB/s", "cores=4", code=2), "--what-if: 'cores' is given twice; run explain once for each")
    one_line(run(*by, "--what-if", "cores=2", "--what-if", "cores=4", code=2), "--what-if: 'cores' is given twice, as '2' and as '4'")
    one_line(run(*by, "more.yaml", code=2), "explain takes one graph; 'more.yaml' is too much")
    one_line(run("explain", written, "--what-if", "cores=2", code=2), "--what-if needs --profile FILE")
    one_line(run("explain", written, "--html", "x.html", code=2), "--html needs --profile FILE")
    one_line(run(*by, "--measure", code=2), "--profile and --measure exclude each other")
    one_line(run("explain", code=2), "explain needs a graph")
    one_line(run("explain", written, "--accuracy", code=2), "--accuracy takes no graph")
    one_line(run("explain", other, "--profile", profile, code=2), f"{profile}: the profile knows nothing of node 'nine'")
    other = graph("more.yaml", "pipeline:\n  - source.range: {n: 9}\n  - debug.spin: {us: 1}\n    name: nine\n")
    one_line(run("optimize", other, "--profile", profile, code=2), f"{profile}: the profile knows nothing of node 'nine'")
    at_place(run("explain", written, "--profile", written, code=2), "headrace: 1", "headrace", "options.yaml:1:1: this is no profile")
    one_line(run(*by, "--html", "no/such/x.html", code=1), "cannot")


@test
def a_page_is_complete_and_escapes_names():
    # a DAG: two branches of one photo; names of files and nodes with what HTML must not see
    name = "<b>&\"c'd"
    written, profile = profiled(name, """pipeline:
  - source.range: {n: 1000}
    name: "s<script>"
  - debug.spin: {us: 5}
    name: "l&eft"
    inputs: ["s<script>"]
  - debug.spin: {us: 9}
    name: "ri\\"ght"
    inputs: ["s<script>"]
  - flow.zip: {prefix: [l_, r_]}
    name: "überlanger Name der nicht in das Kästchen passt"
    inputs: ["l&eft", "ri\\"ght"]
  - batch.stack: {size: 8}
""")
    run("explain", written, "--profile", profile, "--html", "page.html", "-q")
    text = (temp / "page.html").read_text()
    page = ElementTree.fromstring(text)
    assert page.tag.endswith("html") and "<script>" not in text and "<b>" not in text, text
    drawn = page.findall(".//{http://www.w3.org/2000/svg}svg")
    assert len(drawn) == 1, text  # no cheaper order
    titles = [t.text for t in page.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[:3] == ["s<script> (source.range)", "l&eft (debug.spin)", 'ri"ght (debug.spin)'], titles
    words = [t.text for t in page.iter("{http://www.w3.org/2000/svg}text")]
    assert "überlanger Name der nicht…" in words and "s<script>" in words, words
    heading = page.find(".//{http://www.w3.org/1999/xhtml}h1")
    assert heading.text.endswith(f"{name}.yaml"), heading.text
    for part in ("src=", "href=", "url(", "@import", "http:"):
        rest = text.replace("http://www.w3.org/2000/svg", "").replace("http://www.w3.org/1999/xhtml", "")
        assert part not in rest, part
    # siblings stand side by side, below their input
    boxes = [r.attrib for r in page.iter("{http://www.w3.org/2000/svg}rect") if r.attrib["class"].startswith("box")]
    source, left, right = boxes[0], boxes[1], boxes[2]
    assert left["y"] == right["y"] > source["y"] and left["x"] != right["x"], boxes


@test
def a_page_shows_before_after_and_decisions():
    written, profile = profiled("two", SPIN_THEN_FILTER)
    run("explain", written, "--profile", profile, "--html", "two.html", "--what-if", "cores=4", "-q")
    text = (temp / "two.html").read_text()
    page = ElementTree.fromstring(text)
    assert len(page.findall(".//{http://www.w3.org/2000/svg}svg")) == 3
    cells = [c.text for c in page.iter("{http://www.w3.org/1999/xhtml}td")]
    assert "cheapest order" in cells and "as written" in cells, cells
    assert "was 3" in text and "prefers-color-scheme:dark" in text


@test
def predictions_are_compared_with_runs():
    os.environ["HEADRACE_CACHE"] = str(temp / "cache")
    try:
        assert "no run was predicted yet" in run("explain", "--accuracy").stdout
        written, profile = profiled("runs", "pipeline:\n  - source.range: {n: 100000}\n  - debug.spin: {us: 100}\n"
                                            "  - batch.stack: {size: 10}\n")
        for _ in range(2):
            made = run_json("run", written, "--profile", profile, "--limit", "6000", "-q")["prediction"]
            assert made["rate"] > 0 and made["cpu_ns"] > 9e4 and made["measured_cpu_ns"] > 9e4, made
        text = run("run", written, "--profile", profile, "--limit", "6000").stdout
        assert "predicted" in text and "measured" in text, text
        short = run("run", written, "--profile", profile, "--limit", "20")
        assert "too short to be kept" in short.stderr and "measured from batch 4 on" in short.stderr, short
        kept = [json.loads(line) for line in (temp / "cache/accuracy.jsonl").read_text().splitlines()]
        assert len(kept) == 3 and all(k["records"] > 5000 and k["rate"] > 0 for k in kept), kept
        accuracy = run_json("explain", "--accuracy")
        assert accuracy["runs"] == 3 and accuracy["graphs"][0]["name"].endswith("runs.yaml"), accuracy
        assert 0 <= accuracy["graphs"][0]["rate"]["median"] <= accuracy["graphs"][0]["rate"]["p90"], accuracy
        assert "runs.yaml" in run("explain", "--accuracy").stdout
    finally:
        del os.environ["HEADRACE_CACHE"]


main()
