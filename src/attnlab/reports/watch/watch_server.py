"""The server of `attnlab watch`: it listens on 127.0.0.1 only, shows a study's folder and is read-only.

A request needs the token in the address and the right Host header, which pages of other sites do not have.
"""

from __future__ import annotations

import hmac
import json
import math
import secrets
import socketserver
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from attnlab.errors import AttnlabError, RequestError
from attnlab.studies.answers.leaderboard import SO_FAR, Leaderboard
from attnlab.studies.answers.progress import Progress, RunProgress, Snapshot

HOST = "127.0.0.1"
STATE, REPORT = "state.json", "report.html"
FILES = {"": "watch.html", "watch.css": "watch.css", "watch.js": "watch.js"}
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".json": "application/json"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Of the page: its own script, style and figures, and nothing inline."""
REPORT_POLICY = "sandbox allow-scripts; connect-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Of a report, whose scripts are inline and have a policy of their own in it: an origin apart from the page's."""
HEADERS = {
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY",
}  # fmt: skip
NUM_CURVES = 60
"""Learning curves that a page is given: of the runs that are going, and of those that were planned last."""
SECONDS = 10.0
"""Idle time after which a connection is closed."""


class WatchServer(ThreadingHTTPServer):
    """Serves a study's folder under an address that only its user knows."""

    daemon_threads = True

    def __init__(self, folder: str | Path, port: int = 0) -> None:
        self.progress = Progress(folder, has_curves=True)
        self.progress.look()  # what is no study is refused before an address is given
        self.report = self.progress.folder / REPORT
        self.token = secrets.token_urlsafe(24)
        self.lock = threading.Lock()
        try:
            super().__init__((HOST, port), WatchHandler)
        except OSError as error:
            raise RequestError(
                f"cannot serve on port {port}: {error.strerror}; leave --port out for one that is free"
            ) from error

    def server_bind(self) -> None:
        """Take the port without looking up this machine's name, which may wait for a network."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    @property
    def names(self) -> set[str]:
        """What this server may be called by."""
        return {f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"}

    def dump_state(self) -> bytes:
        """Return how the study stands, for the page's script."""
        with self.lock:
            seen = self.progress.look()
        return json.dumps(_record_snapshot(seen, has_report=self.report.is_file()), allow_nan=False).encode()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Show a fault of ours; a browser that has gone is none."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class WatchHandler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: WatchServer
    server_version, sys_version = "attnlab", ""
    timeout = SECONDS
    policy = POLICY

    def do_GET(self) -> None:
        """Give a file of the page, its figures, or the report."""
        if self.headers.get("Host") not in self.server.names:
            self.refuse(HTTPStatus.FORBIDDEN, "this server answers to 127.0.0.1 alone")
            return
        token, slash, name = self.path.partition("?")[0].removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self.refuse(HTTPStatus.FORBIDDEN, "the address that attnlab watch printed is needed, with its token")
        elif name == STATE:
            self.give_state()
        elif slash and name in FILES:
            self.give(HTTPStatus.OK, Path(FILES[name]).suffix, Path(__file__).with_name(FILES[name]).read_bytes())
        elif name == REPORT and self.server.report.is_file():
            self.policy = REPORT_POLICY
            self.give(HTTPStatus.OK, ".html", self.server.report.read_bytes())
        else:
            self.refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    do_HEAD = do_GET  # noqa: N815

    def __getattr__(self, name: str) -> Any:
        # http.server looks for do_POST and the like; whatever is none of the two above only ever gets an answer.
        if name.startswith("do_"):
            return self.refuse_method
        raise AttributeError(name)

    def refuse_method(self) -> None:
        """Answer what would change something."""
        self.refuse(HTTPStatus.METHOD_NOT_ALLOWED, "this page is for reading: GET and HEAD alone")

    def give_state(self) -> None:
        """Give the figures, or say why there are none: the page then keeps the last ones."""
        try:
            self.give(HTTPStatus.OK, ".json", self.server.dump_state())
        except (AttnlabError, OSError) as error:
            self.give(HTTPStatus.SERVICE_UNAVAILABLE, ".json", json.dumps({"trouble": str(error)}).encode())

    def refuse(self, status: HTTPStatus, reason: str) -> None:
        """Answer with an error in plain text."""
        self.close_connection = True
        self.give(status, ".txt", f"{reason}\n".encode())

    def give(self, status: HTTPStatus, ending: str, content: bytes) -> None:
        """Send an answer; HEAD gets all but its content."""
        self.send_response(status)
        self.send_header("Content-Type", f"{KINDS.get(ending, 'text/plain')}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def end_headers(self) -> None:
        """Add the security headers to every answer, including those that http.server makes itself."""
        for name, value in {**HEADERS, "Content-Security-Policy": self.policy}.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *values: Any) -> None:
        """Do not log requests: the page sends one every other second."""


def _record_snapshot(seen: Snapshot, *, has_report: bool) -> dict[str, Any]:
    """Write a snapshot as plain data."""
    curved = [one.run.id for one in reversed(seen.runs) if one.curve]
    drawn = set(list(dict.fromkeys([*(one.run.id for one in seen.going), *curved]))[:NUM_CURVES])
    return {
        "name": seen.name, "question": seen.question, "condition": seen.condition, "has_report": has_report,
        "num_runs": len(seen.runs), "num_ended": seen.num_ended, "num_given_up": seen.num_given_up,
        "seconds_left": _round_number(seen.seconds_left), "so_far": SO_FAR,
        "num_curves_left_out": len(set(curved) - drawn),
        "runs": [_record_run(one, has_curve=one.run.id in drawn) for one in seen.runs],
        "standings": [_record_leaderboard(one) for one in seen.leaderboards],
    }  # fmt: skip


def _record_run(one: RunProgress, *, has_curve: bool) -> dict[str, Any]:
    """Write a run as plain data."""
    evaluation = one.evaluation
    return {
        "id": one.run.id, "title": one.run.title, "phase": one.run.phase, "size": one.run.size, "arm": one.run.arm,
        "seed": one.run.seed, "state": one.state, "step": one.step, "num_steps": one.num_steps,
        "loss": _round_number(one.loss), "tokens_per_second": _round_number(one.tokens_per_second),
        "seconds_left": _round_number(one.seconds_left),
        "evaluation": evaluation and {**evaluation._asdict(), "value": _round_number(evaluation.value)},
        "curve": [[step, _round_number(loss)] for step, loss in one.curve if has_curve],
    }  # fmt: skip


def _record_leaderboard(one: Leaderboard) -> dict[str, Any]:
    """Write a leaderboard as plain data."""
    places = [
        {"arm": place.arm, "mean": _round_number(place.mean), "num_seeds": place.num_seeds} for place in one.places
    ]
    return {
        "phase": one.phase, "size": one.size, "figure": one.figure, "leader": one.leader, "places": places,
        "apart": list(one.apart),
    }  # fmt: skip


def _round_number(value: float | None) -> float | None:
    """Return a number in the digits that a page shows; None for what JSON has no place for."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
