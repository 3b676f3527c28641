"""Runs our graphs and the references over the photos and compares the results.

    compare.py WORK_DIR DATA_DIR [part of a case's name]...

Prints a table and "N passed, N failed"; exit status 1 if a case failed.
"""
import shutil
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import cases
import geometry
from frame import Bench, Row

PHOTOS = 24


def choose(data, folder):
    """Chooses PHOTOS photos evenly, including some grey ones and eight rotated ones."""
    files = sorted(p for p in data.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    picked = files[:: max(1, len(files) // PHOTOS)][:PHOTOS]
    grey = [p for p in files if Image.open(p).mode == "L"][:2]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for at, path in enumerate(picked + grey):
        shutil.copyfile(path, folder / f"{at:03}.jpg")
    for turn in range(1, 9):
        with Image.open(picked[turn % len(picked)]) as image:
            exif = Image.Exif()
            exif[0x0112] = turn
            image.convert("RGB").save(folder / f"{900 + turn}.jpg", exif=exif, quality=92)
    return sorted(folder.iterdir())


def reference(case, path):
    with Image.open(path) as opened:
        opened.load()
        image = opened.convert("RGB")
        image.opened, image.filename_of_photo = opened, path
        return case.reference(image)


def one_line_less(ours, theirs):
    return all(0 <= t - o <= 1 for o, t in zip(ours.shape, theirs.shape))


def compare(bench, case, photos):
    row = Row(case.name, case.against, case.levels, case.beyond)
    nodes = [f"image.decode: {case.decode}"] + case.nodes
    made, problem = bench.run(bench.photos, nodes)
    if problem:
        return row.broken(problem)
    if len(made) != len(photos):
        return row.broken(f"{len(made)} images of {len(photos)}")
    for path, ours in zip(photos, made):
        theirs = reference(case, path)
        if case.line_less and ours.shape != theirs.shape and one_line_less(ours, theirs):
            continue
        if ours.shape != theirs.shape:
            return row.broken(f"{path.name}: shape {ours.shape}, theirs {theirs.shape}")
        row.add(np.abs(ours.astype(np.float64) - theirs.astype(np.float64)) * case.unit)
    return row


def main():
    work, data, wanted = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    torch.set_num_threads(1)
    bench = Bench(work, work / "photos")
    photos = choose(data, bench.photos)
    rows = []

    def show(row):
        print(row.text(), flush=True)
        rows.append(row)

    print(Row.head())
    for case in cases.all_cases():
        if not wanted or any(w in case.name for w in wanted):
            show(compare(bench, case, photos))
    for name, check in geometry.CHECKS.items():
        if not wanted or any(w in name for w in wanted):
            for row in check(bench, name, photos):
                show(row)
    failed = sum(not row.passed() for row in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
