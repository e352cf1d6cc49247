"""`attnlab watch` shows a study to whoever has its address, on this machine, and lets nobody change or learn more."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attnlab.reports.watch.watch_server import HEADERS, POLICY, REPORT_POLICY, WatchServer
from tests.studies.moments import Moment, evaluation, update, write
from tests.studies.samples import study

HOSTILE = '<img src=x onerror="document.title=1"></script><script>document.title=1</script>'
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
]  # fmt: skip
Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture
def moment(tmp_path: Path) -> Iterator[Moment]:
    """Make a study with one run that has ended, one that is going and others that wait."""
    found = Moment(tmp_path, study(question=HOSTILE))
    found.hold()
    found.plan()
    found.end("dot", 1, 0.5)
    write(found.begin("bypass", 1), update(10, 3.0, 1.0) + update(20, 2.0, 2.0) + evaluation(20, 0.25))
    yield found
    found.ledger.close()


@pytest.fixture
def window(moment: Moment) -> Iterator[WatchServer]:
    with WatchServer(moment.folder) as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def ask(window: WatchServer, path: str, method: str = "GET", **headers: str) -> Answer:
    """Put one request to the server."""
    connection = http.client.HTTPConnection("127.0.0.1", window.server_port, timeout=60)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def test_the_page_is_at_its_address_and_has_nothing_inline(window: WatchServer) -> None:
    for name, kind in (("", "text/html"), ("watch.js", "text/javascript"), ("watch.css", "text/css")):
        status, headers, content = ask(window, f"/{window.token}/{name}")
        assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
        assert content
    page = ask(window, f"/{window.token}/")[2].decode()
    assert "<style" not in page
    assert page.count("<script") == page.count('<script src="watch.js" defer></script>') == 1


def test_the_figures_are_those_of_the_study(window: WatchServer) -> None:
    status, _, content = ask(window, f"/{window.token}/state.json")
    state = json.loads(content)
    assert (status, state["condition"], state["num_runs"], state["num_ended"]) == (200, "running", 6, 1)
    assert state["question"] == HOSTILE
    going = next(run for run in state["runs"] if run["state"] == "running")
    assert (going["title"], going["step"], going["num_steps"]) == ("recall, tiny, bypass, seed 1", 20, 100)
    assert going["curve"] == [[10, 3.0], [20, 2.0]]
    assert going["held_out"] == [[20, 0.25]]
    assert going["evaluation"] == {"step": 20, "name": "accuracy", "value": 0.25}
    assert state["standings"][0]["places"] == [{"arm": "dot", "mean": 0.5, "num_seeds": 1}]
    assert "verdict" not in json.dumps(state).replace(state["so_far"], "")


def test_the_command_is_the_one_that_began_the_study_then_the_one_for_verdicts(
    window: WatchServer, moment: Moment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnlab.reports.watch.watch_server.find_command", lambda: "here/attnlab")
    assert json.loads(window.dump_state())["command"] == ""
    moment.ledger.add_event("started", json.dumps({"command": "attnlab run 'my attnlab.toml' --out there"}))
    assert json.loads(window.dump_state())["command"] == "here/attnlab run 'my attnlab.toml' --out there"
    for run in moment.planned:
        if (run.arm, run.seed) != ("dot", 1):
            moment.end(run.arm, run.seed, 0.5)
    assert json.loads(window.dump_state())["command"] == f"here/attnlab compare {moment.folder}"


def test_a_number_that_json_lacks_is_null(window: WatchServer, moment: Moment) -> None:
    write(moment.folder / "runs" / moment.run("bypass", 1).id, update(30, "Infinity", 3.0))
    state = json.loads(ask(window, f"/{window.token}/state.json")[2])
    assert next(run for run in state["runs"] if run["state"] == "running")["loss"] is None


@pytest.mark.parametrize("path", ["/", "/state.json", "/wrong/", "/wrong/state.json", "/%00/", "//", "/%C3%84/"])
def test_without_the_token_there_is_nothing(window: WatchServer, path: str) -> None:
    status, _, content = ask(window, path)
    assert status == 403
    assert window.token.encode() not in content
    assert b"small" not in content


def test_tokens_are_long_and_never_the_same(window: WatchServer, moment: Moment) -> None:
    with WatchServer(moment.folder) as other:
        assert other.token != window.token
        assert len(other.token) >= 32


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""])
def test_a_server_called_by_another_name_does_not_answer(window: WatchServer, host: str) -> None:
    status, _, content = ask(window, f"/{window.token}/state.json", Host=host.format(port=window.server_port))
    assert status == 403
    assert b"small" not in content


def test_localhost_is_its_name_too(window: WatchServer) -> None:
    assert ask(window, f"/{window.token}/", Host=f"localhost:{window.server_port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "ANYTHING"])
def test_nothing_can_be_changed(window: WatchServer, method: str) -> None:
    status, headers, _ = ask(window, f"/{window.token}/state.json", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_head_is_an_answer_without_content(window: WatchServer) -> None:
    status, headers, content = ask(window, f"/{window.token}/watch.js", "HEAD")
    assert (status, content) == (200, b"")
    assert int(headers["Content-Length"]) > 0


@pytest.mark.parametrize("path", ["/{token}/", "/{token}/state.json", "/{token}/nothing", "/wrong/"])
def test_every_answer_keeps_a_browser_strict(window: WatchServer, path: str) -> None:
    _, headers, _ = ask(window, path.format(token=window.token))
    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    "name", ["ledger.sqlite", "../ledger.sqlite", "%2e%2e/ledger.sqlite", "report.html", "lock", "nothing"]
)
def test_files_of_the_folder_are_not_served(window: WatchServer, name: str) -> None:
    assert ask(window, f"/{window.token}/{name}")[0] == 404


def test_a_report_is_served_apart_from_the_page(window: WatchServer, moment: Moment) -> None:
    (moment.folder / "report.html").write_text("<p>found</p>", encoding="utf-8")
    status, headers, content = ask(window, f"/{window.token}/report.html")
    assert (status, content) == (200, b"<p>found</p>")
    assert headers["Content-Security-Policy"] == REPORT_POLICY
    assert json.loads(ask(window, f"/{window.token}/state.json")[2])["has_report"] is True
    assert ask(window, "/wrong/report.html")[0] == 403


def test_a_folder_that_is_gone_is_said(window: WatchServer, moment: Moment) -> None:
    moment.ledger.close()
    for file in moment.folder.glob("ledger*"):
        file.unlink()
    status, _, content = ask(window, f"/{window.token}/state.json")
    assert status == 503
    assert "holds no study" in json.loads(content)["trouble"]


@pytest.fixture
def page(window: WatchServer) -> Iterator[Any]:
    """Open the page in a browser, and hear what its console says."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright drives the browser")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no chromium to open the page in")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        found = browser.new_page(viewport={"width": 390, "height": 800})
        found.said = []
        found.on("console", lambda message: found.said.append(message.text))
        found.on("pageerror", lambda error: found.said.append(str(error)))
        found.goto(window.address)
        found.get_by_text("1 of 6 runs have ended, 1 going").wait_for()
        yield found
        browser.close()


