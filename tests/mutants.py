"""Mutation tests on a random sample: break the code in one place at a time, run the tests for it.

    make mutants SEED=7 COUNT=20

A mutant that no test notices survives. Read its diff: either a test is missing, or the change makes
no difference. The mutants live in a copy of the tree; the working tree is never changed. The same
seed on the same code gives the same mutants.
"""

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import accumulate
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_FOUND = _PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]
PACKAGES = [name.rstrip("*") for name in _FOUND]  # "lake*" is the package `lake`
PYTEST = ("-x", "-q", "-n", "2", "--tb=no", "--timeout=120", "-p", "no:cacheprovider")
FAST = "not spark and not e2e and not browser and not soak"

_OPERATORS: dict[type, Any] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
}  # fmt: skip
_ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Call, ast.Dict, ast.List)

Change = list[tuple[Any, str]]  # nodes, and the code to put in their place


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one change."""

    path: str  # from the root of the repository
    line: int
    before: str  # the text of the whole module
    after: str

    def __str__(self) -> str:
        before, after = self.before.splitlines(True), self.after.splitlines(True)
        return "".join([f"{self.path}:{self.line}\n", *unified_diff(before, after, n=1)])


def code(node: ast.AST) -> str:
    return ast.unparse(node) if isinstance(node, _ATOMS) else f"({ast.unparse(node)})"


def swapped(first: ast.AST, second: ast.AST) -> Change:
    return [(first, code(second)), (second, code(first))]


def changes(node: ast.AST) -> Iterator[Change]:
    """The ways in which a node can be broken."""
    match node:
        case ast.Compare(left, [operator], right) if type(operator) in _OPERATORS:
            yield [(node, code(ast.Compare(left, [_OPERATORS[type(operator)]()], right)))]
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            yield [(node, code(ast.BinOp(left, _OPERATORS[type(operator)](), right)))]
        case ast.BoolOp(operator, values):
            yield [(node, code(ast.BoolOp(_OPERATORS[type(operator)](), values)))]
        case ast.Constant(bool() as value):
            yield [(node, f"{not value}")]
        case ast.Constant(int() | float() as value):
            yield [(node, f"{value + 1}")]
        case ast.UnaryOp(ast.Not(), operand):
            yield [(node, f"bool({ast.unparse(operand)})")]
        case ast.Expr(ast.Call()):
            yield [(node, "pass")]
        case ast.IfExp(_, first, second) | ast.Dict(values=[first, second, *_]):
            yield swapped(first, second)
        case ast.Call(keywords=[first, second, *_]):
            yield swapped(first.value, second.value)
        case ast.If(condition) | ast.While(condition) | ast.Assert(condition):
            yield [(condition, f"not {code(condition)}")]
        case ast.comprehension(ifs=conditions):
            yield from ([(condition, "True")] for condition in conditions)


def all_changes(tree: ast.AST) -> Iterator[Change]:
    """Those of a whole module, without annotations, decorators and f-strings."""
    yield from changes(tree)
    for name, value in ast.iter_fields(tree):
        if name not in ("annotation", "returns", "decorator_list"):
            for node in value if isinstance(value, list) else [value]:
                if isinstance(node, ast.AST) and not isinstance(node, ast.JoinedStr):
                    yield from all_changes(node)


def mutants(path: Path) -> Iterator[Mutant]:
    """All mutants of a module."""
    text = path.read_bytes()
    starts = list(accumulate(map(len, text.splitlines(True)), initial=0))
    for change in all_changes(ast.parse(text)):
        after = text
        for node, new in reversed(change):  # from the end, so that positions stay right
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            after = after[:start] + new.encode() + after[end:]
        if after != text:
            name, line = str(path.relative_to(ROOT)), change[0][0].lineno
            yield Mutant(name, line, text.decode(), after.decode())


def modules(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported(path: Path) -> set[str]:
    """The modules that a module imports, and names that may be modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def tests_of(path: str, imports: dict[Path, set[str]]) -> list[str]:
    """The tests that import a module, and the test folder of the same name.

    Where there are neither, those that import what imports the module, and so on.
    """
    wanted, found = {dotted(ROOT / path)}, set[Path]()
    above = [ROOT / "tests" / folder for folder in Path(path).parents if len(folder.parts) > 1]
    folders = [folder for folder in above if any(folder.glob("test_*"))][:1]
    while not found:
        importing = {module for module, names in imports.items() if names & wanted}
        found = {module for module in importing if module.name.startswith("test_")}
        if folders or {dotted(module) for module in importing} <= wanted:
            break
        wanted |= {dotted(module) for module in importing}
    nearest = sorted(found, key=lambda test: (Path(path).stem not in test.stem, test))
    return [str(test.relative_to(ROOT)) for test in (*nearest, *folders)]


def copy_tree(folder: Path) -> None:
    """Copy the files of the working tree that are not ignored."""
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)


def pytest(folder: Path, tests: Sequence[str], seconds: float) -> tuple[int | None, list[str]]:
    """The exit code, None if it takes too long, and the tests that failed."""
    command = (sys.executable, "-m", "pytest", *PYTEST, "-m", FAST, *tests)
    environ = os.environ | {"PYTHONPATH": str(folder)}  # before the installed packages
    with subprocess.Popen(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        try:
            out, _ = run.communicate(timeout=seconds)
        except BaseException as error:  # also Ctrl-C, which does not reach the other session
            os.killpg(run.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return None, []
            raise
    return run.returncode, re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", out, re.MULTILINE)


def verdict(folder: Path, mutant: Mutant, tests: Sequence[str], seconds: float) -> str:
    (folder / mutant.path).write_text(mutant.after, encoding="utf-8")
    exit_code, failed = pytest(folder, tests, seconds) if tests else (5, [])
    shutil.copy2(ROOT / mutant.path, folder / mutant.path)
    known = {None: "timeout", 0: "survived", 5: "no tests"}
    if exit_code in known:
        return known[exit_code]
    # A test that fails without the mutant, too, has noticed nothing.
    unreliable = failed and pytest(folder, failed, seconds)[0] == 1
    return "unreliable test" if unreliable else "noticed"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    options.add_argument("--count", type=int, default=20)
    options.add_argument("--seconds", type=float, default=900, help="of tests for each mutant")
    options.add_argument(
        "--only", default="", help="start of the paths, such as eventlake/storage/"
    )
    given = options.parse_args()
    every = [mutant for path in modules(*PACKAGES) for mutant in mutants(path)]
    every = [mutant for mutant in every if mutant.path.startswith(given.only)]
    sample = random.Random(given.seed).sample(every, min(given.count, len(every)))
    print(f"seed {given.seed}: {len(sample)} of {len(every):,} mutants", flush=True)
    imports = {path: imported(path) for path in modules(*PACKAGES, "tests")}
    verdicts = Counter[str]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        copy_tree(Path(name))
        for number, mutant in enumerate(sample, start=1):
            start = time.monotonic()
            found = verdict(Path(name), mutant, tests_of(mutant.path, imports), given.seconds)
            verdicts[found] += 1
            shown = mutant if found != "noticed" else f"{mutant.path}:{mutant.line}"
            print(f"{number}: {found}, {time.monotonic() - start:.0f} s: {shown}", flush=True)
    summary = ", ".join(f"{count} {found}" for found, count in verdicts.most_common())
    print(f"seed {given.seed}: {summary}")


if __name__ == "__main__":
    main()
