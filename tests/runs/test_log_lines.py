"""What a person reads of a run."""

from densembed.runs import Run, execute
from densembed.runs.log_lines import SHOWN, log_lines
from densembed.training.config import RunConfig


def test_the_story_of_a_run(runs_root):
    run = Run.create(RunConfig(model="logistic-el-2", epochs=2, batch_size=100, device="cpu"))
    run.resume(epochs=1)
    assert execute(str(run.path)) == "paused"
    run.resume()
    execute(str(run.path))
    said = [line.partition("  ")[2] for line in log_lines(run.events())]
    errors = run.checkpoint().header.epochs
    assert said[0] == "resume requested"
    assert said[1].startswith("started at step 0: CPU (1 thread, ")
    assert f"epoch 1: test error {errors[0].test_error[0]:.2f} %" in said[2]
    assert [said[k] for k in (3, 4, -1)] == ["paused", "resume requested", "done"]
    assert said[5].startswith("started at step 15: CPU (")


def test_only_the_end_of_a_long_story():
    events = [{"kind": "epoch", "epoch": k, "step": k, "test_error": [1.0]} for k in range(1, 999)]
    lines = log_lines(events)
    assert len(lines) == SHOWN
    assert "epoch 998" in lines[-1]


def test_lines_that_lack_something():
    assert log_lines([{"kind": "start"}, {"kind": "end", "state": "failed", "time": 1e300}]) == [
        "—  started at step 0",
        "—  failed",
    ]
