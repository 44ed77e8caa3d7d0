"""The commands of the program and their arguments.

This module imports no torch: help, errors in arguments and `info` take a fraction of a second.
"""

import argparse
import os
from pathlib import Path
from typing import get_args

from densembed.cli.common import (
    Command,
    UsageError,
    add_data_dir,
    add_grid,
    as_checkpoint,
    as_count,
    as_folder,
    as_path,
    as_text,
    check_out,
    check_out_folder,
)
from densembed.data.content import Content
from densembed.data.grids import MAX_CELLS
from densembed.data.names import NAMES, check_name, is_signals
from densembed.experiments.recipes import RECIPES
from densembed.files import is_same_file
from densembed.interrupt import ENDS
from densembed.runs.sweep_plan import FIXED, make_plan, read_values
from densembed.text import printable
from densembed.training.config import RunConfig

EXPERIMENTS = (
    "table1",
    "table2",
    "search",
    "figure1",
    "times",
    "families",
    "robustness",
    "frames",
    "resolution",
    "frontier",
    "signals",
)
"""What `reproduce` makes: the keys of `reproduce.EXPERIMENTS`."""
WITH_ROWS = ("table1", "table2", "search", "times", "frames", "frontier", "signals")
"""Those that can be limited to some models."""
WITH_RECIPE = ("table1", "table2", "figure1", "families", "frames", "resolution")
"""Those whose trainings a recipe sets."""
DEFAULT_OUT = Path("checkpoints/reproduction")
RENDERED = (".html", ".svg", ".pdf", ".png", ".npz")
EXPORTS = {"onnx": ".onnx", "torch": ".pt2", "csv": ".csv"}
"""What `export` writes, with the suffix of its files."""
RESOLUTION, MAX_RESOLUTION = 4, 32
MAX_PORT = 65_535
MOST_SEEDS, MOST_PROCESSES = 100, 256
DATASETS_OR_FOLDER = f"{', '.join(NAMES)}, folder:PATH or csv:PATH"


def _add_scheduler(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="train on the workers of a Dask scheduler, tcp://host:8786 "
        "(default: $DENSEMBED_SCHEDULER, otherwise this machine)",
    )


def _check_scheduler(options: argparse.Namespace, unused: str = "") -> None:
    """Set the scheduler of the environment, unless there is a reason why none is used."""
    if unused:
        _check_unused(options, unused, "scheduler")
    else:
        options.scheduler = options.scheduler or os.environ.get("DENSEMBED_SCHEDULER") or None


def _add_app(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=as_count(MAX_PORT),
        help="port of the server (default: 8501, or the next free one)",
    )
    parser.add_argument(
        "--runs",
        type=as_folder,
        help="folder of the runs (default: $DENSEMBED_RUNS, otherwise checkpoints/runs of a clone "
        "or a folder of your user data)",
    )
    parser.add_argument("--read-only", action="store_true", help="neither train nor delete")
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="open the pages in a browser (default: yes)",
    )


def _check_app(options: argparse.Namespace) -> None:
    if options.runs and not options.read_only:
        check_out_folder(options.runs, "--runs")


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=as_checkpoint, nargs="+")


