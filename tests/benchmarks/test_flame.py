from pathlib import Path

import pytest

from benchmarks.flame import draw, frames, read

TASK = "process 7:python;worker (pyspark/daemon.py:91);run (x/lake/staging/task.py:71)"


@pytest.mark.parametrize(
    ("stack", "kept"),
    [
        ("process 7:python;main (pyspark/daemon.py:91)", []),
        (TASK, ["run (eventlake/load/stage.py)"]),
        (
            f"{TASK};_take (x/lake/staging/task.py:90);_take (x/lake/staging/task.py:91)",
            ["run (eventlake/load/stage.py)", "_take (eventlake/load/stage.py)"],
        ),
        (
            f"{TASK};f (isal/isal_zlib.cpython-311.so);0x1 (libc.so.6)",
            ["run (eventlake/load/stage.py)", "isal/isal_zlib"],
        ),
        (f"{TASK};0x7f00 (?)", ["run (eventlake/load/stage.py)", "compiled code"]),
        (f"{TASK};0x7f00", ["run (eventlake/load/stage.py)", "compiled code"]),
    ],
)
def test_of_a_stack_our_functions_are_kept_and_the_library_below(
    stack: str, kept: list[str]
) -> None:
    assert frames(stack) == kept


def test_boxes_are_as_wide_as_their_share(tmp_path: Path) -> None:
    recorded = tmp_path / "stacks.txt"
    recorded.write_text(f"{TASK} 3\n{TASK};0x7f00 1\nprocess 7:python 4\n")
    root = read(recorded)
    assert (root.samples, root.depth) == (8, 3)
    picture = draw(root, "a & b")
    assert "a &amp; b" in picture
    assert "run (eventlake/load/stage.py): 50.0%" in picture
    assert "compiled code: 12.5%" in picture
