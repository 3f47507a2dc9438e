"""The page served on this machine, for runs too large for one file: episodes are sent when looked at."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mm_gym.viewer.page import render_page
from mm_gym.viewer.records import Records


def make_server(records: Records, *, title: str = "Rollouts", port: int = 0) -> ThreadingHTTPServer:
    """A server on the loopback address; `serve_forever()` runs it, `server_port` says where.

    Args:
        records: What is shown.
        title: Heading.
        port: 0 for any free one.
    """
    page = render_page(title, None).encode("utf-8")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.split("?")[0]
            if path == "/":
                self._send("text/html; charset=utf-8", page)
            elif path == "/api/rows":
                self._send_json(records.rows)
            elif path.startswith("/api/episode/"):
                self._send_episode(path.rsplit("/", 1)[1])
            elif path.startswith("/api/image/"):
                self._send_image(path.rsplit("/", 1)[1])
            else:
                self.send_error(404)

        def _send_episode(self, number: str) -> None:
            if number.isdecimal() and int(number) < len(records.details):
                self._send_json(records.details[int(number)]())
            else:
                self.send_error(404, "there is no such episode")

        def _send_image(self, digest: str) -> None:
            png = records.images.get(digest)
            if png is None:
                self.send_error(404, "there is no such picture")
            else:
                self._send("image/png", png())

        def _send_json(self, value: Any) -> None:
            self._send("application/json", json.dumps(value, ensure_ascii=False).encode("utf-8"))

        def _send(self, kind: str, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Silent: the terminal is the caller's."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)
