"""The command line: help, usage errors, and the commands other than run."""
import json
import os
import resource
import shutil
import stat
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(__file__))
from support import Skip, at_place, example, graph, headrace, main, one_line, photos, run, run_json, temp, terminal, test

commands = ["run", "init", "inspect", "explain", "plan", "profile", "optimize", "cedar", "convert", "pack", "ops", "synth", "index", "jpeg", "bench", "doctor", "dispatcher", "worker", "status", "workers", "jobs", "consumers", "top", "drain", "evict", "help", "version", "completion"]


@test
def every_command_has_help_with_examples():
    for command in commands:
        text = run(command, "--help").stdout
        assert "Usage: headrace " + command in text and "Examples" in text, text
        assert text == run("help", command).stdout


@test
def no_command_shows_the_overview_and_is_a_usage_error():
    text = run(code=2).stderr
    assert all(command in text for command in commands), text
    assert run("--help").stdout == text


@test
def an_unknown_option_suggests_the_nearest():
    one_line(run("run", example("noop.yaml"), "--thread", "3", code=2), "--thread", "did you mean --threads?")
    one_line(run("run", example("noop.yaml"), "--zzzzzz", code=2), "--zzzzzz")
    one_line(run("rnu", code=2), "'rnu'", "did you mean run?")


@test
def wrong_values_say_what_is_expected():
    noop = example("noop.yaml")
    one_line(run("run", noop, "--threads", "many", code=2), "--threads", "whole number")
    one_line(run("run", noop, "--threads", "-1", code=2), "--threads")
    one_line(run("run", noop, "--limit", "99999999999999999999", code=2), "--limit")
    one_line(run("run", noop, "--memory", "12 apples", code=2), "64MB")
    one_line(run("run", noop, "--memory", "-1", code=2), "--memory")
    one_line(run("run", noop, "--ordered", "perhaps", code=2), "true or false")
    one_line(run("run", noop, "--errors", "ignore", code=2), "fail|skip|substitute")
    one_line(run("run", noop, "-p", "n", code=2), "name=value")
    one_line(run("run", noop, "-p", "n=3", "--param", "n=4", code=2), "--param: 'n' is given twice, as '3' and as '4'")
    one_line(run("convert", "stats.yml", noop, "--map", "8", code=2), "--map expects ID=node, not '8'")
    one_line(run("convert", "stats.yml", noop, "--map", "8=a", "--map", "8=b", code=2), "--map: '8' is given twice, as 'a' and as 'b'")
    one_line(run("run", noop, "--digest=yes", code=2), "takes no value")
    one_line(run("run", noop, "--seed", code=2), "--seed must be followed by")


@test
def wrong_arguments_are_refused():
    one_line(run("run", code=2), "GRAPH")
    one_line(run("run", "a.yaml", "b.yaml", code=2), "b.yaml")
    one_line(run("synth", "fotos", temp / "x", code=2), "did you mean photos?")
    one_line(run("index", temp, code=2), "-o FILE")
    one_line(run("bench", "nop", code=2), "did you mean noop?")
    one_line(run("completion", "csh", code=2), "fish")
    one_line(run("help", "rnu", code=2), "did you mean run?")
    one_line(run("run", example("noop.yaml"), "--rank", 2, "--world", 2, code=2), "--rank")
    one_line(run("run", example("noop.yaml"), "--save-every", 2, code=2), "--state")


@test
def invalid_graphs_are_usage_errors():
    one_line(run("run", "absent.yaml", code=2), "absent.yaml")
    one_line(run("run", example("noop.yaml"), "-p", "m=3", code=2), "m")


@test
def errors_of_graphs_show_the_line():
    wrong = graph("wrong.yaml", "pipeline:\n  - source.rnge: {n: 3}\n")
    at_place(run("run", wrong, code=2), "  - source.rnge: {n: 3}", "source.rnge", "wrong.yaml:3:5", "source.range")
    for command in ["inspect", "explain", "plan", "profile", "optimize"]:
        at_place(run(command, wrong, code=2), "  - source.rnge: {n: 3}", "source.rnge", "wrong.yaml:3:5")
    typed = graph("typed.yaml", "pipeline:\n  - source.range: {n: many}\n  - batch.stack: {size: 2}\n")
    at_place(run("run", typed, code=2), "  - source.range: {n: many}", "many", "typed.yaml:3", '"n"')
    late = graph("late.yaml", "pipeline:\n  - source.range: {n: 3}\n\t\n  - image.decode: {}\n".replace("\t", ""))
    at_place(run("run", late, code=2), "  - image.decode: {}", "image.decode", "late.yaml:5")  # found when frozen
    wide = graph("wide.yaml", "pipeline:\n  - source.range: {n: 3}  # größe\n  - \"größe\": {}\n")
    at_place(run("run", wide, code=2), '  - "größe": {}', '"größe"', "wide.yaml:4")
    first = graph("first.yaml", "pipeline:\n  - source.range: {n: öfter}\n")
    at_place(run("run", first, code=2), "  - source.range: {n: öfter}", "öfter", "first.yaml:3")
    at_place(run("run", example("vision_rrc.yaml"), code=2), '  data: {type: path, help: "a folder of photos"}',
             "data", "-p data=")
    at_place(run("run", example("vision_rrc.yaml"), "-p", "data=/absent/folder", code=None),
             '  - source.files: {path: "${data}", labels: "${labels}"}', "source.files", "/absent/folder")


