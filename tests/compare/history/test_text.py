from compare.history.lines import MOST_CHARACTERS, shorten, split_changes

LINE = (
    "  ROOT %all-gather.3 = (bf16[8,16]{1,0:T(8,128)(2,1)}, bf16[32,16]{1,0:T(8,128)(2,1)}) all-gather-start(%d.1), "
    "channel_id=4, replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}, use_global_device_ids=true, "
    'frontend_attributes={a="b"}, metadata={op_name="jit(f)/while/body/layer.mlp.up/dot_general" stack_frame_id=9}, '
    'backend_config={"x":{"y":"z"}}'
)


def mark(parts):
    return "".join(f"<{part.text}>" if part.changed else part.text for part in parts)


def test_a_line_keeps_what_a_reader_asks_for():
    assert shorten(LINE) == (
        "%all-gather.3 = (bf16[8,16], bf16[32,16]) all-gather-start(%d.1), channel_id=4, "
        "replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}  # …/body/layer.mlp.up/dot_general"
    )


def test_a_sharding_is_kept_and_what_is_very_long_is_cut():
    assert "sharding={devices=[1,8]<=[8]}" in shorten("%d = f32[8] dot(%a, %b), sharding={devices=[1,8]<=[8]}")
    assert len(shorten("%d = f32[8] tuple(" + "%a, " * 500 + "%b)")) <= MOST_CHARACTERS + 2


def test_groups_behind_what_is_left_out_are_kept():
    line = "%r = f32[8] all-reduce(%d), to_apply=%add, replica_groups={{0,1}}, channel_id=3"
    assert shorten(line) == "%r = f32[8] all-reduce(%d), replica_groups={{0,1}}, channel_id=3"
    line = '%r = f32[8] all-reduce(%d), to_apply=%add, replica_groups=[4,2]<=[2,2,2]T(2,1,0), metadata={op_name="a,b"}'
    assert shorten(line) == "%r = f32[8] all-reduce(%d), replica_groups=[4,2]<=[2,2,2]T(2,1,0)  # a,b"


def test_what_differs_is_marked_in_both_lines():
    before, after = split_changes(
        "%a.1 = f32[8,16] all-reduce(%d), channel_id=4", "%a.2 = bf16[8,16] all-reduce(%d), channel_id=4"
    )
    assert mark(before) == "%<a.1> = <f32>[8,16] all-reduce(%d), channel_id=4"
    assert mark(after) == "%<a.2> = <bf16>[8,16] all-reduce(%d), channel_id=4"


def test_lines_that_are_the_same_have_no_mark():
    before, after = split_changes(LINE, LINE)
    assert mark(before) == mark(after) == LINE
