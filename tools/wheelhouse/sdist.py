"""Builds the source distribution from HEAD: sdist.py MADE

It is packed by Git and meson-python from what is committed. It has to build where there is no Git:
package.py makes the wheels from it, with a PATH that has none.
"""

from __future__ import annotations

import pathlib
import shutil
import sys

from common import ROOT, run

made = pathlib.Path(sys.argv[1]).resolve()
out = made / "sdist"
shutil.rmtree(out, ignore_errors=True)
out.mkdir(parents=True)
log = made / "sdist.log"
log.write_text("")
run([sys.executable, "-m", "build", "--sdist", "--no-isolation", "--skip-dependency-check", "--outdir", out, ROOT], log)
(archive,) = out.glob("headrace-*.tar.gz")
(ROOT / "dist").mkdir(exist_ok=True)
for old in (ROOT / "dist").glob("headrace-*.tar.gz"):
    old.unlink()
shutil.copy(archive, ROOT / "dist")
print(f"wheels: {archive.name}: {archive.stat().st_size >> 10} KiB")