def test_the_page_renews_itself_and_text_stays_text(page: Any, window: WatchServer, moment: Moment) -> None:
    assert page.locator("#question").inner_text() == HOSTILE
    assert page.title() == "1/6 small"
    assert page.locator("#question *").count() == 0
    assert page.locator("#going .run").inner_text().startswith("recall, tiny, bypass, seed 1")
    titles = page.locator("#curves h3").all_inner_texts()
    assert titles == ["recall, tiny: training loss", "recall, tiny: accuracy on held-out data"]
    assert page.locator("#curves polyline").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    write(moment.folder / "runs" / moment.run("bypass", 1).id, update(30, 1.5, 3.0))
    page.get_by_text("step 30 of 100").wait_for()
    blocked = "fetch('https://example.org/').then(() => 'went', () => 'blocked')"
    before = len(page.said)
    assert page.evaluate(blocked) == "blocked"
    assert any("Content Security Policy" in said for said in page.said[before:])
    assert page.said[:before] == []
    for arm, seed in (("dot", 2), ("bypass", 1), ("bypass", 2), ("slow", 1), ("slow", 2)):
        moment.end(arm, seed, 0.4)
    (moment.folder / "report.html").write_text("<p>found</p>", encoding="utf-8")
    page.get_by_text("This study has ended").wait_for()
    page.get_by_role("link", name="The report").click()
    page.get_by_text("found").wait_for()


def test_the_last_picture_stays_when_the_server_is_gone(page: Any, window: WatchServer) -> None:
    window.shutdown()
    window.socket.close()
    page.get_by_text("attnlab watch does not answer").wait_for()
    assert page.locator("#going .run").count() == 1
    assert "1 of 6 runs have ended" in page.locator("#status").inner_text()


def test_a_client_that_drips_bytes_is_dropped(window: WatchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnlab.reports.watch.watch_server.SECONDS", 0.3)
    client = socket.create_connection(("127.0.0.1", window.server_port), timeout=60)

    def drip() -> None:
        while True:  # a request that never ends
            client.sendall(b"G")
            time.sleep(0.05)

    with client, pytest.raises(ConnectionError):
        drip()
    assert ask(window, f"/{window.token}/")[0] == 200
