"""The report's section on people: there where labels are, absent where none are, and never in the way of other runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interbench_tasks.labels.sampling import Design
from interbench_tasks.labels.section import TITLE, people_section
from interbench_tasks.labels.store import LABELS
from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.report_parts import Chart, ReportRun, ReportTable
from interbench_tasks.runs.folder import MANIFEST, read_json
from tests.labelled_runs import critique_run, label_all

pytest.importorskip("ppi_py", reason="the extra `calibration` is not installed")


def shown(folder: Path, name: str) -> ReportRun:
    manifest = read_json(folder / MANIFEST)
    return ReportRun(
        name=name, folder=folder, task=manifest["task"], protocol=manifest["protocol"], manifest=manifest, metrics={}
    )


@pytest.fixture(scope="module")
def labelled(tmp_path_factory) -> Path:
    folder = critique_run(tmp_path_factory.mktemp("section") / "run")
    label_all(folder)
    return folder


@pytest.fixture(scope="module")
def section(labelled):
    return people_section([shown(labelled, "one")])


def texts(section) -> str:
    return " ".join(part for part in section.parts if isinstance(part, str))


def test_it_has_corrected_numbers_and_agreement_with_every_n(section):
    assert section.title == TITLE
    captions = [part.caption for part in section.parts if isinstance(part, ReportTable)]
    assert captions == [
        "Corrected by people's labels",
        "By each judge alone, by Dawid-Skene, and how many independent judges they are",
        "How far people and judges agree",
    ]
    corrected = next(part for part in section.parts if isinstance(part, ReportTable))
    assert corrected.columns[:4] == ("metric", "panel", "corrected", "shift")
    eda = dict(zip(corrected.columns, corrected.rows[0], strict=True))
    assert (eda["metric"], eda["n"], eda["labelled"]) == ("eda", "240", "120")
    assert re.fullmatch(r"\d+\.\d \[\d+\.\d, \d+\.\d\]", eda["corrected"])
    agreement = [part for part in section.parts if isinstance(part, ReportTable)][-1]
    assert agreement.columns[0] == "value, who"
    assert agreement.rows[0][0] == "detected, people with each other"
    assert "120 of 120 sampled replies are labelled" in texts(section)


def test_charts_show_the_panel_beside_the_corrected_numbers_with_a_text(section):
    charts = [part for part in section.parts if isinstance(part, Chart)]
    assert [chart.title for chart in charts] == [
        "Judges' numbers, and corrected by people (shares)",
        "Judges' numbers, and corrected by people (scores)",
    ]
    for chart in charts:
        assert chart.svg.startswith("<svg")
        assert "corrected" in chart.alt
        assert len(chart.table.rows) == 4


def test_rows_are_as_long_as_their_header(section):
    for part in section.parts:
        if isinstance(part, ReportTable):
            assert {len(row) for row in part.rows} == {len(part.columns)}


def test_runs_without_labels_have_no_section(tmp_path, labelled):
    bare = critique_run(tmp_path / "bare", 20)
    assert people_section([shown(bare, "bare")]) is None
    assert people_section([]) is None
    both = people_section([shown(bare, "bare"), shown(labelled, "one")])
    assert not any("bare" in part for part in both.parts if isinstance(part, str))


def test_several_runs_are_told_apart(tmp_path, labelled):
    other = critique_run(tmp_path / "other", 120)
    label_all(other)
    both = people_section([shown(labelled, "one"), shown(other, "two")])
    captions = [part.caption for part in both.parts if isinstance(part, ReportTable)]
    assert "Corrected by people's labels: one" in captions
    assert "Corrected by people's labels: two" in captions
    ids = [re.findall(r'\bid="([^"]+)"', part.svg) for part in both.parts if isinstance(part, Chart)]
    flat = [one for own in ids for one in own]
    assert len(flat) == len(set(flat))


def test_a_damaged_file_of_labels_is_named_and_the_other_run_is_shown(tmp_path, labelled):
    broken = critique_run(tmp_path / "broken", 60)
    label_all(broken, design=Design(n=30))
    (broken / LABELS).write_text("{")
    both = people_section([shown(broken, "broken"), shown(labelled, "one")])
    assert "broken: its labels cannot be used" in texts(both)
    assert "line 1: is no label" in texts(both)
    assert any(isinstance(part, Chart) for part in both.parts)


def test_the_section_is_offered_to_the_report(labelled):
    sections = offers_from(build_plugin_manager()).report_sections
    assert sections["people"]([shown(labelled, "one")]).title == TITLE
