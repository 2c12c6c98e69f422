"""docs/server-config.md agrees with the table of server settings. `OMNIGRAPH_UPDATE_GOLDEN=1` rewrites it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from omnigraph.cli.config_reference import END, START, settings_reference
from omnigraph.config import parse_config
from omnigraph.config_keys import SERVER, SERVER_SETTINGS
from omnigraph.server.deployment.settings import read_settings

PAGE = Path(__file__).parents[3] / "docs" / "server-config.md"


def test_table_of_settings_is_current():
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(START)
    held, after = rest.split(END)
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        PAGE.write_text(f"{before}{START}\n\n{settings_reference()}\n{END}{after}", encoding="utf-8")
    else:
        assert held.strip() == settings_reference().strip()


def test_every_setting_is_listed_once():
    keys = re.findall(r"^\| `(server\.[a-z_.]+)`", settings_reference(), re.MULTILINE)
    assert sorted(keys) == sorted(SERVER + setting.key for setting in SERVER_SETTINGS)


def test_every_description_is_a_sentence():
    for setting in SERVER_SETTINGS:
        assert re.fullmatch(r"[A-Z].*\.", setting.description), setting.key


def test_the_example_of_the_page_is_valid():
    example = re.search(r"(?s)```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"))
    assert example is not None
    config = parse_config(example[1], Path("omnigraph.yaml"))
    assert config.warnings == ()
    assert read_settings(config, {}).settings.limits.json_rows == 10_000
