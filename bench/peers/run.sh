#!/bin/sh
# Compares Headrace with other loaders on this machine.
#
#     bench/peers/run.sh [--quick] [arguments of race.py]
#
# Sets up build-peers/venv, builds what is missing, and writes build-peers/peers.json,
# peers.md and peers.png. Takes about 40 minutes; --quick runs one short round without the
# sweep, about 8 minutes, to check that everything works. After an interruption, run it again to
# resume. HEADRACE names another command to test, DATA another folder of JPEG photos, PEERS_BUILD
# a folder other than build-peers.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${PEERS_BUILD:-$root/build-peers}

say() {
    echo "peers: $*"
}

if [ "${1:-}" = --quick ]; then
    shift
    set -- --no-sweep --rounds 1 --seconds 2 "$@"
fi

mkdir -p "$build"
build=$(cd "$build" && pwd)
sh "$here/setup.sh" "$build" common torch torchvision tensorflow dali grain

headrace=${HEADRACE:-$root/build/headrace}
if [ ! -x "$headrace" ]; then
    headrace=$build/meson/headrace
    say "building headrace in $build/meson"
    [ -e "$build/meson/build.ninja" ] ||
        meson setup "$build/meson" "$root" --buildtype=release >"$build/meson.log"
    ninja -C "$build/meson" headrace >>"$build/meson.log" || {
        echo "peers: headrace does not build, see $build/meson.log" >&2
        exit 1
    }
fi

if [ ! "$build/full_decode" -nt "$here/full_decode.c" ]; then
    say "building full_decode"
    cc -O2 -o "$build/full_decode" "$here/full_decode.c" -ljpeg -pthread
fi

data=${DATA:-$root/../shared/data/images}
if [ ! -d "$data" ]; then
    data=$build/photos
    say "no $root/../shared/data/images: synthesising photos"
    "$headrace" synth photos "$data" --count 1000 --quiet
fi
data=$(cd "$data" && pwd)

site=$("$build/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
LD_LIBRARY_PATH=$build/cuda-stubs:$site/torchvision.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
cat "$data"/* >/dev/null 2>&1 || true # load into the page cache for all contenders
cd "$root"
"$build/venv/bin/python" "$here/race.py" --build "$build" --headrace "$headrace" \
    --data "$data" "$@"
exec "$build/venv/bin/python" "$here/report.py" "$build"
