"""What a page can't do: read other files, reach hosts, download, open windows, hang the browser, leave."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mm_gym.computer import actions as a
from mm_gym.computer.page import PageSpec
from mm_gym.computer.screen import Screen

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_browser")]


@pytest.fixture
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A local TCP server: its port, and what anybody sent to it."""
    server = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            heard.append(b"connected")
            connection.settimeout(0.5)
            with contextlib.suppress(OSError):
                heard.append(connection.recv(1000))
            connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield server.getsockname()[1], heard
    server.close()


OUTCOME = "window.outcome = []; const tell = (what) => outcome.push(String(what));"


def test_no_other_file_is_read(screen: Screen, site: Callable[..., PageSpec], tmp_path: Path) -> None:
    (tmp_path.parent / "secret.txt").write_text("secret")
    (tmp_path / "link.txt").symlink_to("/etc/passwd")
    (tmp_path / "mine.txt").write_text("mine")
    paths = ["/etc/passwd", "../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "link.txt", "x%00y"]
    fetches = "".join(f"fetch({p!r}).then(r => tell(r.status), e => tell('blocked'));" for p in paths)
    page = site(
        f"<script>{OUTCOME}{fetches}"
        "fetch('file:///etc/passwd').then(() => tell('READ'), () => tell('blocked'));"
        "fetch('mine.txt').then(r => r.text()).then(tell);</script>"
        "<iframe src='file:///etc/passwd'></iframe><img src='file:///etc/passwd'>"
    )
    screen.open(page)
    screen.look(500)
    outcome = screen.evaluate("outcome")
    assert sorted(outcome) == ["404"] * len(paths) + ["blocked", "mine"]
    assert (
        screen.evaluate(
            "frames.length === 1 && (() => { try { return frames[0].document.body.innerText } catch { "
            "return '' } })()"
        )
        == ""
    )


def test_no_host_is_reached(
    screen: Screen, site: Callable[..., PageSpec], listener: tuple[int, list[bytes]]
) -> None:
    port, heard = listener
    screen.open(
        site(
            f"<script>{OUTCOME}"
            f"fetch('http://127.0.0.1:{port}/', {{mode: 'no-cors'}}).then(() => tell('REACHED'), () => "
            f"tell('blocked'));"
            f"fetch('https://localhost:{port}/', {{mode: 'no-cors'}}).then(() => tell('REACHED'), () => "
            f"tell('blocked'));"
            f"try {{ new WebSocket('ws://127.0.0.1:{port}/').onerror = () => tell('blocked') }} catch {{ "
            f"tell('blocked') }}"
            f"try {{ new WebSocket('wss://localhost:{port}/').onerror = () => tell('blocked') }} catch {{ "
            f"tell('blocked') }}"
            f"navigator.sendBeacon('http://127.0.0.1:{port}/', 'x');"
            f"new EventSource('https://localhost:{port}/').onerror = () => tell('blocked');"
            f"</script><img src='https://127.0.0.1:{port}/a.png'><link rel=preconnect href='https://127.0.0.1:{port}'>"
            f"<iframe src='https://127.0.0.1:{port}/'></iframe>"
        )
    )
    screen.look(2000)
    assert heard == []
    assert "REACHED" not in screen.evaluate("outcome")


@pytest.mark.parametrize(
    "html",
    [
        "<a href='https://example.com/'>leave</a>",
        "<a href='file:///etc/passwd'>leave</a>",
        "<a href='missing.html'>leave</a>",
        "<a href='javascript:location=`https://example.com/`'>leave</a>",
        "<a href='https://example.com/' target=_blank>leave</a>",
        "<a href='data:text/html,hi'>leave</a>",
        "<a href='chrome://version'>leave</a>",
        "<a href='javascript:history.back()'>leave</a>",
        "<a href='javascript:void open(`index.html`)'>leave</a>",
        "<a href='data:application/octet-stream,hi' download=x.bin>save</a>",
        "<a href='index.html' download=x.html>save</a>",
    ],
)
def test_the_page_stays_the_tasks_own(screen: Screen, site: Callable[..., PageSpec], html: str) -> None:
    page = site(html + "<script>window.mark = 'here'</script>")
    screen.open(page)
    screen.act(a.Click(20, 18), 500)
    screen.act(a.Click(200, 200, "back"), 100)
    screen.act(a.Keys(("Alt", "ArrowLeft")), 100)
    assert screen.evaluate("[location.origin, window.mark]") == ["https://mm-gym.test", "here"]


def test_nothing_is_downloaded(
    screen: Screen, site: Callable[..., PageSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    page = site("<a href='data:application/octet-stream,hi' download=x.bin>save</a>")
    screen.open(page)
    screen.act(a.Click(20, 18), 500)
    assert set(tmp_path.rglob("*")) - before == {tmp_path / "index.html"}


def test_dialogs_are_answered_and_told(screen: Screen, site: Callable[..., PageSpec]) -> None:
    screen.open(
        site(
            "<button style='position:absolute;left:0;top:0' onclick='alert(`hi`); window.yes = "
            "confirm(`sure?`);"
            " window.name_ = prompt(`name?`)'>ask</button>"
        )
    )
    seen = screen.act(a.Click(10, 10), 0)
    assert screen.evaluate("[yes, name_]") == [True, None]
    assert len(seen.dialogs) == 3
    assert "'hi'" in seen.dialogs[0]
    assert "accepted" in seen.dialogs[1]
    assert "dismissed" in seen.dialogs[2]


BOX = "position:absolute;left:0;top:0;width:120px;height:22px"
LIST = f"<select style='{BOX};appearance:none'><option>a<option>b</select>"
HANGS = [
    f"<input type=date style='{BOX}'>",
    f"<input type=color style='{BOX}'>",
    f"<input type=file style='{BOX}'>",
    LIST,
    f"<button style='{BOX}' onclick='document.body.requestFullscreen()'>x</button>",
    f'<iframe srcdoc="{LIST}" style="{BOX};border:0"></iframe>',
    f'<div id=host></div><script>host.attachShadow({{mode: "open"}}).innerHTML = "{LIST}"</script>',
]


@pytest.mark.parametrize("html", HANGS)
def test_what_opens_windows_of_its_own_does_not_stop_the_frames(
    screen: Screen, site: Callable[..., PageSpec], html: str
) -> None:
    screen.open(site(html, deadline=5))
    for place in ((20, 11), (112, 11)):
        screen.act(a.Click(*place), 50)
    for keys in (("Alt", "ArrowDown"), (" ",), ("F4",), ("Enter",)):
        screen.act(a.Keys(keys), 50)
    assert screen.look(50).png


def test_each_episode_has_its_own_storage(screen: Screen, site: Callable[..., PageSpec]) -> None:
    page = site(
        "<script>window.had = localStorage.n || document.cookie; localStorage.n = 1; document.cookie = "
        "'n=1'</script>"
    )
    for _ in range(3):
        screen.open(page)
        assert screen.evaluate("had") == ""


def test_the_browser_runs_without_privileges(screen: Screen, site: Callable[..., PageSpec]) -> None:
    screen.open(site("x"))
    import os
    import subprocess

    if os.geteuid() == 0:
        users = subprocess.run(["ps", "-eo", "user,args"], capture_output=True, text=True, check=True).stdout
        mine = [
            line.split()[0]
            for line in users.splitlines()
            if "--remote-debugging-pipe" in line and "watchdog" not in line
        ]
        assert "root" not in mine
        assert "nobody" in screen.safety
    assert "sandbox" in screen.safety
