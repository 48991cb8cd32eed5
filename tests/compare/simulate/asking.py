"""Questions to `compare.simulate` in the process of the tests: what it answers, and what it says where it refuses."""

import json

from tests.commands import check_refusal, run_here


def answer(*words):
    done = run_here("simulate", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refuse(*words):
    done = run_here("simulate", *words)
    check_refusal(done, "")
    return done.stderr
