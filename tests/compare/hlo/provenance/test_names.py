"""What a row says of who asked for it: its own, or what the nearest instruction says, and then marked so."""

import gzip
import re

from compare.hlo.collective import PUBLIC
from compare.hlo.collectives.collectives import collectives
from compare.hlo.scope_key import is_scope_inferred, op_name_of, path_of, scope_or_path
from compare.hlo.text.module import read
from tests.places import ROOT

FSDP = gzip.decompress((ROOT / "tests/compare/hlo/named/fsdp.hlo.gz").read_bytes()).decode()
"""Two matmuls a layer, four layers in a scan, weights split over `fsdp`, a step of training: JAX 0.10.2, v5e:2x4."""

ADD = "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
GROUPS = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true"
SCATTER = f"""scatter {{
  input = f32[8]{{0}} parameter(0)
  sum = f32[8]{{0}} all-reduce(input), {GROUPS}, to_apply=add
  id = u32[] partition-id()
  two = u32[] constant(2)
  at = u32[] multiply(id, two)
  ROOT part = f32[2]{{0}} dynamic-slice(sum, at), dynamic_slice_sizes={{2}}
}}
"""


def at(name, line=0):
    place = f' source_file="m.py" source_line={line}' if line else ""
    return f', metadata={{op_name="{name}"{place}}}'


def row(*lines, computations="", axes=None):
    body = "\n  ".join(("w = f32[8]{0} parameter(0)" + at("w"), *lines[:-1], "ROOT " + lines[-1]))
    text = f"HloModule m, num_partitions=4\n{ADD}{computations}ENTRY main {{\n  {body}\n}}\n"
    (found,) = collectives(read(text), axes or {"tp": 4})
    return found


def test_a_fused_reduce_scatter_bears_the_name_of_its_fusion():
    found = row(
        "d = f32[8]{0} negate(w)" + at("jit(f)/loss/dot", 3),
        "r = f32[2]{0} fusion(d), kind=kCustom, calls=scatter" + at("jit(f)/loss/transpose", 9),
        computations=SCATTER,
    )
    assert (found.kind, found.form) == ("reduce-scatter", "fused-reduce-scatter")
    assert (found.scope, found.op_name, found.source_line) == ("?", "jit(f)/loss/transpose", "m.py:9")
    assert found.inferred == ()
    assert scope_or_path(found) == path_of(found) == "loss/transpose"


def test_in_a_scope_it_has_not_lost_that():
    lines = ("r = f32[2]{0} fusion(w), kind=kCustom, calls=scatter" + at("jit(f)/layer.mlp.down/dot", 9),)
    found = row(*lines, computations=SCATTER)
    assert (found.scope, found.inferred, is_scope_inferred(found)) == ("layer.mlp.down", (), False)


def test_without_a_name_a_sum_bears_that_of_who_made_its_parts():
    found = row(
        "d = f32[8]{0} negate(w)" + at("jit(f)/loss/dot", 3),
        "c = f32[8]{0} copy(d)",
        "r = f32[2]{0} fusion(c), kind=kCustom, calls=scatter",
        "u = f32[2]{0} negate(r)" + at("jit(f)/update/mul", 9),
        computations=SCATTER,
    )
    assert (found.scope, found.op_name, found.source_line) == ("?", "jit(f)/loss/dot", "m.py:3")
    assert found.inferred == ("op_name", "source_line")
    # For a diff, what is only a neighbour's tells nothing.
    assert (op_name_of(found), scope_or_path(found), path_of(found)) == ("", "", "loss/dot")


def test_without_a_name_what_moves_bears_that_of_who_uses_it():
    lines = (
        "d = f32[8]{0} negate(w)" + at("jit(f)/loss/dot", 3),
        f"g = f32[32]{{0}} all-gather(d), {GROUPS}, dimensions={{0}}",
        "u = f32[32]{0} negate(g)" + at("jit(f)/update/mul", 9),
    )
    found = row(*lines)
    assert (found.op_name, found.source_line) == ("jit(f)/update/mul", "m.py:9")
    assert row(*lines[:2]).op_name == "jit(f)/loss/dot"  # nobody uses it


