"""The package as a whole: light import, one version, arrows between rooms, a README that is true."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import deixis as dx
from deixis.cli import app

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "transformers", "nnsight", "pandas", "matplotlib", "sklearn", "scipy", "h5py")
RIGHT_OF = {  # the rooms that a room may import
    "benchmarks": set(),
    "models": {"benchmarks"},
    "hooks": {"benchmarks", "models"},
    "activations": {"benchmarks", "models", "hooks"},
    "probes": set(),
    "analyses": {"benchmarks", "models", "hooks", "activations", "probes"},
    "cli": {"benchmarks", "models", "hooks", "activations", "probes", "analyses"},
}


def loaded_by(code: str) -> set[str]:
    """The heavy packages that a fresh interpreter holds after ``code``."""
    script = f"{code}\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


def rooms_imported(source: str) -> set[str]:
    """The rooms (and torch) that a module's source imports anywhere, also for types only."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    found = {name.split(".")[1] for name in names if name.startswith("deixis.")}
    return (found & set(RIGHT_OF)) | ({"torch"} & {name.split(".")[0] for name in names})


def readme_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "README.md").read_text(), flags=re.M | re.S)


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import deixis") == set()


def test_the_command_loads_nothing_heavy_before_it_has_a_job():
    assert loaded_by("import deixis.cli") == set()


def test_the_check_for_heavy_packages_can_fail():
    assert "h5py" in loaded_by("import h5py")


def test_every_public_name_resolves():
    for name in dx.__all__:
        assert getattr(dx, name) is not None, name


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'recrod'"):
        dx.recrod  # noqa: B018


def test_type_checkers_see_the_names_that_are_there():
    typed: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / "deixis/__init__.py").read_text())):
        if isinstance(node, ast.If):
            typed |= {alias.asname or alias.name for statement in node.body for alias in getattr(statement, "names", ())}
    assert typed == set(dx.__all__) - {"__version__"}


@pytest.mark.parametrize("room", RIGHT_OF)
def test_rooms_import_in_one_direction(room: str):
    for path in (ROOT / "deixis" / room).rglob("*.py"):
        wrong = rooms_imported(path.read_text()) - RIGHT_OF[room] - {room}
        if room != "benchmarks":
            wrong -= {"torch"}
        assert not wrong, f"{path.relative_to(ROOT)} imports {', '.join(sorted(wrong))}"


def test_the_check_of_directions_sees_every_kind_of_import():
    source = "from deixis import probes\nif X:\n    from deixis.models.load import y\n"
    source += "def f():\n    import deixis.hooks\n    import torch.nn"
    assert rooms_imported(source) == {"probes", "models", "hooks", "torch"}


def test_every_room_is_checked():
    folders = {path.parent.name for path in (ROOT / "deixis").glob("*/__init__.py")}
    assert folders == set(RIGHT_OF)


def test_all_files_name_the_same_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    citation = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), flags=re.M)
    assert dx.__version__ == project
    assert citation is not None
    assert citation[1] == project
    assert project in (ROOT / "CHANGELOG.md").read_text()


def test_the_readme_opens_with_the_ten_lines_and_they_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    code = readme_blocks("python")[0]
    assert len(code.splitlines()) == 10
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "sweep.png").stat().st_size > 10_000
    assert "encoded" in (tmp_path / "report.html").read_text("utf-8")


def test_every_command_in_the_readme_exists_with_its_options():
    lines = [line.split("#")[0] for block in readme_blocks("sh") for line in block.splitlines() if line.startswith("deixis ")]
    lines += re.findall(r"`(deixis \w+ [^`]*)`", (ROOT / "README.md").read_text())
    assert len(lines) > 5
    for line in lines:
        _, name, *rest = line.split()
        if name.startswith("-"):
            continue
        shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
        assert shown.exit_code == 0, line
        for word in rest:
            assert not word.startswith("--") or word in shown.output, line


def test_files_that_the_readme_names_exist():
    text = (ROOT / "README.md").read_text()
    named = set(re.findall(r"`((?:deixis|examples|docs)/[\w./-]*)`", text)) | set(re.findall(r"\]\(([\w./-]+)\)", text))
    missing = [name for name in named if not (ROOT / name).exists()]
    assert not missing