def _add_novelty(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    add_data_dir(parser)


def _add_train(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every field of RunConfig; the model is the first argument."""
    for name, field in RunConfig.model_fields.items():
        text = f"{field.description} (default {field.default})"
        if name == "dataset":
            text = f"{DATASETS_OR_FOLDER} (default {field.default})"
        if name == "grid":
            text += "; several, separated by commas, take turns in random order"
        if name == "model":
            parser.add_argument(name, help="name of the model: see below")
        else:
            _add_setting(parser, name, text)
    add_data_dir(parser)
    parser.add_argument("--out", type=as_path, help="write one file instead of a run folder")
    _add_scheduler(parser)


def _add_setting(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    """Add the option of a field of RunConfig. The help has the choices exactly as it takes them."""
    field = RunConfig.model_fields[name]
    choices = get_args(field.annotation)
    parser.add_argument(
        "--" + name.replace("_", "-"),
        default=field.default,
        metavar=f"{{{','.join(choices)}}}" if choices else None,
        help=text,
    )


def _check_train(options: argparse.Namespace) -> None:
    config = RunConfig(**{name: getattr(options, name) for name in RunConfig.model_fields})
    check_name(config.dataset)
    if options.out:
        check_out(options.out)
    on_this = "A training with --out runs on this machine" if options.out else ""
    _check_scheduler(options, on_this)


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    _add_files(parser)
    parser.add_argument(
        "--dataset",
        type=as_text,
        help=f"{DATASETS_OR_FOLDER} (default: the one it was trained on; "
        "a folder or a table only if it lies in the data folder)",
    )
    add_data_dir(parser)
    add_grid(parser, signals=True)


def _add_read(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=as_checkpoint)
    parser.add_argument(
        "image",
        type=as_path,
        nargs="+",
        help="image file, or CSV file of signals for a model of signals",
    )
    add_grid(parser)
    parser.add_argument(
        "--labels", type=as_path, help="tab-separated table with the columns file and digit"
    )
    add_data_dir(
        parser,
        "folder with the training data; if they are available, images that are unlike the "
        "training images are marked",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one object per signal: file, line, label, class, probability, error; or one "
        f"per image: file, label, seen ({', '.join(Content)}, nothing), "
        "polarity, class, probability, unlike (true, false; null: unknown), digits (in reading "
        "order, each with class, probability, unlike, doubts, close and box), remark (about frames "
        "that were not read), error",
    )


def _add_render(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=as_checkpoint)
    parser.add_argument(
        "--image",
        type=as_path,
        required=True,
        help="image file, or CSV file whose first signal is shown for a model of signals",
    )
    parser.add_argument(
        "--out",
        type=as_path,
        required=True,
        help="FILE.html, a page with controls; or .svg, .pdf, .png for print; or .npz",
    )
    parser.add_argument(
        "--resolution",
        type=as_count(MAX_RESOLUTION),
        help=f"cells per pixel (1 to {MAX_RESOLUTION}, default {RESOLUTION}); not for a page",
    )
    add_grid(parser)


def _check_render(options: argparse.Namespace) -> None:
    if options.out.suffix.lower() not in RENDERED:
        raise UsageError("--out must end in .html, .svg, .pdf, .png or .npz.")
    if options.out.suffix.lower() == ".html":
        if options.grid:
            raise UsageError("--grid is not for pages: choose the resolution on the page.")
        if options.resolution:
            raise UsageError(
                "--resolution is not for pages, which compute the field themselves. Leave it out."
            )
    options.resolution = options.resolution or RESOLUTION
    if options.grid and max(options.grid) * options.resolution > MAX_CELLS:
        raise UsageError(
            f"--grid and --resolution make more than {MAX_CELLS:,} cells along an axis: "
            "lower one of them."
        )
    check_out(options.out, inputs=[options.checkpoint, options.image])


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=as_checkpoint)
    parser.add_argument("--to", choices=EXPORTS, required=True, help="format of the file")
    parser.add_argument(
        "--out", type=as_path, help="file to write (default: NAME.onnx, NAME.pt2 or NAME.csv here)"
    )
    parser.add_argument(
        "--dtype",
        choices=("float32", "float64"),
        help="precision of the network (default float32)",
    )
    parser.add_argument(
        "--table",
        choices=("densities", "weights", "field"),
        help="contents of a CSV file (default: densities; weights for a model without densities)",
    )
    parser.add_argument(
        "--image", type=as_path, help="input of the model, for densities that move with it"
    )


def _check_export(options: argparse.Namespace) -> None:
    if options.to != "csv" and (options.image or options.table):
        raise UsageError("--image and --table are for --to csv.")
    if options.to == "csv" and options.dtype:
        raise UsageError("--dtype is for --to onnx and --to torch.")
    ending = EXPORTS[options.to]
    options.out = options.out or Path(options.checkpoint.stem + ending)
    check_out(options.out, inputs=filter(None, [options.checkpoint, options.image]))
    if options.out.suffix.lower() != ending:
        raise UsageError(f"--out must end in {ending} for --to {options.to}.")


def _add_site(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", type=as_path, help="folder to write, which may exist")
    parser.add_argument(
        "checkpoint",
        type=as_checkpoint,
        nargs="*",
        default=[],
        help="files to show (default: six included models)",
    )
    parser.add_argument(
        "--dataset",
        default="digits",
        help="data set whose test images or signals are the examples (default: digits); models of "
        "mnist1d have their own",
    )
    add_data_dir(parser)


def _check_site(options: argparse.Namespace) -> None:
    check_out_folder(options.out, "the folder")


def _add_reproduce(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=EXPERIMENTS)
    parser.add_argument(
        "--recipe", choices=RECIPES, help="settings of the trainings (default: paper)"
    )
    parser.add_argument(
        "--seeds", type=as_count(MOST_SEEDS), help="runs per model (default 5; families: 3)"
    )
    parser.add_argument("--rows", type=as_text, help="models, separated by commas (default: all)")
    parser.add_argument(
        "--included", action="store_true", help="figure1: of the included models, without training"
    )
    parser.add_argument(
        "--inputs",
        type=as_text,
        help="figure1: three classes, each shown by its first test image "
        "(default: 7,2,1, or others if the data set lacks them)",
    )
    parser.add_argument("--dataset", type=as_text, help="data set, if not the experiment's default")
    add_data_dir(parser)
    parser.add_argument("--out", type=as_path, default=DEFAULT_OUT, help="folder for the results")
    parser.add_argument(
        "--gallery", type=as_path, help="copy the typical run of each model to this folder"
    )
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda", "mps"),
        default="",
        help="where to train (default auto); on a GPU all seeds of a model are trained together",
    )
    parser.add_argument(
        "--processes",
        type=as_count(MOST_PROCESSES),
        help="trainings in parallel (default: one per core; one on a GPU, which 4 to 8 keep busy)",
    )
    _add_scheduler(parser)


def _check_reproduce(options: argparse.Namespace) -> None:
    if options.dataset:
        check_name(options.dataset)
        own = "signals" if options.what == "signals" else "images"
        if is_signals(options.dataset) != (own == "signals"):
            raise UsageError(f"{options.what} needs a data set of {own}, unlike {options.dataset}.")
    names = (options.rows or "").split(",")
    options.rows = tuple(dict.fromkeys(name for part in names if (name := part.strip())))
    if options.rows == () and len(names) > 1:
        raise UsageError("--rows takes names of models, separated by commas.")
    if options.rows and options.what not in WITH_ROWS:
        raise UsageError(f"--rows is for {', '.join(WITH_ROWS)}, not for {options.what}.")
    if options.what != "figure1" and (options.included or options.inputs):
        raise UsageError(f"--included and --inputs are for figure1, not for {options.what}.")
    unused = ""
    if options.included:
        unused = "The included models are trained already"
        _check_unused(options, unused, "recipe", "seeds", "processes", "device")
    if options.what == "times":
        unused = "times trains each network once, one after another, on this machine"
        _check_unused(options, unused, "seeds", "processes")
    _check_scheduler(options, unused)
    if options.recipe and options.what not in WITH_RECIPE:
        raise UsageError(f"--recipe is for {', '.join(WITH_RECIPE)}, not for {options.what}.")
    options.recipe = options.recipe or "paper"
    check_out_folder(options.out)
    if options.gallery:
        check_out_folder(options.gallery, "--gallery")


def _check_unused(options: argparse.Namespace, why: str, *names: str) -> None:
    """Raise UsageError for an option that would make no difference."""
    for name in names:
        if getattr(options, name):
            raise UsageError(f"{why}: leave out --{name}.")


def _add_sweep(parser: argparse.ArgumentParser) -> None:
    """Add an option for every setting; several values, separated by commas, form a grid."""
    for name, field in RunConfig.model_fields.items():
        values = "" if name in FIXED else "; one or more, separated by commas"
        text = f"{field.description} (default {field.default}{values})"
        if name == "model":
            text = f"networks, by name: see below{values}"
            parser.add_argument(name, help=text)
        else:
            _add_setting(parser, name, text)
    add_data_dir(parser)
    parser.add_argument("--out", type=as_path, help="folder of the sweep (default: a new folder)")
    parser.add_argument(
        "--processes",
        type=as_count(MOST_PROCESSES),
        default=os.cpu_count() or 1,
        help="groups in parallel on each device of this machine (default: one per core)",
    )
    _add_scheduler(parser)


def _check_sweep(options: argparse.Namespace) -> None:
    """Set `options.plan`."""
    base, grid = {}, {}
    for name in RunConfig.model_fields:
        value = getattr(options, name)
        values = read_values(name, value) if isinstance(value, str) else [value]
        if name not in FIXED and len(values) > 1:
            grid[name] = values
        else:
            base[name] = value
    options.plan = make_plan(base, grid or {"model": [base["model"]]})
    _check_scheduler(options)
    for name in grid.get("dataset", [base.get("dataset", NAMES[0])]):
        check_name(name)
    if options.out:
        check_out_folder(options.out)


def _add_benchmark(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quick",
        action="store_true",
        help="take about 15 seconds: only eager mode and batch size 128",
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--json", type=as_path, help="also write the measurements to this file")
    parser.add_argument("--markdown", type=as_path, help="also write them as Markdown tables")


def _check_benchmark(options: argparse.Namespace) -> None:
    for name in ("json", "markdown"):
        if path := getattr(options, name):
            check_out(path, f"--{name}")
    if options.json and options.markdown and is_same_file(options.json, options.markdown):
        raise UsageError(
            f"--json and --markdown name the same file, {printable(options.json)}: choose two."
        )


COMMANDS = (
    Command(
        name="app",
        text="open the pages in a browser",
        add_arguments=_add_app,
        check=_check_app,
        run="app:run",
        examples=("app", "app --port 8600 --runs my-runs", "app --read-only --no-open"),
    ),
    Command(
        name="train",
        text="train a model and save its checkpoint",
        add_arguments=_add_train,
        check=_check_train,
        run="train:run",
        examples=(
            "train logistic-el-mnn-10-5 --epochs 60 --out a.safetensors",
            "train gaussian-el-5 --dataset mnist --epochs 5 --seeds 3",
            "train logistic-el-mnn-10-5 --grid 14,data,56",
        ),
        lists_names=True,
        interrupted="Interrupted. Nothing was saved.",
        signals=ENDS,
    ),
    Command(
        name="evaluate",
        text="print the test error of checkpoints",
        add_arguments=_add_evaluate,
        run="evaluate:evaluate",
        examples=(
            "evaluate a.safetensors",
            "evaluate logistic-el-5 --dataset mnist",
            "evaluate logistic-el-mnn-10-5 --grid 14",
        ),
        several_files=True,
    ),
    Command(
        name="info",
        text="print a summary of checkpoints",
        add_arguments=_add_files,
        run="info:info",
        examples=("info a.safetensors b.safetensors", "info logistic-el-5"),
        several_files=True,
    ),
    Command(
        name="novelty",
        text="add to older checkpoints the statistics that recognise unfamiliar images",
        add_arguments=_add_novelty,
        run="novelty:novelty",
        examples=("novelty a.safetensors", "novelty checkpoints/paper/*.safetensors"),
        several_files=True,
    ),
    Command(
        name="read",
        text="predict the digits in image files, or the classes of signals in CSV files",
        add_arguments=_add_read,
        run="read:read",
        examples=(
            "read logistic-el-mnn-10-5 photo.jpg scan.png",
            "read a.safetensors *.png --labels labels.tsv --json",
            "read logistic-el-mnn-10-5 photo.jpg --grid 56",
        ),
        several_files=True,
    ),
    Command(
        name="render",
        text="save the receptive fields for an image or a signal",
        add_arguments=_add_render,
        check=_check_render,
        run="render:render",
        examples=("render a.safetensors --image photo.jpg --out field.pdf",),
    ),
    Command(
        name="export",
        text="write a checkpoint as ONNX, as a torch program, or as a table",
        add_arguments=_add_export,
        check=_check_export,
        run="export:export",
        examples=(
            "export a.safetensors --to onnx",
            "export logistic-el-5 --to torch --out fives.pt2",
            "export logistic-el-mnn-10-5 --to csv --image photo.jpg",
        ),
    ),
    Command(
        name="site",
        text="write Explore and Compare as static files",
        add_arguments=_add_site,
        check=_check_site,
        run="site:site",
        examples=("site public", "site public a.safetensors b.safetensors --dataset mnist"),
    ),
    Command(
        name="reproduce",
        text="reproduce the paper's results",
        add_arguments=_add_reproduce,
        check=_check_reproduce,
        run="reproduce:reproduce_command",
        examples=(
            "reproduce table1 --recipe tuned",
            "reproduce table1 --rows logistic-el-5,linear --dataset digits --seeds 3",
        ),
        interrupted="Interrupted. Finished trainings are kept; run the same command to continue.",
    ),
    Command(
        name="sweep",
        text="train every combination of several settings",
        add_arguments=_add_sweep,
        check=_check_sweep,
        run="sweep:run",
        examples=(
            "sweep logistic-el-3,logistic-el-5 --learning-rate 0.002,0.01 --seeds 3 --out first",
        ),
        lists_names=True,
        interrupted="Interrupted. Trainings that have ended are kept: run the same command, with "
        "the sweep's folder as --out, to continue.",
    ),
    Command(
        name="benchmark",
        text="measure the speed of layers and models",
        add_arguments=_add_benchmark,
        check=_check_benchmark,
        run="reproduce:benchmark_command",
        examples=("benchmark --quick --json speed.json",),
    ),
)
