"""Workers that end well, fail, abort, hang, shout and leave children: each real, each its own process."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from compare.run.processes import Command, Pool, ProcessEnd
from tests.places import ROOT


def command(tmp_path: Path, script: str, *, name: str = "worker", timeout_s: float = 20) -> Command:
    return Command(
        argv=[sys.executable, "-c", textwrap.dedent(script)],
        stderr=tmp_path / f"{name}.stderr",
        environment=os.environ,
        timeout_s=timeout_s,
    )


def run_to_end(tmp_path: Path, script: str, **more: float) -> ProcessEnd:
    with Pool(lambda *_: None) as pool:
        pool.start("only", command(tmp_path, script, **more))
        while not (done := pool.wait()):
            pass
    return done["only"]


def alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def soon(condition) -> bool:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_a_worker_that_ends_well_is_ok(tmp_path):
    to_end = run_to_end(tmp_path, "x = bytearray(200_000_000); x[::4096] = x[::4096]")
    assert (to_end.status, to_end.error) == ("ok", "")
    own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    assert 200e6 < to_end.peak_bytes < max(300e6, own_peak * 1.1)


def test_one_that_is_sent_requests_reads_them_until_they_end(tmp_path):
    script = """
        import json, sys
        for line in sys.stdin:
            print(json.dumps({"stage": line.strip()}), flush=True)
        print("no more", file=sys.stderr)
    """
    stages = []
    with Pool(lambda key, stage, seconds: stages.append(stage)) as pool:
        pool.start("only", replace(command(tmp_path, script), requests=True))
        for request in ("one", "two"):
            pool.send("only", request)
            while stages[-1:] != [request]:
                assert not pool.wait()
        pool.end_requests("only")
        while not (done := pool.wait()):
            pass
    assert done["only"].status == "ok"
    assert (tmp_path / "worker.stderr").read_text() == "no more\n"


def test_one_that_has_died_is_sent_requests_in_vain(tmp_path):
    with Pool(lambda *_: None) as pool:
        pool.start("only", replace(command(tmp_path, "import os; os.close(0); os.abort()"), requests=True))
        time.sleep(1)
        pool.send("only", "one")
        while not (done := pool.wait()):
            pass
    assert done["only"].status == "crashed"


def test_its_progress_is_told_as_it_comes(tmp_path):
    script = """
        import json, sys, time
        for stage in ("import", "trace", "write"):
            print(json.dumps({"stage": stage, "seconds": 1}), flush=True)
            time.sleep(0.2)
    """
    reported = []
    with Pool(lambda key, stage, seconds: reported.append((key, stage, seconds))) as pool:
        pool.start("a", command(tmp_path, script))
        while not pool.wait():
            pass
    stages = list(dict.fromkeys(stage for _, stage, _ in reported if stage))
    assert stages == ["import", "trace", "write"]
    assert [seconds for *_, seconds in reported] == sorted(seconds for *_, seconds in reported)


def test_lines_that_are_not_of_the_protocol_are_dropped(tmp_path):
    script = """
        import sys
        print("hello"); print("[1, 2]"); print('{"stage": 3}'); print('{"stage": "trace"}')
        sys.stdout.buffer.write(b"\\xff\\xfe" * 500_000)
    """
    reported = []
    with Pool(lambda key, stage, seconds: reported.append(stage)) as pool:
        pool.start("a", command(tmp_path, script))
        while not (done := pool.wait()):
            pass
    assert done["a"].status == "ok"
    assert set(reported) <= {"", "trace"}


ENDS = [  # script, status, error
    ("raise ValueError('heads=7 does not divide')", "failed", "ValueError: heads=7 does not divide"),
    ("import sys; sys.exit('one line')", "failed", "one line"),
    ("import sys; print('no such mesh', file=sys.stderr); sys.exit(2)", "refused", "no such mesh"),
    ("import sys; sys.exit(7)", "failed", "exit status 7, nothing on stderr"),
    ("import os; os.abort()", "crashed", "died of SIGABRT"),
    ("import os; os.kill(os.getpid(), 9)", "crashed", "died of SIGKILL (out of memory?)"),
    ("import ctypes; ctypes.string_at(0)", "crashed", "died of SIGSEGV"),
]


@pytest.mark.parametrize(("script", "status", "error"), ENDS)
def test_a_worker_that_ends_badly_says_so_in_one_line(tmp_path, script, status, error):
    to_end = run_to_end(tmp_path, script)
    assert (to_end.status, to_end.error) == (status, error)


def test_of_libtpu_s_last_words_the_failed_check_is_told(tmp_path):
    script = r"""
        import os, sys
        sys.stderr.write('''I1120 11:04:51.075994    6995 pjrt_api.cc:119] GetPjrtApi was found
        F1120 11:04:51.127103    7008 shape.h:803] Check failed: state Expected a tuple shape. Got bf16[256,512]
        This is a programmer error.
        *** Check failure stack trace: ***
            @     0x7f1bba09bc54  absl::log_internal::LogMessage::SendToLog()
        *** SIGABRT received by PID 6995 (TID 7008) on cpu 1, si_code=-6, from PID 6995; ***
        E1120 11:04:51.306501    7008 process_state.cc:708] RAW: Raising signal 6 with default behavior
        '''.replace("        ", ""))
        sys.stderr.flush()
        os.abort()
    """
    assert run_to_end(tmp_path, script).error == (
        "died of SIGABRT: Check failed: state Expected a tuple shape. Got bf16[256,512]"
    )


def test_a_long_stderr_is_read_from_its_end(tmp_path):
    script = """
        import sys
        for _ in range(20_000): print("\\x1b[31m" + "noise " * 50, file=sys.stderr)
        sys.exit("\\x1b[1mthe end\\x1b[0m")
    """
    assert run_to_end(tmp_path, script).error == "the end"


def test_a_worker_that_hangs_is_killed_with_its_children(tmp_path):
    script = f"""
        import os, subprocess, sys, time, signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        open({str(tmp_path / "child")!r}, "w").write(str(child.pid))
        print('{{"stage": "compile"}}', flush=True)
        time.sleep(600)
    """
    to_end = run_to_end(tmp_path, script, timeout_s=3)
    assert (to_end.status, to_end.error) == ("timeout", "killed after 3 s in compile")
    assert 3 <= to_end.seconds < 600
    child = int((tmp_path / "child").read_text())
    assert soon(lambda: not alive(child))


def test_what_a_worker_leaves_running_ends_with_it(tmp_path):
    script = """
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        sys.exit(str(child.pid))
    """
    to_end = run_to_end(tmp_path, script)
    assert to_end.seconds < 600
    assert soon(lambda: not alive(int(to_end.error)))


def test_one_worker_s_death_costs_only_itself(tmp_path):
    with Pool(lambda *_: None) as pool:
        pool.start("good", command(tmp_path, "import time; time.sleep(0.5)", name="good"))
        pool.start("bad", command(tmp_path, "import os; os.abort()", name="bad"))
        done = {}
        while len(pool):
            done |= pool.wait()
    assert {key: ended.status for key, ended in done.items()} == {"good": "ok", "bad": "crashed"}


@pytest.mark.filterwarnings("error")
def test_a_parent_with_threads_starts_workers_and_forks_no_copy_of_itself(tmp_path):
    """A fork's copy would hold the locks of threads that it has not; where JAX is loaded, JAX warns of it."""
    forks, over = [], threading.Event()
    waiting = threading.Thread(target=over.wait)
    waiting.start()
    os.register_at_fork(before=lambda: forks.append(1))
    try:
        assert run_to_end(tmp_path, "pass").status == "ok"
    finally:
        over.set()
        waiting.join()
    assert not forks


