#!/usr/bin/env python3
"""An HTTP server of a folder, with faults, for tests: http_server.py FOLDER

Prints its port, serves until its standard input ends. /NAME is a file of the folder, with ranges, an ETag and
keep-alive. /f/FAULTS/NAME is the same file with faults, "name=value" joined by commas; each counts the GETs of that
path by itself:

  cut=N       the body ends after N bytes, with the connection
  stall=N     after N bytes nothing more comes, until the client closes
  status=S    answers S without a file
  times=K     the three above for the first K GETs only (default: all)
  each=K      the three above for each K-th GET of any path with this fault, by its number
  change=K    another ETag after K GETs
  noetag=1    no ETag and no Last-Modified
  noranges=1  Range is ignored
  nolength=1  no Content-Length: the body ends with the connection
  wrong=1     Content-Range begins one byte later than the body
  other=1     the range of a 206 begins at byte 0, whatever was asked for, and says so
  empty416=1  a 416 does not say the size
  redirect=K  redirects K times, then to /NAME
  piece=N     the body is sent in pieces of N bytes
  headers=N   N bytes of headers more
  after=N     Retry-After: N, with status
  wait=N      waits N ms before it answers

Before it answers a GET it appends a line to FOLDER/log: path, range or "-", status. HEAD is refused. FOLDER/busy has
the most GETs that were in progress at once.
"""
import http.server
import os
import sys
import threading
import time
import urllib.parse

lock = threading.Lock()
counts = {}
busy = {"now": 0, "most": 0}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits 40 ms for the acknowledgement of its head

    def log_message(self, *args):
        pass

    def do_GET(self):
        path = urllib.parse.unquote(self.path.split("?")[0])
        faults = {}
        name = path
        if path.startswith("/f/"):
            _, _, spec, name = path.split("/", 3)
            faults = {k: int(v) for k, v in (part.split("=") for part in spec.split(","))}
        with lock:
            key = path.split("/")[2] if "each" in faults else path
            counts[key] = number = counts.get(key, 0) + 1
            busy["now"] += 1
            if busy["now"] > busy["most"]:
                busy["most"] = busy["now"]
                with open(os.path.join(sys.argv[1], "busy"), "w") as file:
                    file.write(str(busy["most"]))
        time.sleep(faults.get("wait", 0) / 1000)
        try:
            self.serve(path, name.lstrip("/"), faults, number)
        finally:
            with lock:
                busy["now"] -= 1

    def note(self, path, status):
        with lock, open(os.path.join(sys.argv[1], "log"), "a") as log:
            log.write(f"{path} {self.headers.get('Range', '-')} {status}\n")

    def send_all(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def serve(self, path, name, faults, number):
        hit = number % faults["each"] == 0 if "each" in faults else number <= faults.get("times", number)
        if number <= faults.get("redirect", 0) or ("redirect" in faults and not name):
            self.note(path, 302)
            return self.send_all(302, b"", {"Location": path if number < faults["redirect"] else "/" + name})
        if "status" in faults and hit:
            self.note(path, faults["status"])
            headers = {"Retry-After": str(faults["after"])} if "after" in faults else {}
            return self.send_all(faults["status"], b"<html>no</html>", headers)
        try:
            with open(os.path.join(sys.argv[1], name), "rb") as file:
                data, info = file.read(), os.fstat(file.fileno())
        except OSError:
            self.note(path, 404)
            return self.send_all(404, b"not here", {})
        version = f"{info.st_mtime_ns:x}-{info.st_ino:x}-{len(data):x}"
        if number > faults.get("change", number):
            version += "-changed"
        headers = {} if "noetag" in faults else {"ETag": f'"{version}"'}
        self.send_file(path, data, headers, faults, hit)

    def send_file(self, path, data, headers, faults, hit):
        status, first, last = 200, 0, len(data) - 1
        wish = self.headers.get("Range", "")
        if wish.startswith("bytes=") and "noranges" not in faults:
            status = 206
            begin, end = wish[6:].split("-")
            first, last = int(begin), min(int(end) if end else last, last)
            if first > last:
                self.note(path, 416)
                return self.send_all(416, b"", {} if "empty416" in faults else {"Content-Range": f"bytes */{len(data)}"})
            if "other" in faults:
                first, last = 0, last - first
            said = first + ("wrong" in faults)
            headers["Content-Range"] = f"bytes {said}-{last + ('wrong' in faults)}/{len(data)}"
        self.note(path, status)
        body = data[first : last + 1]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "nolength" in faults:
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(body)))
        for i in range(faults.get("headers", 0) // 1000):
            self.send_header(f"X-{i}", "x" * 1000)
        self.end_headers()
        self.send_body(body, faults, hit)

    def send_body(self, body, faults, hit):
        cut, stall = faults.get("cut"), faults.get("stall")
        if hit and (cut is not None or stall is not None):
            self.wfile.write(body[: cut if cut is not None else stall])
            self.close_connection = True
            if stall is not None:
                self.rfile.read(1)  # until the client closes
            return
        piece = faults.get("piece", len(body) or 1)
        for at in range(0, len(body), piece):
            self.wfile.write(body[at : at + piece])


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request, client_address):  # a client that went away
        pass


def main():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.write(1, b"%d\n" % server.server_address[1])
    sys.stdin.buffer.read()


main()
