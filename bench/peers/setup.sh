#!/bin/sh
# Sets up the peers' environment: build-peers/venv, and stub libraries for torchvision.
#
#     setup.sh BUILD GROUP...      groups: the names in requirements/
#
# Each group is installed separately, so that a peer that cannot be installed does not affect the
# others; race.py then reports it as absent. Finished groups leave a stamp and are not installed
# again. PIP_* variables of the caller are respected.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$1
shift
python=$build/venv/bin/python

say() {
    echo "peers: $*"
}

make_venv() {
    [ -x "$python" ] && "$python" -m pip --version >/dev/null 2>&1 && return 0
    say "creating a virtual environment in $build/venv"
    rm -rf "$build/venv" "$build/stamps"
    python3 -m venv "$build/venv" || {
        rm -rf "$build/venv"
        echo "peers: python3 -m venv failed; on Debian: apt-get install python3-venv" >&2
        exit 1
    }
}

install_group() {
    stamp=$build/stamps/$1
    list=$here/requirements/$1.txt
    flags=
    [ -f "$stamp" ] && cmp -s "$stamp" "$list" && return 0
    case $1 in torchvision | streaming) flags=--no-deps ;; esac
    say "installing $1 ($(grep -v '^#' "$list" | tr '\n' ' '))"
    if "$python" -m pip install --quiet --disable-pip-version-check $flags -r "$list" \
        >"$build/pip-$1.log" 2>&1; then
        cp "$list" "$stamp"
    else
        say "$1 cannot be installed: $(grep -i error "$build/pip-$1.log" | tail -1)"
    fi
}

# torchvision's wheel is built for CUDA: its extensions need two libraries that the CPU build of
# torch lacks, and 17 symbols from them, none of which the CPU path calls. Stub libraries with
# those names let torchvision.io's real decoder load.
stub_cuda() {
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
    stubs=$build/cuda-stubs
    [ -d "$site/torchvision" ] && [ ! -e "$site/torch/lib/libtorch_cuda.so" ] || return 0
    [ -e "$stubs/libc10_cuda.so" ] && return 0
    rm -rf "$stubs" && mkdir -p "$stubs"
    nm -D --undefined-only "$site"/torchvision/*.so | awk '/4cuda/ {print $NF}' | sort -u |
        sed 's/.*/char &[4096];/' >"$stubs/stub.c"
    cc -shared -fPIC -Wl,-soname,libtorch_cuda.so -o "$stubs/libtorch_cuda.so" -x c /dev/null &&
        cc -shared -fPIC -Wl,-soname,libc10_cuda.so -o "$stubs/libc10_cuda.so" \
            -x c "$stubs/stub.c" || say "cannot build stubs for CUDA: torchvision will not load"
    for file in "$site"/torchvision.libs/libcudart.*; do
        ln -sf "$file" "$stubs/libcudart.so.${file##*.so.}"
    done
}

mkdir -p "$build/stamps"
make_venv
mkdir -p "$build/stamps"
for group; do
    install_group "$group"
done
stub_cuda
exit 0
