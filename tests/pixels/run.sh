#!/bin/sh
# Compares our pixels with Pillow's and torchvision's on real photos.
#
#     tests/pixels/run.sh [part of a case's name]...
#
# Uses the virtual environment of bench/peers. BUILD names the build folder with
# libheadrace.so (default build/, else build-peers/meson, built if neither exists),
# DATA the photos. Skipped with a message if there are no photos or torch cannot be installed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
peers=${PEERS_BUILD:-$root/build-peers}
data=${DATA:-$root/../shared/data/images}

skip() {
    echo "SKIP pixels: $*"
    exit 0
}

[ -d "$data" ] || skip "no photos in $data"
mkdir -p "$peers"
peers=$(cd "$peers" && pwd)
sh "$root/bench/peers/setup.sh" "$peers" torch torchvision
python=$peers/venv/bin/python
site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
LD_LIBRARY_PATH=$peers/cuda-stubs:$site/torchvision.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
"$python" -c 'import numpy, PIL, torch, torchvision' 2>/dev/null ||
    skip "torchvision does not load, see $peers/pip-torch.log"

build=${BUILD:-$root/build}
if [ ! -e "$build/libheadrace.so" ]; then
    build=$peers/meson
    echo "pixels: building the library in $build"
    [ -e "$build/build.ninja" ] || meson setup "$build" "$root" --buildtype=release >/dev/null
    ninja -C "$build" headrace >/dev/null
fi
build=$(cd "$build" && pwd)
mkdir -p "$peers/pixels"
cc -O2 -I "$root/include" -o "$peers/pixels/dump" "$here/dump.c" -L "$build" -lheadrace \
    -Wl,-rpath,"$build"
exec "$python" "$here/compare.py" "$peers/pixels" "$data" "$@"
