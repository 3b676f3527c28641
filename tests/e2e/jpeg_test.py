"""headrace jpeg: header descriptions, parts of photos, seek points."""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
from support import main, one_line, run, run_json, temp, test

folder = temp / "photos"
run("synth", "photos", folder, "-n", 4, "--classes", 1, "--width", 400, "--height", 300, "--uniform", "-q")
files = sorted(str(path) for path in folder.rglob("*.jpg"))


@test
def info_is_a_table_or_json():
    text = run("jpeg", "info", *files).stdout
    assert text.count("\n") == 5 and "own decoder" in text, text
    photos = run_json("jpeg", "info", "--json", *files)["photos"]
    assert [photo["file"] for photo in photos] == files
    assert all(photo["accepted"] and photo["reason"] is None for photo in photos), photos


@test
def unreadable_photos_are_reported_and_skipped():
    done = run("jpeg", "info", files[0], __file__, files[1], code=1)
    assert "jpeg_test.py" in done.stderr and "not a JPEG" in done.stderr, done.stderr
    assert files[0] in done.stdout and files[1] in done.stdout


@test
def threads_and_seek_points_change_no_byte():
    run("jpeg", "index", files[0], "-o", temp / "points")
    points = temp / "points" / (os.path.basename(files[0]) + ".entries")
    for more in ([], ["--gray"], ["--scale", 2], ["--window", "33,45,200,101"]):
        pictures = []
        for how in ([], ["--threads", 3], ["--threads", 3, "--index", points], ["--index", points]):
            run("jpeg", "decode", files[0], "-o", temp / "out.png", "-q", *more, *how)
            pictures.append((temp / "out.png").read_bytes())
        assert pictures.count(pictures[0]) == 4, more


@test
def stale_seek_points_are_refused_and_nothing_is_written():
    run("jpeg", "index", files[1], "-o", temp / "points", "-q")
    points = temp / "points" / (os.path.basename(files[1]) + ".entries")
    out = temp / "stale.png"
    one_line(run("jpeg", "decode", files[2], "-o", out, "--index", points, code=1), "different file")
    damaged = points.read_bytes()
    points.write_bytes(damaged[:-1] + bytes([damaged[-1] ^ 1]))
    one_line(run("jpeg", "decode", files[1], "-o", out, "--index", points, code=1), "damaged")
    assert not out.exists()


@test
def a_resize_has_its_size():
    out = temp / "small.png"
    text = run("jpeg", "decode", files[0], "-o", out, "--window", "10.5,20,100,90.25", "--size", "64x48",
               "--mode", "close").stdout
    assert "64x48" in text and out.read_bytes()[16:24] == bytes([0, 0, 0, 64, 0, 0, 0, 48])


@test
def wrong_options_say_what_is_expected():
    out = temp / "none.png"
    one_line(run("jpeg", "decode", files[0], code=2), "-o FILE.png")
    one_line(run("jpeg", "decode", *files, "-o", out, code=2), "one photo")
    one_line(run("jpeg", "decode", files[0], "-o", out, "--window", "1,2,3", code=2), "X,Y,WIDTH,HEIGHT")
    one_line(run("jpeg", "decode", files[0], "-o", out, "--window", "1,2,3.5,4", code=2), "whole pixels")
    one_line(run("jpeg", "decode", files[0], "-o", out, "--window", "0,0,9999,4", code=2), "not inside")
    one_line(run("jpeg", "decode", files[0], "-o", out, "--size", "12", code=2), "WIDTHxHEIGHT")
    one_line(run("jpeg", "decode", files[0], "-o", out, "--size", "9x9", "--threads", 2, code=2), "--threads")
    one_line(run("jpeg", "inof", files[0], code=2), "did you mean info?")
    one_line(run("jpeg", "decode", temp / "absent.jpg", "-o", out, code=1), "absent.jpg")
    assert not out.exists()


main()
