"""A damaged or older run folder: what is readable is shown, the rest is named."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from interbench_tasks.errors import InterbenchError, RunFolderError
from interbench_tasks.record_json import line_from_record
from interbench_tasks.report.contents import report_from
from interbench_tasks.report.folders import content_from, report_folders
from interbench_tasks.runs.score import run_from_folder, score_folder
from tests.report_runs import OFFERS, loops, run_of_loops, talk, write_run


def read(folder):
    shown = []
    return content_from(folder, OFFERS, shown.append), shown


def lines_of(folder):
    return (folder / "episodes.jsonl").read_bytes().splitlines(keepends=True)


def write_lines(folder, lines):
    (folder / "episodes.jsonl").write_bytes(b"".join(lines))


def rewritten(folder, name, **changes):
    path = folder / name
    content = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))


def test_a_whole_folder_is_read_without_a_word(tmp_path):
    folder = run_of_loops(tmp_path / "run")
    metrics = score_folder(folder, OFFERS)
    content, shown = read(folder)
    assert content.problems == ()
    assert content.unfinished == ()
    assert (content.task, content.protocol, content.receiver) == ("loops", "feedback_loop", "pupil")
    assert (content.n_found, content.n_wanted, len(content.summaries), len(shown)) == (6, 6, 6, 6)
    assert {name: value.to_json() for name, value in content.metrics.items()} == metrics["metrics"]
    assert set(content.categories) == {"even", "odd"}
    assert content.headline[0] == "accuracy"


def test_numbers_are_computed_where_metrics_json_is_missing_or_too_old(tmp_path):
    folder = run_of_loops(tmp_path / "run")
    expected = run_from_folder(folder, OFFERS).metrics()["metrics"]
    content, _ = read(folder)
    assert {name: value.to_json() for name, value in content.metrics.items()} == expected
    assert content.problems == ()
    score_folder(folder, OFFERS)
    rewritten(folder, "metrics.json", episodes={"found": 2, "wanted": 6}, metrics={})
    content, _ = read(folder)
    assert {name: value.to_json() for name, value in content.metrics.items()} == expected
    assert "holds fewer episodes than are here; the numbers were computed again" in " ".join(content.problems)


def test_a_torn_last_line_is_named_and_the_others_are_shown(tmp_path):
    folder = run_of_loops(tmp_path / "run")
    lines = lines_of(folder)
    write_lines(folder, [*lines[:-1], lines[-1][: len(lines[-1]) // 2]])
    content, shown = read(folder)
    assert [obj["episode_id"] for obj in shown] == ["loop0", "loop1", "loop2", "loop3", "loop4"]
    (problem,) = content.problems
    assert problem.startswith("episodes.jsonl, line 6 cannot be read (it is torn, the run was stopped")
    assert content.unfinished
    assert content.unfinished[0].startswith("UNFINISHED: only 5 of 6 episodes are here")


@pytest.mark.parametrize(
    "line", [b"\xff\xfe\n", b"[1]\n", b"{}\n", b"[" * 100_000 + b"\n", b'{"episode_id": "x", "turns": 5}\n']
)
def test_a_line_that_is_no_episode_is_left_out(tmp_path, line):
    folder = run_of_loops(tmp_path / "run")
    write_lines(folder, [*lines_of(folder)[:2], line, *lines_of(folder)[2:]])
    from interbench_tasks.report.transcripts import Transcripts

    transcripts = Transcripts()
    content = content_from(folder, OFFERS, lambda obj: transcripts.add(0, obj))
    assert (content.n_found, len(transcripts)) == (6, 6)
    (problem,) = content.problems
    assert "episodes.jsonl, line 3 cannot be read" in problem


def test_many_damaged_lines_are_counted(tmp_path):
    folder = run_of_loops(tmp_path / "run")
    write_lines(folder, [*lines_of(folder), *[b"nothing\n"] * 10])
    content, _ = read(folder)
    assert len(content.problems) == 4
    assert content.problems[-1] == "7 more lines of episodes.jsonl cannot be read"


def test_an_episode_of_a_newer_version_is_shown_and_not_counted(tmp_path):
    folder = run_of_loops(tmp_path / "run")
    lines = lines_of(folder)
    newer = json.loads(lines[1]) | {"mood": "good"}
    write_lines(folder, [lines[0], json.dumps(newer).encode() + b"\n", *lines[2:]])
    content, shown = read(folder)
    assert len(shown) == 6
    assert len(content.summaries) == 5
    assert "1 episode is shown, but its numbers are not counted" in content.problems[0]
    assert "mood" in content.problems[0]


def test_the_last_line_of_an_episode_counts(tmp_path):
    folder = run_of_loops(tmp_path / "run")
    again = replace(loops()[0], passes=2, stop_reason="flip_played")
    write_lines(folder, [*lines_of(folder), (line_from_record(again) + "\n").encode()])
    _, shown = read(folder)
    assert len(shown) == 6
    assert [obj["stop_reason"] for obj in shown if obj["episode_id"] == "loop0"] == ["flip_played"]


@pytest.mark.parametrize("manifest", [None, "", "[]", "{", '{"protocol": 7}'])
def test_without_a_manifest_transcripts_and_stored_numbers_are_shown(tmp_path, manifest):
    folder = run_of_loops(tmp_path / "run")
    score_folder(folder, OFFERS)
    (folder / "manifest.json").unlink()
    if manifest is not None:
        (folder / "manifest.json").write_text(manifest)
    content, shown = read(folder)
    assert len(shown) == 6
    assert content.receiver == "pupil"
    assert content.metrics["accuracy"].n == 5
    assert any("manifest" in problem for problem in content.problems)


def test_without_manifest_and_metrics_the_transcripts_are_shown(tmp_path):
    folder = run_of_loops(tmp_path / "run")
    (folder / "manifest.json").unlink()
    content, shown = read(folder)
    assert len(shown) == 6
    assert content.metrics == {}
    assert content.unfinished == ("UNFINISHED, as far as the folder tells: 6 of ? episodes are here.",)
    assert "metrics.json is missing, and without the manifest" in " ".join(content.problems)


def test_an_unknown_protocol_is_named_and_its_stored_numbers_are_shown(tmp_path):
    folder = run_of_loops(tmp_path / "run")
    score_folder(folder, OFFERS)
    rewritten(folder, "manifest.json", protocol="debate", metrics="debate")
    content, shown = read(folder)
    assert len(shown) == 6
    assert content.metrics["accuracy"].value == pytest.approx(0.4)
    assert content.protocol == "debate"
    assert "not installed here or has changed" in content.problems[0]


def test_stored_numbers_that_cannot_be_read_are_computed_again(tmp_path):
    folder = run_of_loops(tmp_path / "run")
    for text in ("{", '{"metrics": {"accuracy": {"strange": 1}}, "episodes": {"found": 9}}', '{"metrics": 4}'):
        (folder / "metrics.json").write_text(text)
        content, _ = read(folder)
        assert content.metrics["accuracy"].n == 5
        assert "metrics.json cannot be read; the numbers were computed again" in " ".join(content.problems)


def test_usage_that_cannot_be_read_is_named(tmp_path):
    folder = run_of_loops(tmp_path / "run")
    (folder / "usage.json").write_text('{"roles": {"receiver": {}}}')
    content, _ = read(folder)
    assert content.usage is None
    assert "the usage cannot be read" in content.problems[0]


def test_a_file_that_cannot_be_opened_is_named_and_the_stored_numbers_are_shown(tmp_path):
    folder = run_of_loops(tmp_path / "run")
    score_folder(folder, OFFERS)
    (folder / "episodes.jsonl").unlink()
    (folder / "episodes.jsonl").mkdir()
    content, shown = read(folder)
    assert shown == []
    assert content.metrics["accuracy"].n == 5
    assert "episodes.jsonl: cannot be read" in content.problems[0]


def test_episodes_of_ranks_that_were_not_merged_are_read(tmp_path):
    folder = run_of_loops(tmp_path / "run")
    lines = lines_of(folder)
    (folder / "episodes.jsonl").unlink()
    for rank in (0, 1):
        (folder / f"episodes-rank{rank}.jsonl").write_bytes(b"".join(lines[rank::2]))
    content, shown = read(folder)
    assert len(shown) == 6
    assert [summary["doc_id"] for summary in content.summaries] == [0, 1, 2, 3, 4, 5]


def test_folders_are_found_by_any_of_their_files(tmp_path):
    for name, file in (
        ("a", "manifest.json"),
        ("b", "episodes.jsonl"),
        ("c", "metrics.json"),
        ("d", "episodes-rank1.jsonl"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("{}")
    assert [folder.name for folder in report_folders(tmp_path)] == ["a", "b", "c", "d"]
    for wrong, why in ((tmp_path / "nowhere", "there is no such folder"), (tmp_path / "e", "holds no run")):
        if wrong.name == "e":
            wrong.mkdir()
        with pytest.raises(RunFolderError, match=why):
            report_folders(wrong)


# --- several runs -------------------------------------------------------------------------------------------------


def test_runs_have_names_that_tell_them_apart(tmp_path):
    run_of_loops(tmp_path / "1", receiver="one")
    run_of_loops(tmp_path / "2", receiver="two")
    run_of_loops(tmp_path / "3", receiver="two")
    write_run(tmp_path / "4", [talk()], receiver="two", task="talks")
    report = report_from([tmp_path], OFFERS)
    assert [run.name for run in report.runs] == ["one", "two (2)", "two (3)", "two (talks)"]
    assert [main.task for main in report.main] == ["loops", "talks"]
    assert report.main[0].runs == ("one", "two (2)", "two (3)")


def test_runs_of_one_model_are_named_by_their_tasks(tmp_path):
    run_of_loops(tmp_path / "1", receiver="one")
    write_run(tmp_path / "2", [talk()], receiver="one", task="talks")
    assert [run.name for run in report_from([tmp_path], OFFERS).runs] == ["loops", "talks"]


def test_a_run_that_never_began_is_named_and_the_others_are_shown(tmp_path):
    run_of_loops(tmp_path / "1")
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "manifest.json").write_text('{"task": "loops"}')
    report = report_from([tmp_path], OFFERS)
    assert len(report.runs) == 1
    assert "is left out, it holds nothing to show" in report.problems[0]
    with pytest.raises(RunFolderError, match="nothing to show"):
        report_from([tmp_path / "2"], OFFERS)


def test_a_folder_named_twice_is_refused(tmp_path):
    folder = run_of_loops(tmp_path / "1")
    with pytest.raises(InterbenchError, match="is named twice"):
        report_from([folder, tmp_path], OFFERS)
