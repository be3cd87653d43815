#!/usr/bin/env python3
"""registries.py DIRECTORY PORT: a package registry for npm, at the name registry.test, and an index for pip, at pypi.test.

DIRECTORY/npm/NAME-VERSION.tgz is what npm installs; DIRECTORY/pip/*.whl what pip does. Every request's host and path is a line
of DIRECTORY/requests.
"""
import base64
import hashlib
import http.server
import json
import os
import re
import sys

DIRECTORY, PORT = sys.argv[1], int(sys.argv[2])


class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        host = self.headers.get("Host", "")
        with open(os.path.join(DIRECTORY, "requests"), "a", encoding="utf-8") as requests:
            requests.write("%s %s\n" % (host, self.path))
        kind, body = {"registry.test": self.npm, "pypi.test": self.pip}.get(host.split(":")[0], lambda: (None, b""))()
        self.send_response(200 if kind else 404)
        self.send_header("Content-Type", kind or "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def file(self, place):
        name = os.path.basename(self.path)
        try:
            with open(os.path.join(DIRECTORY, place, name), "rb") as file:
                return "application/octet-stream", file.read()
        except OSError:
            return None, b""

    def npm(self):
        if self.path.endswith(".tgz"):
            return self.file("npm")
        versions = {}
        for name in os.listdir(os.path.join(DIRECTORY, "npm")):
            found = re.fullmatch(r"(.+)-(\d+\.\d+\.\d+)\.tgz", name)
            if not found or "/" + found[1] != self.path:
                continue
            with open(os.path.join(DIRECTORY, "npm", name), "rb") as file:
                digest = base64.b64encode(hashlib.sha512(file.read()).digest()).decode()
            versions[found[2]] = {
                "name": found[1], "version": found[2], "hasInstallScript": True, "scripts": {"postinstall": "echo built > built.txt"},
                "dist": {"tarball": "%s://%s/-/%s" % (self.headers.get("X-Forwarded-Proto", "http"), self.headers["Host"], name), "integrity": "sha512-" + digest}}
        if not versions:
            return None, b""
        document = {"name": self.path[1:], "dist-tags": {"latest": max(versions)}, "versions": versions}
        return "application/json", json.dumps(document).encode()

    def pip(self):
        if self.path.endswith(".whl"):
            return self.file("pip")
        project = self.path.strip("/").split("/")[-1].replace("-", "_")
        files = [name for name in os.listdir(os.path.join(DIRECTORY, "pip")) if name.startswith(project + "-")]
        links = "".join('<a href="/files/%s">%s</a>\n' % (name, name) for name in files)
        return ("text/html", links.encode()) if files else (None, b"")

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("", PORT), Registry).serve_forever()
