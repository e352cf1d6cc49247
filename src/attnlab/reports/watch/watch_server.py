"""The server of `attnlab watch`: it listens on 127.0.0.1 only, shows a study's folder and is read-only.

A request needs the token in the address and the right Host header, which pages of other sites do not have.
"""

import functools
import hmac
import json
import math
import re
import secrets
import shlex
import socket
import socketserver
import sys
import threading
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from attnlab.errors import AttnlabError, RequestError
from attnlab.machine import find_command
from attnlab.studies.answers.leaderboard import SO_FAR
from attnlab.studies.answers.progress import Progress, RunProgress, Snapshot
from attnlab.visible import make_values_visible

HOST = "127.0.0.1"
STATE, REPORT = "state.json", "report.html"
FILES = {"": "watch.html", "watch.css": "watch.css", "watch.js": "watch.js"}
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".json": "application/json"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Of the page: its script, style and figures, and nothing inline."""
REPORT_POLICY = "sandbox allow-scripts; connect-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Of a report, whose scripts are inline: it gets an origin that differs from the page's."""
HEADERS = {
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY",
}  # fmt: skip
NUM_CURVES = 60
"""Learning curves that a page shows: those of the runs in progress, then those of the last planned that have ended."""
SECONDS = 10.0
"""Time after which a connection is closed, idle or not: a client that sends byte by byte keeps no thread."""


class WatchServer(ThreadingHTTPServer):
    """Serves a study's folder under an address with a secret token."""

    daemon_threads = True

    def __init__(self, folder: str | Path, port: int = 0) -> None:
        self.progress = Progress(folder, num_curves=NUM_CURVES)
        self.progress.look()  # a folder without a study is refused at once
        self.report = self.progress.folder / REPORT
        self.token = secrets.token_urlsafe(24)
        self.lock = threading.Lock()
        self.dumped: dict[str, tuple[RunProgress, str]] = {}
        try:
            super().__init__((HOST, port), WatchHandler)
        except OSError as error:
            advice = "leave --port out for a free one"
            raise RequestError(f"cannot serve on port {port}: {error.strerror}; {advice}") from error

    def server_bind(self) -> None:
        """Bind the port without looking up the name of this machine, which may wait for a network."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def dump_state(self) -> bytes:
        """Return the state of the study as JSON, for the page's script."""
        with self.lock:
            snapshot = self.progress.look()
            runs = ", ".join([self._dump_run(progress) for progress in snapshot.runs])
        state = _dump({
            **_record_snapshot(snapshot), "has_report": self.report.is_file(), "command": self._find_command(snapshot),
        }).decode()  # fmt: skip
        return f'{state[:-1]}, "runs": [{runs}]}}'.encode()

    def _find_command(self, snapshot: Snapshot) -> str:
        """Return what to type next: the command that resumes the study, or the one that prints its verdicts."""
        if snapshot.condition == "ended":
            return f"{find_command()} compare {shlex.quote(str(self.progress.folder.resolve()))}"
        return re.sub(r"^attnlab(?= )", lambda _: find_command(), snapshot.command)

    def _dump_run(self, progress: RunProgress) -> str:
        """Return a run as JSON; one that has not changed since the last look is not written again."""
        known = self.dumped.get(progress.run.id)
        if known is None or known[0] is not progress:
            known = self.dumped[progress.run.id] = progress, _dump(_record_run(progress)).decode()
        return known[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Show errors, except those of a browser that has closed its connection."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class WatchHandler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: WatchServer
    server_version, sys_version = "attnlab", ""
    timeout = SECONDS
    policy = POLICY

    def handle_one_request(self) -> None:
        """Answer a request within its time."""
        timer = threading.Timer(SECONDS, self._drop)
        timer.daemon = True
        timer.start()
        try:
            super().handle_one_request()
        finally:
            timer.cancel()

    def _drop(self) -> None:
        with suppress(OSError):  # closed meanwhile
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self) -> None:
        """Send a file of the page, the state of the study, or the report."""
        if self.headers.get("Host") not in [f"{host}:{self.server.server_port}" for host in (HOST, "localhost")]:
            return self._refuse(HTTPStatus.FORBIDDEN, f"this server is reached as {HOST} only")
        token, slash, name = self.path.partition("?")[0].removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            return self._refuse(HTTPStatus.FORBIDDEN, "use the address that attnlab watch printed, with its token")
        if name == STATE:
            return self._send_state()
        if slash and name in FILES:
            file = Path(__file__).with_name(FILES[name])
            return self._send(HTTPStatus.OK, file.suffix, file.read_bytes())
        if name == REPORT and self.server.report.is_file():
            self.policy = REPORT_POLICY
            return self._send(HTTPStatus.OK, ".html", self.server.report.read_bytes())
        return self._refuse(HTTPStatus.NOT_FOUND, "there is no such page")

    do_HEAD = do_GET  # noqa: N815

    def __getattr__(self, name: str) -> Any:
        # http.server looks for do_POST and the like; all other methods are refused.
        if name.startswith("do_"):
            reason = "this page is read-only: use GET or HEAD"
            return functools.partial(self._refuse, HTTPStatus.METHOD_NOT_ALLOWED, reason)
        raise AttributeError(name)

    def _send_state(self) -> None:
        try:
            self._send(HTTPStatus.OK, ".json", self.server.dump_state())
        except (AttnlabError, OSError) as error:  # the page then keeps the last state
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, ".json", _dump({"trouble": str(error)}))

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self.close_connection = True
        self._send(status, ".txt", f"{reason}\n".encode())

    def _send(self, status: HTTPStatus, suffix: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{KINDS.get(suffix, 'text/plain')}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def end_headers(self) -> None:
        """Add the security headers to every response, including those that http.server makes itself."""
        for name, value in {**HEADERS, "Content-Security-Policy": self.policy}.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *values: Any) -> None:
        """Do not log requests: the page sends one every other second."""


