#!/bin/sh
# Say which Debian packages are missing, and install them (root or sudo). Debian 12 and
# Ubuntu 24.04 have all of them under these names.
#   tools/deps.sh        what building, the demo and the tests need
#   tools/deps.sh check  also what make check needs: clang, clang-format, g++
packages="gcc libc6-dev meson ninja-build pkg-config libjpeg-dev libpng-dev libwebp-dev
    libyaml-dev libxxhash-dev liburing-dev python3"
[ "$1" = check ] && packages="$packages g++ clang clang-format-14 binutils git"

missing=
for package in $packages; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)
    [ "$status" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
    exit 0
fi
echo "missing packages:$missing"
if ! command -v apt-get >/dev/null; then
    echo "this is no Debian or Ubuntu: install them, then repeat" >&2
    exit 1
fi
sudo=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "run as root: apt-get install$missing" >&2
        exit 1
    }
    sudo=sudo
fi
install() {
    # shellcheck disable=SC2086 # a list of packages
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing </dev/null
}
# Lists of packages may be absent or old: fetch them only then.
install || { $sudo apt-get update -q </dev/null && install; }
