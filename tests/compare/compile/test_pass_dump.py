import pytest

from compare.compile.pass_dump import PASSES, dump_flags, needs_dump, pack_dump


@pytest.fixture(autouse=True)
def _no_flags(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)


def test_texts_are_asked_for_by_options_of_one_compile(tmp_path):
    asked = dict(dump_flags(tmp_path, all_of_them=True))
    assert asked["xla_dump_to"] == str(tmp_path)
    assert set(asked["xla_dump_hlo_pass_re"].split("|")) == set(PASSES)


def test_names_of_several_slices_need_one_pass_only(tmp_path):
    assert dict(dump_flags(tmp_path, all_of_them=False))["xla_dump_hlo_pass_re"] == "cross-slice-rewrites"
    assert needs_dump({"passes": False, "num_slices": 2})
    assert needs_dump({"passes": True, "num_slices": 1})
    assert not needs_dump({"passes": False, "num_slices": 1})


def test_a_user_s_own_dump_stays_the_user_s(tmp_path, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/somewhere --xla_tpu_enable_latency_hiding_scheduler=true")
    assert not needs_dump({"passes": True, "num_slices": 1})
    assert pack_dump(tmp_path, strip=str) == (b"", "XLA_FLAGS has xla_dump_to: its folder has them")


def test_other_flags_of_a_user_do_not_matter(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_tpu_enable_latency_hiding_scheduler=true")
    assert needs_dump({"passes": True, "num_slices": 1})


def test_a_compiler_that_wrote_nothing_is_told(tmp_path):
    assert pack_dump(tmp_path, strip=str) == (b"", "libtpu wrote no text of them")
