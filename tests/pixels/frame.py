"""Shared by the comparisons: running one of our graphs, and a row of the table."""
import shutil
import subprocess
from dataclasses import dataclass

import numpy as np


ROUNDING = 1e-3  # tolerance for float rounding, in levels, so that a difference of exactly 1 passes


class Bench:
    """Runs graphs with the program `dump` in a working folder, by default over the given photos."""

    def __init__(self, work, photos):
        self.work, self.photos = work, photos

    def run(self, folder, nodes, seed=7):
        """Returns (list of arrays, in the order of file names; None) or ([], message)."""
        graph, out = self.work / "graph.yaml", self.work / "out"
        lines = [f"source.files: {{path: {folder}}}"] + nodes
        graph.write_text("headrace: 1\npipeline:\n" + "".join(f"  - {n}\n" for n in lines))
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        done = subprocess.run([str(self.work / "dump"), str(graph), str(out), str(seed)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return [], (done.stderr.strip() or f"dump: exit {done.returncode}")
        return [np.load(p)[0] for p in sorted(out.glob("*_image.npy"))], None


@dataclass
class Row:
    """A case's outcome. Differences are in grey levels."""
    name: str
    against: str
    levels: float
    beyond: float = 0
    photos: int = 0
    values: int = 0
    total: float = 0
    most: float = 0
    over: int = 0
    problem: str = ""
    remark: str = ""

    @staticmethod
    def head():
        return ("| case | against | photos | mean | max | beyond | allowed | |\n"
                "|---|---|---|---|---|---|---|---|")

    def add(self, difference):
        self.photos += 1
        self.values += difference.size
        self.total += difference.sum()
        self.most = max(self.most, difference.max(initial=0))
        self.over += int((difference > self.levels + ROUNDING).sum())

    def broken(self, problem):
        self.problem = problem
        return self

    def passed(self):
        return (not self.problem and self.values > 0 and
                self.over <= self.beyond * self.values)

    def text(self):
        verdict = "ok" if self.passed() else "FAILED"
        if self.problem:
            return f"| {self.name} | {self.against} | | | | | | FAILED: {self.problem} |"
        values = max(1, self.values)
        allowed = f"{self.levels:g}" + (f", but {100 * self.beyond:g} %" if self.beyond else "")
        return (f"| {self.name} | {self.against} | {self.photos} | {self.total / values:.4f} | "
                f"{self.most:.3f} | {100 * self.over / values:.4f} % | {allowed} | {verdict}"
                f"{': ' + self.remark if self.remark else ''} |")
