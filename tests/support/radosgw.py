#!/usr/bin/env python3
"""A Ceph gateway of S3 for tests and benchmarks: one monitor, one object store in memory, one radosgw.

    radosgw.py FOLDER     keeps its files in FOLDER; prints the port of S3; ends with its standard input

Needs Debian's ceph-mon, ceph-osd, radosgw and ceph-common (about 10 s to start, 500 MB of memory), and exits with status 77
where they are missing. `put` and `make_bucket` write with the user's keys.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import hmac
import http.client
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import uuid

from ports import free_port

KEY, SECRET, REGION = "TESTKEY", "TESTSECRET", "default"

CONFIG = """
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon2},v1:127.0.0.1:{mon1}]
mon initial members = a
keyring = {folder}/keyring
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data avail crit = 0
osd objectstore = memstore
memstore device bytes = 4G
run dir = {folder}
admin socket = {folder}/$name.$pid.asok
log file = {folder}/$name.log
pid file = {folder}/$name.pid
mon data = {folder}/mon
osd data = {folder}/osd
public addr = 127.0.0.1
cluster addr = 127.0.0.1
[client]
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw data = {folder}/rgw
rgw dns name = localhost
"""


def request(port: int, method: str, path: str, body: bytes = b"", acl: str = "private") -> int:
    """A signed request; the path is percent-encoded here. Returns the status."""
    host, now = f"127.0.0.1:{port}", datetime.datetime.now(datetime.timezone.utc)
    date, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    path, payload = urllib.parse.quote(path), hashlib.sha256(body).hexdigest()
    sent = {"host": host, "x-amz-acl": acl, "x-amz-content-sha256": payload, "x-amz-date": date}
    lines, names = "".join(f"{name}:{value}\n" for name, value in sent.items()), ";".join(sent)
    canonical = f"{method}\n{path}\n\n{lines}\n{names}\n{payload}"
    scope = f"{day}/{REGION}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = ("AWS4" + SECRET).encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    credential = f"AWS4-HMAC-SHA256 Credential={KEY}/{scope},SignedHeaders={names},Signature={key.hex()}"
    headers = {**sent, "Authorization": credential}
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request(method, path, body, headers)
    status = connection.getresponse().status
    connection.close()
    return status


def make_bucket(port: int, bucket: str) -> None:
    assert request(port, "PUT", f"/{bucket}") == 200


def put(port: int, bucket: str, key: str, body: bytes, acl: str = "private") -> None:
    assert request(port, "PUT", f"/{bucket}/{key}", body, acl) == 200


def remove(port: int, bucket: str, key: str) -> None:
    assert request(port, "DELETE", f"/{bucket}/{key}") == 204


def start(folder: pathlib.Path) -> int:
    """Starts the daemons; returns the port of S3."""
    port, mon1, mon2 = free_port(), free_port(), free_port()
    fsid, osd = str(uuid.uuid4()), str(uuid.uuid4())
    for name in ("mon", "osd", "rgw"):
        (folder / name).mkdir(parents=True)
    config, ring = folder / "ceph.conf", folder / "keyring"
    config.write_text(CONFIG.format(**locals()))

    # tools/sanitize-python preloads a sanitizer, which would report races of Ceph.
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}

    def run(*command: object) -> None:
        subprocess.run([*map(str, command)], check=True, timeout=120, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=env)

    ceph, everything = ("-c", config), ("--cap", "mon", "allow *", "--cap", "osd", "allow *")
    run("ceph-authtool", "--create-keyring", ring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
    run("ceph-authtool", ring, "--gen-key", "-n", "client.admin", *everything)
    run("ceph-authtool", ring, "--gen-key", "-n", "osd.0", "--cap", "mon", "allow profile osd", "--cap", "osd", "allow *")
    addresses = f"[v2:127.0.0.1:{mon2},v1:127.0.0.1:{mon1}]"
    run("monmaptool", "--create", "--addv", "a", addresses, "--fsid", fsid, folder / "monmap")
    run("ceph-mon", *ceph, "--mkfs", "-i", "a", "--monmap", folder / "monmap", "--keyring", ring)
    run("ceph-mon", *ceph, "-i", "a")
    run("ceph", *ceph, "osd", "new", osd)
    run("ceph-osd", *ceph, "-i", "0", "--mkfs", "--osd-uuid", osd)
    run("ceph", *ceph, "osd", "crush", "add", "osd.0", "1", "root=default")
    run("ceph-osd", *ceph, "-i", "0")
    user = ("--uid=test", "--display-name=test", f"--access-key={KEY}", f"--secret-key={SECRET}")
    run("radosgw-admin", *ceph, "-n", "client.admin", "user", "create", *user)
    run("radosgw", *ceph, "--no-mon-config", "-n", "client.admin")
    while True:  # the caller has a limit
        with contextlib.suppress(OSError):
            if request(port, "GET", "/") == 200:
                return port
        time.sleep(0.1)


def stop(folder: pathlib.Path) -> None:
    for file in folder.glob("*.pid"):
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(file.read_text()), signal.SIGKILL)


def main() -> None:
    folder = pathlib.Path(sys.argv[1]).resolve()
    if not all(map(shutil.which, ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "monmaptool"))):
        sys.exit(77)
    try:
        os.write(1, b"%d\n" % start(folder))
        sys.stdin.buffer.read()
    finally:
        stop(folder)


if __name__ == "__main__":
    main()