def _record_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    num_begun = sum(progress.step > 0 for progress in snapshot.runs)
    return {
        "name": snapshot.name, "question": snapshot.question, "condition": snapshot.condition,
        "num_runs": len(snapshot.runs), "num_ended": snapshot.num_ended,
        "num_given_up": snapshot.num_given_up, "seconds_left": _round_number(snapshot.seconds_left),
        "so_far": SO_FAR, "num_curves_left_out": max(0, num_begun - NUM_CURVES),
        "standings": [
            {
                "phase": board.phase, "size": board.size, "figure": board.figure, "leader": board.leader,
                "places": [
                    {"arm": place.arm, "mean": _round_number(place.mean), "num_seeds": place.num_seeds}
                    for place in board.places
                ],
                "apart": list(board.apart),
            }
            for board in snapshot.leaderboards
        ],
    }  # fmt: skip


def _record_run(progress: RunProgress) -> dict[str, Any]:
    run, evaluation = progress.run, progress.evaluation
    return {
        "id": run.id, "title": run.title, "phase": run.phase, "size": run.size, "arm": run.arm, "seed": run.seed,
        "state": progress.state, "step": progress.step, "num_steps": progress.num_steps,
        "loss": _round_number(progress.loss), "tokens_per_second": _round_number(progress.tokens_per_second),
        "seconds_left": _round_number(progress.seconds_left),
        "evaluation": evaluation and {**evaluation._asdict(), "value": _round_number(evaluation.value)},
        "curve": [[step, _round_number(loss)] for step, loss in progress.curve],
        "held_out": [[step, _round_number(value)] for step, value in progress.held_out],
    }  # fmt: skip


def _round_number(value: float | None) -> float | None:
    """Return a number with the digits that a page shows; None if JSON cannot write it."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


def _dump(content: dict[str, Any]) -> bytes:
    return json.dumps(make_values_visible(content), allow_nan=False).encode()