@test
def a_long_line_is_shown_around_the_place():
    nodes = ", ".join('{"debug.identity": {}}' for _ in range(30))
    path = temp / "long.json"
    path.write_text('{"headrace": 1, "pipeline": [{"source.range": {"n": 3}}, ' + nodes + ', {"batch.stack": {"sise": 3}}, ' + nodes + "]}")
    lines = run("run", path, code=2).stderr.splitlines()
    assert len(lines) == 3 and all(len(line) <= 80 for line in lines[1:]), lines
    shown, marks = lines[1].partition(" | ")[2], lines[2].partition(" | ")[2]
    assert shown.startswith("...") and shown.endswith("..."), shown
    assert shown[marks.index("^"):][:6] == '"sise"' and marks.count("~") == 5, lines


@test
def a_line_that_is_not_text_is_not_shown():
    path = temp / "bell.yaml"
    path.write_bytes(b"headrace: 1\npipeline:\n  - source.rnge: {n: 3} # \xff\n")
    one_line(run("run", path, code=2), "bell.yaml")
    done = subprocess.run(["bash", "-c", f"{headrace} run <(printf 'headrace: 1\npipeline: [nothing]\n')"],
                          text=True, capture_output=True, timeout=60)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done  # a pipe is read once


@test
def colours_are_for_terminals_unless_told():
    wrong = graph("wrong.yaml", "pipeline:\n  - source.rnge: {n: 3}\n")
    red = "\033[1;31m"
    assert red not in run("run", wrong, code=2).stderr
    for plain in [["--color", "auto"], ["--color=never"]]:
        assert "\033" not in run("run", wrong, *plain, code=2).stderr
    for words, env in [(["--color", "always"], {}), ([], {"FORCE_COLOR": "1"}), (["--color=always"], {"NO_COLOR": "1"})]:
        text = run("run", wrong, *words, code=2, env=env).stderr
        assert text.startswith(red + "headrace:") and red + "^~~~" in text, (words, env, text)
    for words, env in [([], {"FORCE_COLOR": "0"}), ([], {"FORCE_COLOR": ""}), ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}),
                       (["--color", "never"], {"FORCE_COLOR": "1"})]:
        assert "\033" not in run("run", wrong, *words, code=2, env=env).stderr, (words, env)
    assert red in terminal("run", wrong, code=2)
    for words, env in [([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"}), (["--color", "never"], {})]:
        assert "\033" not in terminal("run", wrong, *words, code=2, env=env), (words, env)
    assert "\033[1m" in run("ops", "--color", "always").stdout and "\033" not in run("ops").stdout
    assert "\033[1m" in run("ops", "--help", "--color", "always").stdout
    one_line(run("ops", "--color", "blue", code=2), "--color expects auto|always|never, not 'blue'")
    one_line(run("ops", "--colour", "always", code=2), "did you mean --color?")


@test
def parameters_of_a_graph_are_listed():
    text = run("run", example("vision_rrc.yaml"), "--help-params").stdout
    assert "data (path)" in text and "required" in text and "size (int)" in text and "default 224" in text, text


@test
def version_is_one_line_or_json():
    version = run("version").stdout.split()
    assert version[0] == "headrace" and run_json("version")["version"] == version[1]
    assert run("--version").stdout.split() == version


@test
def doctor_shows_the_machine_and_says_what_to_do():
    text = run("doctor").stdout
    for part in ["Machine", "Limits", "Libraries and kernel", "Stores", "Warnings", "libjpeg-turbo", "libevent", "OpenSSL",
                 "io_uring", "gluster"]:
        assert part in text, f"no {part} in:\n{text}"
    facts = run_json("doctor")
    assert facts["version"] == run_json("version")["version"] and facts["operators"] >= len(run_json("ops"))
    machine = facts["machine"]
    assert 1 <= machine["cpus"] <= machine["cpus_affinity"] == len(os.sched_getaffinity(0)), machine
    assert facts["folders"]["cache"]["path"] == str(temp / "cache"), facts["folders"]
    assert facts["limits"]["open files"]["soft"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    for part in facts["parts"]:
        assert (part["state"] == "ready") == (part["problem"] is None), part
    assert {"file", "mem", "http", "https", "s3", "gluster"} <= {p["name"] for p in facts["parts"] if p["kind"] == "store"}


@test
def doctor_warns_of_what_is_low():
    def warnings(before="", env={}):
        environment = {**os.environ, "HEADRACE_CACHE": str(temp / "cache"), **env}
        done = subprocess.run(["bash", "-c", f"{before} exec {headrace} doctor --json"], env=environment, text=True,
                              capture_output=True, timeout=60)
        assert done.returncode == 0 and not done.stderr, done
        return "\n".join(json.loads(done.stdout)["warnings"])

    assert "files may be open" not in warnings("ulimit -n 1024;")
    assert "only 100 files may be open at once: raise the limit (ulimit -n" in warnings("ulimit -S -n 100;")
    assert "HEADRACE_ISA limits the kernels to c" in warnings(env={"HEADRACE_ISA": "c"}) or \
        "no instruction set" in warnings(env={"HEADRACE_ISA": "c"})
    assert "no cache folder" in warnings("unset HEADRACE_CACHE XDG_CACHE_HOME HOME;")
    if os.geteuid() != 0:
        assert "cannot be written" in warnings(env={"HEADRACE_CACHE": "/proc/no/cache"})
    if shutil.which("taskset") and len(os.sched_getaffinity(0)) > 1:
        assert "may run on 1 of" in warnings(f"taskset -p -c {min(os.sched_getaffinity(0))} $$ >/dev/null;")


@test
def the_man_page_has_every_option_and_groff_accepts_it():
    page = run("help", "--man").stdout
    assert "\\-\\-save\\-every" in page and page.count(".SS headrace") == len(commands)
    if not shutil.which("groff"):
        raise Skip("groff is not here")
    done = subprocess.run(["groff", "-man", "-Tascii", "-ww"], input=page, text=True, capture_output=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


@test
def the_completion_is_bash_and_completes():
    script = run("completion", "bash").stdout
    if not shutil.which("bash"):
        raise Skip("bash is not here")
    ask = script + '\nCOMP_WORDS=(headrace run --errors s); COMP_CWORD=3; _headrace; echo "${COMPREPLY[@]}"\n' \
        'COMP_WORDS=(headrace run --save); COMP_CWORD=2; _headrace; echo "${COMPREPLY[@]}"\n'
    done = subprocess.run(["bash", "-c", ask], text=True, capture_output=True)
    assert done.stdout.split() == ["skip", "substitute", "--save-every"], done


@test
def parameters_are_completed():
    chosen = graph("chosen.yaml", """params:
  mode: {choices: [fast, exact], default: fast}
  level: {choices: [1, 2], default: 1}
  shuffle: {default: true}
  data: {type: path}
  dtype: {type: dtype, default: float32}
pipeline:
  - source.list: {path: "${data}"}
""")
    lines = run("completion", "--params", chosen).stdout.split()
    assert lines[:7] == ["mode=fast", "mode=exact", "level=1", "level=2", "shuffle=true", "shuffle=false", "data="], lines
    assert "dtype=uint8" in lines and "dtype=bfloat16" in lines, lines
    assert run("completion", "--params", photos()).stdout.split() == ["data=", "size=", "batch="]
    one_line(run("completion", "--params", "absent.yaml", code=2), "absent.yaml")
    one_line(run("completion", code=2), "bash|zsh|fish")
    assert "one of fast, exact; default fast" in run("run", chosen, "--help-params").stdout
    params = {p["name"]: p for p in run_json("inspect", example("vision_rrc.yaml"), "-p", f"data={photos()}")["params"]}
    assert params["mode"]["choices"] == ["close", "exact", "fast"] and "choices" not in params["size"], params
    if not shutil.which("bash"):
        raise Skip("bash is not here")

    def complete(*words):  # as bash splits them
        ask = f'headrace() {{ {headrace} "$@"; }}\n' + run("completion", "bash").stdout + \
            f'\nCOMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _headrace 2>/dev/null; echo "${{COMPREPLY[@]}}"\n'
        done = subprocess.run(["bash", "-c", ask], text=True, capture_output=True, cwd=temp)
        assert done.returncode == 0 and not done.stderr, done
        return done.stdout.split()

    assert complete("headrace", "run", "chosen.yaml", "-p", "''") == ["mode=", "level=", "shuffle=", "data=", "dtype="]
    assert complete("headrace", "run", "chosen.yaml", "-p", "mo") == ["mode="]
    assert complete("headrace", "run", "chosen.yaml", "-p", "mode", "=") == ["fast", "exact"]
    assert complete("headrace", "run", "chosen.yaml", "--param", "mode", "=", "f") == ["fast"]
    assert complete("headrace", "inspect", "chosen.yaml", "-p", "mode", "=", "fast", "-p", "sh") == ["shuffle="]
    assert complete("headrace", "run", "-p", "mode", "=", "e", "chosen.yaml")[-1:] == ["chosen.yaml"]  # the word at the cursor
    assert complete("headrace", "run", "absent.yaml", "-p", "mo") == []
    assert complete("headrace", "run", "chosen.yaml", "-p", "zz") == []
    assert complete("headrace", "run", "chosen.yaml", "--color", "al") == ["always"]


@test
def the_completion_is_fish_and_completes():
    script = run("completion", "fish").stdout
    if not shutil.which("fish"):
        raise Skip("fish is not here")
    ask = script + "\ncomplete -C 'headrace run --errors s'; complete -C 'headrace run --save'; complete -C 'headrace synth ph'\n"
    done = subprocess.run(["fish", "--no-config", "-c", ask], text=True, capture_output=True)
    words = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert words == ["skip", "substitute", "--save-every", "photos"], done


@test
def the_completion_is_zsh():
    script = run("completion", "zsh").stdout
    assert script.startswith("#compdef headrace\n") and "'--save-every[" in script and "(fail skip substitute)" in script
    assert script.count("name=value:_headrace_params'") == script.count("[set a parameter of the graph")
    if not shutil.which("zsh"):
        raise Skip("zsh is not here")
    # _arguments only works inside the line editor: replace it and print its arguments.
    ask = "compdef() { :; }\n_arguments() { print -rl -- $@ }\n_describe() { print -rl -- $commands }\n" + script + (
        "\nwords=(headrace run --sa) CURRENT=3; _headrace\nwords=(headrace r) CURRENT=2; _headrace\n")
    done = subprocess.run(["zsh", "-fc", ask], text=True, capture_output=True)
    given = done.stdout.splitlines()
    assert not done.stderr and "--digest" in done.stdout and any(w.startswith("run:") for w in given), done


@test
def ops_are_listed_described_and_written():
    assert "image.decode" in run("ops").stdout and "debug.identity" not in run("ops").stdout
    assert "debug.identity" in run("ops", "--all").stdout
    assert "size" in run("ops", "image.random_resized_crop").stdout
    one_line(run("ops", "image.dcode", code=2), "image.decode")
    ops = run_json("ops")
    names = [op["name"] for op in ops]
    assert names == sorted(names) and run("ops", "--names").stdout.split() == names
    assert all(p["help"] and p["type"] for op in ops for p in op["params"]), "a parameter has no help text"
    run("ops", "--markdown", temp / "ops")
    assert "| `size` |" in (temp / "ops/batch.stack.md").read_text()
    assert (temp / "ops/README.md").exists()


@test
def ops_are_found_by_words():
    names = run("ops", "crop", "--names").stdout.split()
    assert {"image.center_crop", "image.random_crop", "audio.crop"} <= set(names), names
    for op in run_json("ops", "CROP"):
        assert "crop" in op["name"] or "crop" in op["summary"].lower(), op["name"]
        assert op["name"] in names
    every = run_json("ops")
    assert names == [op["name"] for op in every if "crop" in op["name"] or "crop" in op["summary"].lower()]
    assert run("ops", "crop").stdout.splitlines()[0].split()[0] == names[0]
    both = run("ops", "random", "crop", "--names").stdout.split()
    assert "image.random_crop" in both and "image.center_crop" not in both, both
    assert run("ops", "image.norm").stdout == run("ops", "image.normalize").stdout  # the only one is described
    assert "debug.spin" in run("ops", "debug", "--all").stdout
    one_line(run("ops", "debug.spn", code=2), "debug")
    one_line(run("ops", "corp", code=2), "'corp'", "near: audio.crop, image.center_crop")
    one_line(run("ops", "crop", "zebra", code=2), "all of these words")
    one_line(run("ops", "qqqqqqqq", code=2), "qqqqqqqq", "headrace ops lists all")


@test
def synth_range_writes_lines_by_rename():
    run("synth", "range", temp / "numbers.txt", "-n", 1000, "-q")
    assert (temp / "numbers.txt").read_text() == "".join(f"{i}\n" for i in range(1000))
    one_line(run("synth", "range", temp / "absent/numbers.txt", code=1), "absent/numbers.txt")
    assert not list(temp.glob("numbers.txt.*"))


@test
def synth_photos_refuses_to_mix_two_sets():
    done = run("synth", "photos", photos(), "--count", 40, "--seed", 5, code=2)
    one_line(done, "different settings")


@test
def an_index_is_created_and_used():
    run("synth", "names", temp / "names", "-n", 500, "--folders", 5, "-q")
    made = run_json("index", temp / "names", "-o", temp / "names.index")
    assert made["files"] == 500 and made["classes"] == 5, made
    for folder in [temp / "names", *(temp / "names").iterdir()]:
        os.utime(folder, (1e9, 1e9))  # recently changed folders are always read again
    run("index", temp / "names", "-o", temp / "names.index")
    assert run_json("index", temp / "names", "-o", temp / "names.index")["folders_rescanned"] == 0
    one_line(run("index", temp / "absent", "-o", temp / "x.index", code=None), "absent")
    assert not (temp / "x.index").exists()
    one_line(run("index", temp / "names", "-o", temp / "no/x.index", code=1), "no/x.index")


@test
def an_index_of_shards_is_created_and_used():
    for i in range(3):
        (temp / f"part{i}.csv").write_text("a,b\n" + f"{i},x\n" * 50)
        os.utime(temp / f"part{i}.csv", (1e9, 1e9))
    pattern, index = temp / "part{0..2}.csv", temp / "parts.index"
    made = run_json("index", pattern, "-o", index)
    assert made["records"] == 150 and made["bytes"] == index.stat().st_size, made
    assert "150 records" in run("index", pattern, "-o", index).stdout
    source = graph("parts.yaml", f"pipeline:\n  - source.csv: {{path: '{pattern}', index: '{index}'}}\n")
    before = index.stat().st_mtime_ns
    assert "150 records" in run("run", source).stdout
    assert index.stat().st_mtime_ns == before
    (temp / "part1.csv").write_text("a,b\n1,y\n")
    os.utime(temp / "part1.csv", (1e9 + 1, 1e9 + 1))
    assert "101 records" in run("run", source).stdout
    assert index.stat().st_mtime_ns != before
    one_line(run("index", temp / "absent.tar", "-o", temp / "y.index", code=None), "absent.tar")
    (temp / "new.txt").write_text("now\n")
    one_line(run("index", temp / "new.txt", "-o", temp / "y.index", code=1), "was not written")
    one_line(run("index", temp / "new.txt", "--seek", "-o", temp / "y.index", code=2), "folders of photos")


@test
def inspect_shows_shapes_and_saves_pictures():
    args = ["inspect", example("vision_rrc.yaml"), "-p", f"data={photos()}", "-p", "size=48"]
    text = run(*args).stdout
    assert "float32[batch, 3, 48, 48]" in text and "record 2" in text, text
    text = run(*args, "--save", temp / "look", "-n", 5).stdout
    assert sorted(p.name for p in (temp / "look").iterdir()) == [f"{i:06}.png" for i in range(5)] + ["contact.png"]
    assert all(p.read_bytes()[:4] == b"\x89PNG" for p in (temp / "look").iterdir())
    done = run("inspect", example("noop.yaml"), "--save", temp / "none", code=1)
    assert "looks like an image" in done.stderr


@test
def inspect_reads_text_files():
    path = temp / "a text.txt"
    path.write_bytes(b"one\r\n\nthree")
    done = run("inspect", path)
    assert "text bytes" in done.stdout and "3 whole records, 0 damaged" in done.stdout, done.stdout
    (temp / "a.jsonl").write_text('{"a": 1, "b": "x"}\n{"a": 2}\n')
    done = run("inspect", temp / "a.jsonl", code=1)
    assert "a int64, b bytes" in done.stdout and 'keys "a", "b"; inferred: a int64, b text' in done.stdout, done.stdout
    assert "1 whole record, 1 damaged" in done.stdout, done.stdout
    assert "a.jsonl:2: byte 19: column" in done.stdout, done.stdout
    (temp / "a.csv").write_text("a,b\n1,x\n")
    assert "1 whole record, 0 damaged" in run("inspect", temp / "a.csv").stdout


@test
def inspect_shows_integers_in_full_and_what_is_wrong_as_it_is():
    (temp / "wrong.csv").write_text('id,n\n9007199254740993,1\nx"y,2\n-123456789012,\n')
    text = run("inspect", temp / "wrong.csv", code=1).stdout
    assert " 9007199254740993\n" in text, text
    assert 'wrong.csv:4' in text and 'column "n": the value is missing' in text and "\\" not in text, text


@test
def inspect_reads_arrays_of_numpy():
    path = temp / "an array.npy"
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n"
    path.write_bytes(b"\x93NUMPY\1\0" + bytes([len(head), 0]) + head + bytes(24))
    done = run("inspect", path)
    assert "array" in done.stdout and "float32[2]" in done.stdout and "3 whole records, 0 damaged" in done.stdout, done.stdout
    path.write_bytes(path.read_bytes()[:-1])
    assert "the file ends before its data" in run("inspect", path, code=None).stderr


@test
def inspect_json_has_shapes_without_data():
    result = run_json("inspect", example("vision_rrc.yaml"), "-p", f"data={photos()}", "-p", "size=48")
    last = result["nodes"][-1]
    assert last["op"] == "batch.stack" and result["records"] == 40, result
    assert [f["dims"] for f in last["fields"] if f["name"] == "image"] == [[-1, 3, 48, 48]], last


@test
def explain_shows_what_is_composed():
    args = ["explain", example("vision_rrc.yaml"), "-p", f"data={photos()}"]
    assert "image.decode" in run(*args).stdout
    json.loads(run(*args, "--json").stdout)


@test
def explain_measures_the_effect_of_modes():
    args = ["explain", "--measure", example("vision_rrc.yaml"), "-p", f"data={photos()}", "-p", "size=16"]
    result = run_json(*args, "-q")
    assert result["records"] == 40 and result["mode_nodes"] == ["image.decode"], result
    nodes = {n["node"]: n for n in result["nodes"]}
    assert nodes["image.decode"]["records"] == 40 and nodes["image.decode"]["record_ns"] > 1000, result
    assert all(m["speed_low"] <= m["speed"] <= m["speed_high"] for m in result["modes"]), result
    exact, close, fast = result["modes"]
    assert exact["from_exact"] == [] and all(m["cpu_us_per_record"] > 0 for m in result["modes"]), result
    near, far = close["from_exact"][0], fast["from_exact"][0]
    assert near["field"] == "image" and near["unit"] == far["unit"] == "grey levels", result
    assert 0 < near["mean"] < far["mean"] < far["worst_record"] < far["worst_value"] < 255, result
    text = run(*args, "--records", 5, "-q").stdout
    assert "grey levels" in text and "image.normalize" in text and "CPU each" in text, text


@test
def explain_finds_the_modes_wherever_they_are():
    # u8 levels, two images, nodes written before their inputs
    two = graph("two.yaml", """params: {data: {type: path}}
pipeline:
  - flow.zip: {prefix: [a_, b_]}
    inputs: [a, b]
  - source.files: {path: "${data}"}
    name: src
  - image.decode: {mode: fast}
    name: first
    inputs: [src]
  - image.decode: {}
    name: second
    inputs: [src]
  - image.resize: {size: [16, 16]}
    name: a
    inputs: [first]
  - image.resize: {size: [20, 20]}
    name: b
    inputs: [second]
""")
    result = run_json("explain", "--measure", two, "-p", f"data={photos()}", "-q")
    assert sorted(result["mode_nodes"]) == ["first", "second"] and result["records"] == 40, result
    assert [f["field"] for f in result["modes"][2]["from_exact"]] == ["a_image", "b_image"], result
    assert result["modes"][2]["from_exact"][0]["mean"] > 0, result
    assert all(m["cpu_us_per_record"] > 10 for m in result["modes"]), result


@test
def a_profile_has_every_node():
    args = [example("vision_rrc.yaml"), "-p", f"data={photos()}", "-p", "size=16", "--records", "40"]
    profile = run_json("profile", *args, "-o", "p.json", "-q")
    assert profile == json.loads((temp / "p.json").read_text())
    names = [node["node"] for node in profile["nodes"]]
    decode = next(node for node in profile["nodes"] if node["op"] == "image.decode")
    assert profile["headrace_profile"] == 4 and decode["cpu_ns"] > 0 and decode["bytes_out"] > decode["bytes_in"]
    text = run("profile", *args).stdout
    assert all(name in text for name in names)
    empty = graph("empty.yaml", "pipeline:\n  - source.range: {n: 0}\n  - debug.identity: {}\n")
    one_line(run("profile", empty, "--seconds", "1", code=1), "nothing to measure")



@test
def a_profile_of_many_nodes_ends_when_their_sum_is_known():
    spins = "".join(f"  - debug.spin: {{us: {2 if at == 0 else 0.2}}}\n" for at in range(120))
    many = graph("many.yaml", "pipeline:\n  - source.range: {n: 1000000}\n" + spins + "  - batch.stack: {size: 64}\n")
    profile = run_json("profile", many, "--seconds", "60", "-q")
    assert profile["seconds"] < 60, "it took all of --seconds"
    rare = "  - debug.spin: {us: 2, every: 97, factor: 300}\n"  # a node that is never known to within 1 %
    uneven = graph("uneven.yaml", "pipeline:\n  - source.range: {n: 1000000}\n" + spins + rare + "  - batch.stack: {size: 64}\n")
    text = run("profile", uneven, "--seconds", "2", "--width", "1").stdout
    assert "of the CPU time" in text and "The sum is known to within" in text, text


@test
def an_optimized_graph_gives_the_same_digest():
    written = graph("written.yaml", "title: slow\npipeline:\n  - source.range: {n: 400}\n  - debug.spin: {us: 20}\n"
                    "  - record.filter: {expr: \"value > 300\"}\n  - batch.stack: {size: 10}\n")
    found = run_json("optimize", written, "-o", "faster.yaml", "--seconds", "1", "-q", "--json")
    run("optimize", written, "-o", "faster.json", "--seconds", "1", "-q")
    assert json.loads((temp / "faster.json").read_text())["title"] == "slow"
    assert "title: slow" in (temp / "faster.yaml").read_text()
    assert found["moved"] == 2 and found["difference"] == 0 and found["dropped"] is None, found
    assert found["needs"] == "exact", found
    assert found["nodes"] == ["source.range", "record.filter", "debug.spin", "batch.stack"], found
    digests = [run_json("run", graph, "--digest", "--json", "-q")["digest"] for graph in (written, "faster.yaml", "faster.json")]
    assert digests[0] == digests[1] == digests[2], digests
    text = run("optimize", written, "--seconds", "1").stdout
    assert "2 nodes stand elsewhere" in text and "(was 3)" in text and "have the same bytes" in text, text
    text = run("optimize", "faster.yaml", "--seconds", "1").stdout
    assert "no order is cheaper" in text, text
    at_place(run("optimize", written, "--profile", written, code=2), "headrace: 1", "headrace", "written.yaml:1:1: this is no profile")


cedar_stats = """baseline:
  throughput: 39.89594
  latencies: {9: 16526.24, 8: 1966147, 7: 334439.6, 6: 2069423, 5: 121452.4, 4: 9625668, 3: 363186.9, 2: 6194943, 1: 246840, 0: 5126579}
  input_sizes: {9: 0, 8: 152.8, 7: 535453.3, 6: 2141813, 5: 714432, 4: 714432, 3: 714432, 2: 238144, 1: 238144, 0: 238144}
  output_sizes: {9: 152.8, 8: 535453.3, 7: 2141813, 6: 714432, 5: 714432, 4: 714432, 3: 238144, 2: 238144, 1: 238144, 0: 238144}
offloads:
  RAY: {8: {throughput: 40.09831}, 7: {throughput: 22.25921}, 6: {throughput: 23.49422}, 5: {throughput: 30.62993},
        4: {throughput: 41.81244}, 3: {throughput: 33.39287}, 2: {throughput: 62.65463}, 1: {throughput: 36.06594}}
disk_info: {read_latency: 8.0e-09, write_latency: 2.5e-08}
"""
cedar_pipes = """logical_plan:
  pipes:
    9: {name: LocalFSListerPipe}
    8: {name: MapperPipe_read, fix: true}
    7: {name: MapperPipe_to_float, tag: float}
    6: {name: MapperPipe_crop, tag: crop, is_random: true}
    5: {name: MapperPipe_flip, depends_on: [crop], is_random: true}
    4: {name: MapperPipe_jitter, is_random: true}
    3: {name: MapperPipe_gray}
    2: {name: MapperPipe_blur}
    1: {name: MapperPipe_norm, depends_on: [float]}
    0: {name: BatcherPipe(batch_size=1)}
"""


@test
def cedars_statistics_give_cedars_plan_and_ours():
    (temp / "stats.yml").write_text(cedar_stats)
    (temp / "pipes.yml").write_text(cedar_pipes)
    found = run_json("cedar", "stats.yml", "pipes.yml", "-o", "plan.yml")
    assert found["orders"] == 1260 and found["drivers"] == 8 and found["best"] and found["cache_after"] is None, found
    assert [round(found[key], 3) for key in ("written_ms", "order_ms", "cost_ms")] == [25.065, 9.808, 5.498], found
    assert found["order"] == [9, 8, 3, 6, 2, 5, 4, 7, 1, 0], found
    slice = found["stages"][1]
    assert slice["pipes"] == [8, 3, 6, 2, 5, 4] and slice["variant"] == "RAY" and (slice["workers"], slice["submit_batch"]) == (4, 33), slice
    ours = run_json("cedar", "stats.yml", "pipes.yml", "--rule", "headrace")
    assert ours["orders"] == 1260 and ours["cost_ms"] <= found["cost_ms"], ours
    local = run_json("cedar", "stats.yml", "plan.yml", "--no-offload", "--cache-samples", "9472")  # names from the plan
    assert local["cache_after"] == 3 and [stage["kind"] for stage in local["stages"]].count("cache") == 1, local
    text = run("cedar", "stats.yml", "pipes.yml").stdout
    assert "1,260" in text and "MapperPipe_read + MapperPipe_gray" in text and "drivers       8" in text, text
    at_place(run("cedar", "pipes.yml", "stats.yml", code=2), "logical_plan:", "logical_plan", "pipes.yml:1:1: key \"logical_plan\" is not known")
    (temp / "few.yml").write_text(cedar_pipes.replace("    3: {name: MapperPipe_gray}\n", ""))
    one_line(run("cedar", "stats.yml", "few.yml", code=2), "have pipe 3, which is missing")


@test
def statistics_of_cedar_and_profiles_are_converted():
    spin = graph("spin.yaml", "pipeline:\n  - source.range: {n: 400}\n  - debug.spin: {us: 20}\n    name: read\n"
                 "  - debug.spin: {us: 2}\n    name: blur\n  - batch.stack: {size: 10}\n")
    (temp / "stats.yml").write_text(cedar_stats)
    profile = json.loads(run("convert", "stats.yml", spin, "--map", "8=read", "--map", "2=blur").stdout)
    assert [node["cpu_ns"] for node in profile["nodes"]] == [0, 1966147, 6194943, 0], profile
    run("convert", "stats.yml", spin, "--map", "8=read", "--map", "2=blur", "-o", "p.json")
    assert run_json("optimize", spin, "--profile", "p.json", "--rule", "cedar", "-q")["nodes"][1] == "blur"  # read makes more bytes
    run("profile", spin, "--seconds", "1", "-o", "p.json", "-q")
    run("convert", "p.json", "-o", "back.yml", "--pipes", "names.yml")
    for same in ("both.yml", "./both.yml", temp / "both.yml"):
        one_line(run("convert", "p.json", "-o", "both.yml", "--pipes", same, code=2), "--output and --pipes are the same file")
        assert not (temp / "both.yml").exists()
    run("convert", "p.json", "-o", "/dev/null", "--pipes", "/dev/null")
    found = run_json("cedar", "back.yml", "names.yml")
    assert len(found["order"]) == 4 and found["written_ms"] > 0, found
    one_line(run("convert", "stats.yml", spin, code=2), "10 pipes and the graph 4 nodes")
    one_line(run("convert", "stats.yml", spin, "--map", "x=read", code=2), "the number of a pipe is wanted")
    one_line(run("convert", "p.json", "--map", "1=read", code=2), "need a GRAPH")
    (temp / "plan.yml").write_text(cedar_pipes.replace("logical", "physical").replace(
        "  pipes:", "  graph: {9: '2', 2: '8', 8: '7', 7: '6', 6: '5', 5: '4', 4: '3', 3: '1', 1: '0', 0: ''}\n  pipes:"))
    run("convert", "plan.yml", spin, "--order", "--map", "8=read", "--map", "2=blur", "-o", "ordered.yaml")
    text = (temp / "ordered.yaml").read_text()
    assert text.index("blur") < text.index("read"), text
    at_place(run("convert", "stats.yml", code=2), "baseline:", "baseline", "stats.yml:1:1: this is no profile")


@test
def rules_of_others_say_that_an_order_may_be_cheaper():
    filters = "".join(f"  - record.filter: {{expr: \"value % {n}\"}}\n" for n in ("4 == 0", "3 > 0"))
    written = graph("filters.yaml", f"pipeline:\n  - source.range: {{n: 400}}\n{filters}  - batch.stack: {{size: 10}}\n")
    text = run("optimize", written, "--rule", "pecan", "--seconds", "1").stdout
    assert "2 nodes stand elsewhere" in text and "another order may be cheaper: see --rule headrace" in text, text


@test
def a_cache_is_proposed_and_the_digest_stays():
    written = graph("dear.yaml", "pipeline:\n  - source.range: {n: 200}\n  - debug.spin: {us: 300}\n    name: dear\n  - batch.stack: {size: 8}\n")
    words = ["optimize", written, "--seconds", "1", "--epochs", "10"]
    found = run_json(*words, "-o", "cached.yaml", "-q")
    assert found["nodes"] == ["source.range", "dear", "flow.cache", "batch.stack"]
    best = found["caches"][0]
    assert best["after"] == "dear" and best["in"] == "memory" and best["chosen"] and 4 < best["gain"] <= 10.01
    digests = [run_json("run", graph, "--digest", "--epochs", "2", "--json", "-q")["digest"] for graph in (written, "cached.yaml")]
    assert digests[0] == digests[1]
    text = run(*words, "--cache-folder", temp / "entries").stdout
    assert "after 'dear' in memory" in text and "after 'dear' in the folder" in text
    assert text.count(" (chosen)") == 1 and "flow.cache  (new)" in text and "(was" not in text, text
    run("profile", written, "--fuse", "--seconds", "1", "-o", "dear.json", "-q")
    text = run("explain", written, "--profile", "dear.json", "--epochs", "10").stdout
    assert "cache: after 'dear' in memory; " in text and "times the rate of the next best, " in text, text
    assert not (temp / "entries").exists()
    places = run_json(*words, "--cache-memory", "0", "--cache-folder", f"{temp}/new/entries/", "-q")["caches"]
    assert not (temp / "new").exists()
    assert {place["in"] for place in places} == {"folder", None}, places
    for wrong, why in ((["--refresh", "3"], "need --epochs N"), (["--cache-memory", "0"], "need --epochs N"),
                       (["--epochs", "3", "--cache-memory", "0"], "needs --cache-folder"),
                       (["--epochs", "3", "--cache-bytes", "1GB"], "needs --cache-folder")):
        assert why in run("optimize", written, *wrong, code=2).stderr
    assert "--epochs needs --profile" in run("explain", written, "--epochs", "3", code=2).stderr


@test
def a_cache_of_jpegs_is_proposed_where_pixels_find_no_room():
    run("synth", "photos", temp / "small", "--count", "12", "-q")
    written = graph("room.yaml", f"pipeline:\n  - source.files: {{path: '{temp}/small'}}\n  - image.decode\n"
                                 "  - image.resize: {size: 64}\n  - debug.spin: {us: 3000}\n    name: dear\n  - batch.stack: {size: 4}\n")
    words = ["optimize", written, "--seconds", "1", "--epochs", "10", "--cache-memory", "60kB", "-q"]
    found = run_json(*words, "--cache-quality", "90", "-o", "jpegs.yaml")
    assert found["nodes"][-4:] == ["image.encode", "flow.cache", "image.decode2", "batch.stack"], found["nodes"]
    best = found["caches"][0]
    assert best["image"] == "image" and best["part"] == 1 and best["chosen"], best
    raw = next(place for place in found["caches"] if place["after"] == "dear" and place["image"] is None)
    assert raw["part"] < 0.5 and raw["gain"] < best["gain"], raw
    run("run", "jpegs.yaml", "--epochs", "2", "--batch-digests", "jpegs.txt", "-q")
    lines = [line.split()[1:] for line in (temp / "jpegs.txt").read_text().splitlines()]
    assert len(lines) == 6 and lines[:3] == lines[3:], lines
    assert all(place["image"] is None for place in run_json(*words)["caches"])
    assert "need --epochs N" in run("optimize", written, "--cache-quality", "90", code=2).stderr



@test
def optimize_uses_saved_profiles():
    written = graph("saved.yaml", "pipeline:\n  - source.range: {n: 400}\n  - debug.spin: {us: 20}\n"
                                  "  - record.filter: {expr: \"value > 300\"}\n  - batch.stack: {size: 10}\n")
    words, cache = ["optimize", written, "--seconds", "1", "-q"], temp / "kept"
    env = {"HEADRACE_CACHE": str(cache)}
    saved = [run_json(*words, *more, env=env)["saved_profile"] for more in ([], [], ["--fresh"])]
    assert saved == [False, True, False], saved
    files = sorted((cache / "profiles").iterdir())
    assert len(files) == 4 and all(json.loads(f.read_text())["nodes"] for f in files), files
    text = run("optimize", written, env=env)
    assert "measured today; --fresh measures them again" in text.stdout and text.stderr == "", text
    files[0].write_text("damaged")
    text = run("optimize", written, "--seconds", "1", env=env)
    assert str(files[0]) in text.stderr and "will be replaced" in text.stderr and "2 nodes" in text.stdout, text
    assert run_json(*words, env=env)["saved_profile"]
    assert run_json(*words, env={"HEADRACE_CACHE": ""})["saved_profile"] is False
    text = run("optimize", written, "--seconds", "1", env={"HEADRACE_CACHE": "/dev/null/no"})
    assert "HEADRACE_CACHE" in text.stderr and "2 nodes" in text.stdout, text
    run("profile", example("noop.yaml"), "-p", "n=1000", "--fuse", "--save", "--seconds", "1", "-q", env=env)
    assert run_json("optimize", example("noop.yaml"), "-p", "n=1000", "-q", env=env)["saved_profile"]


@test
def profiles_are_merged():
    words = ["profile", example("noop.yaml"), "-p", "n=1000", "--seconds", "1", "-q"]
    run(*words, "-o", "a.json"), run(*words, "-o", "b.json"), run(*words, "-o", "fused.json", "--fuse")
    both = run_json("profile", "--merge", "a.json", "b.json", "-o", "both.json", "-q")
    assert both == json.loads((temp / "both.json").read_text())
    counts = [json.loads((temp / n).read_text())["nodes"][0]["records_in"] for n in ("a.json", "b.json", "both.json")]
    assert counts[0] + counts[1] == counts[2], counts
    one_line(run("profile", "--merge", "a.json", "fused.json", code=1), "fused.json: profiles with a different \"fused\"")
    one_line(run("profile", "--merge", "a.json", "none.json", code=2), "none.json")
    one_line(run("profile", example("noop.yaml"), "more.yaml", code=2), "more.yaml is too many")
    one_line(run("profile", "a.json", "--merge", "--save", code=2), "--save")


@test
def explain_measures_graphs_without_modes():
    result = run_json("explain", "--measure", example("noop.yaml"), "-p", "n=1000", "-q")
    assert "modes" not in result and all(n["records"] >= 200 for n in result["nodes"]), result
    sizes = graph("sizes.yaml", f"pipeline:\n  - source.files: {{path: '{photos()}'}}\n"
                                "  - image.decode: {}\n  - record.drop: {fields: [image]}\n")
    text = run("explain", "--measure", sizes, "-q").stdout
    assert "record.drop" in text and "The modes are not compared" in text, text


@test
def bench_lists_and_measures():
    assert "noop" in run("bench", "--list").stdout
    assert "noop" in [each["name"] for each in run_json("bench", "--list")["benchmarks"]]
    result = run_json("bench", "noop", "-n", 2000, "--rounds", 2, "-q")
    assert result["unit"] == "ns per record" and all(c["median"] > 0 for c in result["cases"]), result
    result = run_json("bench", "jpeg", "--data", photos(), "--rounds", 1, "-q")
    assert [c["name"] for c in result["cases"]][-1] == "fast, second epoch", result
    assert len(result["cases"]) == 6 and all(c["median"] > 0 for c in result["cases"]), result


@test
def colours_stay_off_pipes():
    for words in (["--help"], ["ops"], ["run", "--help"]):
        assert "\033" not in run(*words, env={"TERM": "xterm"}).stdout


@test
def a_pipe_is_written_and_stays():
    """And so does a device, which root could replace by a file."""
    pipe = temp / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    run("plan", example("noop.yaml"), "-o", pipe)
    reader.join()
    assert got[0].startswith("headrace_plan: 1") and stat.S_ISFIFO(pipe.stat().st_mode), got


@test
def a_full_disk_is_a_failure():
    if not os.path.exists("/dev/full"):
        raise Skip("/dev/full is not here")
    with open("/dev/full", "w") as full:
        done = subprocess.run([headrace, "ops"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "standard output" in done.stderr, done


main()