def test_workers_started_off_the_main_thread_end_well(tmp_path):
    ends = []
    other = threading.Thread(target=lambda: ends.append(run_to_end(tmp_path, "import sys; sys.exit('why')").error))
    other.start()
    other.join(20)
    assert ends == ["why"]


PARENT = """
    import os, sys, time
    sys.path.insert(0, {root!r})
    from pathlib import Path
    from compare.run.processes import Command, Pool
    hang = "import os, time; open({pid!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    with Pool(lambda *_: None) as pool:
        argv = [sys.executable, "-c", hang]
        pool.start("a", Command(argv=argv, stderr=Path({stderr!r}), environment=os.environ, timeout_s=60))
        while len(pool):
            pool.wait()
"""


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux's kernel kills the children of a killed parent")
def test_no_worker_outlives_its_parent(tmp_path, by):
    """An interrupt is caught and cleaned up after; a killed parent cleans up nothing, the kernel does."""
    pid = tmp_path / "pid"
    script = PARENT.format(root=str(ROOT), pid=str(pid), stderr=str(tmp_path / "stderr"))
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stderr=subprocess.DEVNULL)
    assert soon(lambda: pid.exists() and pid.read_text())
    parent.send_signal(by)
    parent.wait(10)
    child = int(pid.read_text())
    assert soon(lambda: not alive(child))
