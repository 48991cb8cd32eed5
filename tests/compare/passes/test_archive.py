import io
import lzma
import tarfile

import pytest

from compare.hlo.text.errors import HloError
from compare.passes.archive import pack, spans, unpack

TEXT = "HloModule {name}\n\nENTRY main {{\n  ROOT p = f32[8] parameter(0)\n}}\n"

NAMES = (
    "module_0000.jit_f.cl_1.before_optimizations.txt",
    "module_0000.jit_f.cl_1.0003.xla-partitioner.after_dce.before_tpu-spmd-partitioning.txt",
    "module_0000.jit_f.cl_1.0004.inner.after_pipeline-start.before_cse.txt",
    "module_0000.jit_f.cl_1.0005.xla-partitioner.after_tpu-spmd-partitioning.before_tpu-call-inliner.txt",
    "module_0000.jit_f.cl_1.0009.Post.after_pipeline-start.before_reduce-scatter-decomposer.txt",
)


@pytest.fixture
def dumped(tmp_path):
    for name in NAMES:
        (tmp_path / name).write_text(TEXT.format(name="large" * 9))
    (tmp_path / "module_0001.constant.before_optimizations.txt").write_text(TEXT.format(name="small"))
    (tmp_path / "module_0000.jit_f.cl_1.after_codegen.txt").write_text("no text of a pass")
    return tmp_path


def test_an_archive_holds_the_texts_of_the_program_in_their_order(dumped):
    found = unpack(pack(dumped, strip=lambda text: text.replace("large", "L")))
    assert [(one.pipeline, one.after, one.before) for one in found] == [
        ("", "", ""),
        ("xla-partitioner", "dce", "tpu-spmd-partitioning"),
        ("inner", "pipeline-start", "cse"),
        ("xla-partitioner", "tpu-spmd-partitioning", "tpu-call-inliner"),
        ("Post", "pipeline-start", "reduce-scatter-decomposer"),
    ]
    assert all(one.text == TEXT.format(name="L" * 9) for one in found)


def test_what_lies_inside_of_a_pass_is_its_own_and_what_lies_between_passes_says_between_which(dumped):
    assert spans(unpack(pack(dumped, strip=str))) == [
        "from the program to tpu-spmd-partitioning",
        "tpu-spmd-partitioning",
        "tpu-spmd-partitioning",
        "from tpu-spmd-partitioning to reduce-scatter-decomposer",
        "from Post to the end",
    ]


def test_a_program_that_was_rewritten_on_the_way_begins_as_it_was_written(dumped):
    """libtpu numbers a program anew when it has rewritten its 64-bit numbers, as those of PyTorch/XLA have."""
    for path in dumped.glob("module_0000.*.xla-*"):
        path.rename(dumped / path.name.replace("module_0000", "module_0003"))
    for path in dumped.glob("module_0000.*00*"):
        path.unlink()
    found = unpack(pack(dumped, strip=str))
    assert [one.after for one in found] == ["", "dce", "tpu-spmd-partitioning"]


def test_the_same_dump_gives_the_same_bytes_and_tar_can_open_them(dumped):
    packed = pack(dumped, strip=str)
    assert pack(dumped, strip=str) == packed
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:xz") as tar:
        assert tar.getnames()[:2] == [
            "before_optimizations.txt",
            "0003.xla-partitioner.after_dce.before_tpu-spmd-partitioning.txt",
        ]


def test_a_folder_without_dumps_makes_no_archive(tmp_path):
    assert pack(tmp_path, strip=str) == b""


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"no archive", lambda data: b""])
def test_a_damaged_archive_is_refused(dumped, damage):
    with pytest.raises(HloError, match="cut or damaged"):
        unpack(damage(pack(dumped, strip=str)))


def test_an_archive_of_something_else_is_refused():
    packed = io.BytesIO()
    with lzma.open(packed, "wb") as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        tar.addfile(tarfile.TarInfo("letter.txt"))
    with pytest.raises(HloError, match="which is no text of a pass"):
        unpack(packed.getvalue())