def test_of_two_that_are_near_each_word_is_the_nearest_that_there_is():
    found = row(
        "d = f32[8]{0} negate(w)" + at("jit(f)/a/dot", 3),
        "e = f32[8]{0} negate(d)" + at("jit(f)/b/dot"),
        f"g = f32[8]{{0}} all-reduce(e), {GROUPS}, to_apply=add" + at("jit(f)/c/dot"),
    )
    assert (found.op_name, found.source_line, found.inferred) == ("jit(f)/c/dot", "m.py:3", ("source_line",))


def test_a_name_is_that_of_another_line_only_where_its_own_line_is_lost():
    """An asynchronous fusion carries a gather along beside a matmul that has nothing to do with it."""
    lines = (
        "d = f32[8]{0} negate(w)" + at("jit(f)/write/index_copy", 3),
        f'g = f32[32]{{0}} all-gather(d), {GROUPS}, dimensions={{0}}, metadata={{source_file="m.py" source_line=3}}',
        "u = f32[32]{0} negate(g)" + at("jit(f)/attn/matmul", 9),
    )
    found = row(*lines)
    assert (found.op_name, found.source_line) == ("jit(f)/write/index_copy", "m.py:3")
    assert found.inferred == ("op_name",)
    assert row(lines[0].replace("=3}", "=4}"), *lines[1:]).op_name == ""


def test_a_scope_of_a_neighbour_is_marked():
    found = row(
        "d = f32[8]{0} negate(w)" + at("jit(f)/layer.mlp.down/dot", 3),
        f"g = f32[8]{{0}} all-reduce(d), {GROUPS}, to_apply=add",
    )
    assert (found.scope, found.inferred) == ("layer.mlp.down", ("scope", "op_name", "source_line"))
    assert is_scope_inferred(found)


def test_the_name_of_an_argument_is_no_path():
    found = row(f"g = f32[8]{{0}} all-reduce(w), {GROUPS}, to_apply=add")
    assert (found.op_name, found.source_line, found.inferred) == ("", None, ())


def test_what_the_compiler_needs_for_itself_is_given_no_name():
    """It depends on no argument; who happens to stand near did not ask for it."""
    found = row(
        "one = f32[8]{0} constant({...})",
        f"g = f32[8]{{0}} all-reduce(one), {GROUPS}, to_apply=add",
        "u = f32[8]{0} add(g, w)" + at("jit(f)/update/mul", 9),
    )
    assert (found.op_name, found.source_line, found.inferred) == ("", None, ())


def test_the_gradients_of_a_compiled_fsdp_step_are_named():
    rows = collectives(read(FSDP), {"fsdp": 8})
    told = {(row.kind, row.op_name.removeprefix("jit(step)/"), row.source_line, row.step_wire_bytes) for row in rows}
    body = "while/body/closed_call"
    # Of four layers' weights of 1,024 × 4,096 bf16 seven eighths each, in either direction.
    assert told == {
        ("all-gather", f"jvp()/{body}/convert_element_type", "fsdp.py:12", 29_360_128),
        ("reduce-scatter", f"transpose(jvp())/{body}/dot_general", "fsdp.py:13", 29_360_128),
        ("all-reduce", "jvp()/reduce_sum", "fsdp.py:18", 7),
    }
    assert [row.form for row in rows].count("fused-reduce-scatter") == 2
    assert not any(row.inferred for row in rows)


def test_without_the_names_of_its_fusions_they_are_those_of_the_nearest():
    text = re.sub(r"(calls=%all-reduce-scatter[^,]*, )metadata=\{[^}]*\}, ", r"\1", FSDP)
    assert text != FSDP
    lost = [one for one in collectives(read(text), {"fsdp": 8}) if one.form == "fused-reduce-scatter"]
    assert len(lost) == 2
    for one in lost:
        assert "dot_general" in one.op_name
        assert one.source_line == "fsdp.py:13"
        assert one.inferred == ("op_name", "source_line")


def test_they_are_public():
    assert PUBLIC[-4:] == ("op_name", "inferred", "line", "caller")
    told = row(f"g = f32[8]{{0}} all-reduce(w), {GROUPS}, to_apply=add").public()
    assert (told["op_name"], told["inferred"]) == ("", [])
    assert told["line"] == 9
