"""What is shipped: the wheel, built from a copy of the source, in an environment in which there is
nothing but it and what it needs.
"""

import configparser
import email
import importlib.metadata
import importlib.util
import json
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
ROOMS = ("actors", "runtime")


def call(*command, **options):
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def builder_is_here():
    """Whether the wheel can be built with what is installed, and without a network."""
    try:
        return int(importlib.metadata.version("setuptools").split(".")[0]) >= 75
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy, so that nothing that lies about in the source tree gets into it, and
    nothing is left there.
    """
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for folder in ("api", *ROOMS, "tests"):
        shutil.copytree(
            ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    isolation = ["--no-isolation"] if builder_is_here() else []
    call(sys.executable, "-m", "build", "--wheel", *isolation, "--outdir", out, source)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of an environment that has the wheel, and what it says that it needs, from
    the environment of this test.
    """
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False, symlinks=True)
    interpreter = place / "bin" / "python"
    packages = Path(
        call(interpreter, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    )
    call(
        sys.executable,
        "-m",
        "pip",
        "--python",
        interpreter,
        "install",
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
        wheel,
    )
    for name in needed(wheel):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files if file.parts[0] != ".."}:
            (packages / top).symlink_to(distribution.locate_file(top))
    return interpreter


def metadata_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_string(archive.read(name).decode())


def needed(wheel):
    """The distributions that it needs without any extra."""
    return [
        line.split(">")[0].split("<")[0].strip()
        for line in metadata_of(wheel).get_all("Requires-Dist", [])
        if "extra ==" not in line
    ]


def test_the_wheel_has_the_three_packages_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    modules = {
        f"offbook/{path.relative_to(ROOT)}"
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
    }
    assert {name for name in names if name.endswith(".py")} == {
        "offbook/__init__.py",
        "offbook/agents_sdk.py",
        *modules,
    }
    assert {"offbook/py.typed", *(f"offbook/{room}/py.typed" for room in ROOMS)} <= set(names)
    page = {
        f"offbook/{path.relative_to(ROOT)}"
        for path in (ROOT / "runtime" / "console" / "static").iterdir()
    }
    assert page
    assert {name for name in names if "/static/" in name} == page
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"offbook"}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_wheel_says_what_it_is_and_what_it_needs(wheel):
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    metadata = metadata_of(wheel)
    assert metadata["Name"] == "offbook"
    assert metadata["Version"] == setup["metadata"]["version"]
    assert metadata["Requires-Python"] == setup["options"]["python_requires"]
    assert "pykka" in needed(wheel)
    assert metadata["Author"] == setup["metadata"]["author"]
    assert "Apache-2.0" in (metadata["License"], metadata["License-Expression"])
    assert {extra.lower() for extra in metadata.get_all("Provides-Extra")} == set(
        setup["options.extras_require"]
    )
    assert metadata.get_payload().strip() == (ROOT / "README.md").read_text().strip()
    assert wheel.name.endswith("-py3-none-any.whl")


def test_what_is_installed_is_typed_and_works(python, tmp_path):
    program = """if True:
        import asyncio, importlib.resources, importlib.util, json
        import offbook.actors, offbook.runtime
        from offbook.runtime import Actor, ActorSystem

        class Echo(Actor):
            def on_receive(self, message):
                return message

        async def main():
            async with ActorSystem() as system:
                return await system.spawn(Echo).request("hello")

        print(json.dumps({
            "reply": asyncio.run(main()),
            "files": [offbook.__file__, offbook.actors.__file__, offbook.runtime.__file__],
            "typed": [importlib.resources.files(room).joinpath("py.typed").is_file() for room in (offbook, offbook.actors, offbook.runtime)],
            "generic": [name for name in ("api", "actors", "runtime", "tests", "benchmarks", "examples") if importlib.util.find_spec(name)],
            "version": offbook.runtime.__version__,
        }))
    """
    found = json.loads(call(python, "-I", "-W", "error", "-c", program, cwd=tmp_path))
    assert found["reply"] == "hello"
    assert all(str(python.parents[1]) in file for file in found["files"])
    assert found["typed"] == [True, True, True]
    assert found["generic"] == []
    assert found["version"] == importlib.metadata.version("offbook")


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="the checker is not installed")
def test_a_users_types_are_checked_against_what_is_installed(python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from offbook import Actor, ActorRef, ActorSystem\n"
        "class Echo(Actor):\n"
        "    def on_receive(self, message: object) -> object:\n"
        "        return message\n"
        "async def main() -> None:\n"
        "    async with ActorSystem() as system:\n"
        "        ref = system.spawn(Echo)\n"
        "        reveal_type(ref)\n"
        "        wrong: int = ref\n"
    )
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        python,
        "--cache-dir",
        tmp_path / "cache",
        program,
    ]
    said = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=300
    ).stdout
    assert 'Revealed type is "offbook.runtime.actor.ref.ActorRef[program.Echo]"' in said
    assert 'expression has type "ActorRef[Echo]", variable has type "int"' in said
    assert "Found 1 error in 1 file" in said
