#!/bin/sh
# Lists missing Debian packages and installs them (root or sudo). Debian 12 and Ubuntu 24.04
# have all of them under these names.
#   tools/deps.sh        for building, the demo and the tests
#   tools/deps.sh check  also for make check: clang, clang-format, g++
#   tools/deps.sh wheel  also for make wheel: Python's headers and venv
#   tools/deps.sh wheels also for make wheels: an assembler for libjpeg-turbo, a cross compiler, qemu
#   tools/deps.sh debug  also for make debug-python: Python's debug build
#   tools/deps.sh neon   also for make neon: a cross compiler, qemu, arm64 libraries
packages="gcc libc6-dev meson ninja-build pkg-config libjpeg-dev libpng-dev libwebp-dev
    libyaml-dev libxxhash-dev liburing-dev zlib1g-dev python3"
[ "$1" = check ] && packages="$packages g++ clang binutils git python3-dev python3-venv"
[ "$1" = debug ] && packages="$packages python3-dbg python3-dev python3-venv"
[ "$1" = wheel ] && packages="$packages git python3-dev python3-venv"
[ "$1" = wheels ] && packages="$packages git python3-dev python3-venv nasm gcc-aarch64-linux-gnu qemu-user-static"
foreign=
if [ "$1" = neon ]; then
    packages="$packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static libc6:arm64"
    for library in libjpeg libpng libwebp libyaml libxxhash liburing zlib1g; do
        packages="$packages $library-dev:arm64"
    done
    dpkg --print-foreign-architectures 2>/dev/null | grep -qx arm64 || foreign=arm64
fi
# Optional: without libsndfile FLAC, Ogg and MP3 are not read, without libcurl and expat no http://, s3://, without expat no XML of Pascal VOC, without libzstd no zstd,
# without libevent no service, without OpenSSL no TLS in it, without SQLite no independent consumers of one run, without libpq no journal of theirs in PostgreSQL;
# checks that need the others are skipped. Not installed, as they bring a hundred packages: libavformat-dev and libswscale-dev, for video.
wishes="libsndfile1-dev libcurl4-openssl-dev libexpat1-dev libzstd-dev libevent-dev libssl-dev libsqlite3-dev libpq-dev"
[ "$1" = check ] && wishes="$wishes clang-format-14 libclang-rt-14-dev"
# Its installation starts a server, which is not for everybody's machine: tests of it are skipped without.
[ "$1" = check ] && [ -n "$HEADRACE_POSTGRES" ] && wishes="$wishes postgresql"

# A package may be installed for several architectures; only the requested one counts.
here=$(dpkg --print-architecture 2>/dev/null)
lacking() {
    for package in "$@"; do
        of=$here
        [ "${package#*:}" = "$package" ] || of=${package#*:}
        dpkg-query -W -f '${Architecture} ${db:Status-Status}\n' "$package" 2>/dev/null |
            grep -Eqx "($of|all) installed" || printf ' %s' "$package"
    done
}
# shellcheck disable=SC2086 # lists of packages
missing=$(lacking $packages) wished=$(lacking $wishes)
[ -z "$missing$wished" ] && exit 0
echo "missing packages:$missing$wished"
if ! command -v apt-get >/dev/null; then
    echo "this is not Debian or Ubuntu: install them yourself, then run this again" >&2
    exit 1
fi
sudo=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "run as root: apt-get install$missing$wished" >&2
        [ -z "$missing" ] && exit 0
        exit 1
    fi
    sudo=sudo
fi
# Waits while another process, such as the first boot's updates, holds the lock of dpkg.
install() {
    [ $# -eq 0 ] && return 0
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends "$@" </dev/null
}
# Keeps another architecture enabled only if its packages are available (Ubuntu has arm64 elsewhere).
if [ -n "$foreign" ]; then
    $sudo dpkg --add-architecture $foreign && $sudo apt-get update -q </dev/null &&
        install $missing && exit 0
    $sudo dpkg --remove-architecture $foreign
    exit 1
fi
# Fetches package lists only if they are missing or out of date.
# shellcheck disable=SC2086
install $missing $wished || { $sudo apt-get update -q </dev/null && install $missing $wished; } && exit 0
# shellcheck disable=SC2086
install $missing || exit 1
echo "continuing without$wished"
