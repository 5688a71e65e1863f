"""The sample on a desk: what people hand in becomes labels, a third one is asked where two differ, nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from interbench_tasks.cli import app
from interbench_tasks.errors import RefusedError
from interbench_tasks.labels.items import label_run
from interbench_tasks.labels.judging import DESK, Collector, JudgingDesk
from interbench_tasks.labels.opinions import labelled_run
from interbench_tasks.labels.sampling import Design, drawn, keep_sample
from interbench_tasks.labels.store import LABELS, Label, add_labels, read_labels
from interbench_tasks.people.desk import Desk
from interbench_tasks.people.forms import own_forms
from interbench_tasks.people.judging_form import HAND_IN, KIND
from interbench_tasks.people_page.app import Page
from interbench_tasks.people_page.door import Door, allowed_hosts
from tests.critiques import YES, record
from tests.labelled_runs import critique_manifest, critique_run, talk_run, with_pictures, write_run

YES_TEXTS = {"detected": "yes", "diag": "2", "strategy": "refusal", "strategy_score": "1"}
NO_TEXTS = {"detected": "no"}


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Judged:
    """A run with a sample on a desk."""

    def __init__(self, folder: Path, *, n: int = 20, annotators: int = 2, grace_s: float = 0.0) -> None:
        self.folder = folder
        self.clock = Clock()
        self.grace_s = grace_s
        run = label_run(folder)
        if not (folder / "sample.json").exists():
            design = Design(n=n, annotators=annotators, strata="none")
            keep_sample(folder, drawn(run, design), labelled=())
        self.desk = Desk(folder / DESK, clock=self.clock)
        self.judging = self.opened()
        self.n_laid = self.judging.lay()

    def opened(self) -> JudgingDesk:
        return JudgingDesk(labelled_run(self.folder), self.desk, grace_s=self.grace_s)

    @property
    def items(self) -> list[str]:
        return [item.id for item in self.desk.items(KIND)]

    def say(self, item: str, annotator: str, texts=YES_TEXTS) -> None:
        self.desk.submit(item, annotator, {"action": HAND_IN, **texts}, 7.25)

    def labels(self) -> list[tuple[str, str]]:
        return [(label.item, label.annotator) for label in read_labels(self.folder)]


@pytest.fixture
def judged(tmp_path):
    one = Judged(critique_run(tmp_path, 60))
    yield one
    one.desk.close()


# --- on the desk ------------------------------------------------------------------------------------------------------


def test_the_whole_sample_is_laid_for_two_people_each(judged):
    assert judged.n_laid == 20
    assert [item.needs for item in judged.desk.items(KIND)] == [2] * 20
    assert judged.items == list(labelled_run(judged.folder).items)
    assert judged.desk.counts("anybody").for_you == 20


def test_nobody_is_shown_a_verdict_or_a_models_name(judged):
    shown = json.dumps([dict(item.payload) for item in judged.desk.items(KIND)])
    assert "secret-model" not in shown
    assert set(judged.desk.items(KIND)[0].payload) == {
        "task", "number", "what", "question", "excerpt", "reference", "reply", "pictures", "missing", "fields"
    }  # fmt: skip


def test_keys_are_y_and_n_and_digits(judged):
    fields = judged.desk.items(KIND)[0].payload["fields"]
    assert [choice["key"] for choice in fields[0]["choices"]] == ["y", "n"]
    assert [choice["key"] for choice in fields[1]["choices"]] == ["0", "1", "2"]
    assert [choice["key"] for choice in fields[2]["choices"]] == ["c", "l", "r", "o"]
    assert fields[3]["only_if"] == {"detected": ["yes"], "strategy": ["correction", "clarification", "refusal"]}


def test_scores_have_the_bands_beside_them(tmp_path):
    one = Judged(talk_run(tmp_path, 20), n=15)
    (field,) = one.desk.items(KIND)[0].payload["fields"]
    help_of = {choice["value"]: choice["help"] for choice in field["choices"]}
    assert list(help_of) == ["0", "1", "2", "3", "4", "5"]
    assert help_of["3"] == help_of["4"] != help_of["5"]
    assert "(4)" in help_of["4"]
    one.desk.close()


def test_pictures_that_the_run_keeps_are_shown_and_others_said_to_be_missing(tmp_path):
    rows = [with_pictures(record(number, [YES] * 3), 1, 2) for number in range(6)]
    folder = write_run(tmp_path, rows, critique_manifest())
    (folder / "pictures").mkdir()
    (folder / "pictures" / f"{1:032x}.webp").write_bytes(b"RIFF")
    one = Judged(folder, n=6)
    payload = one.desk.items(KIND)[0].payload
    assert payload["pictures"] == [f"{1:032x}"]
    assert payload["missing"] == ["40x30 pixels"]
    kept = one.desk.picture(f"{1:032x}")
    assert (kept.mime, kept.data) == ("image/webp", b"RIFF")
    one.desk.close()


def test_who_labelled_on_paper_counts(tmp_path):
    folder = critique_run(tmp_path, 60)
    sample = drawn(label_run(folder), Design(n=20, strata="none"))
    keep_sample(folder, sample, labelled=())
    first, second, third = sample.items[:3]
    add_labels(folder, [Label(item=first, annotator="p1", values=NO_TEXTS, source="csv")])
    add_labels(folder, [Label(item=second, annotator=p, values=NO_TEXTS, source="csv") for p in ("p1", "p2")])
    add_labels(folder, [Label(item=third, annotator="p1", values=NO_TEXTS, source="csv")])
    add_labels(folder, [Label(item=third, annotator="p2", values=YES_TEXTS, source="csv")])
    one = Judged(folder)
    needs = {item.id: item.needs for item in one.desk.items(KIND)}
    assert needs[first] == 1
    assert second not in needs
    assert needs[third] == 1, "two differ on paper: a third person at the page"
    one.desk.close()


# --- back into labels -------------------------------------------------------------------------------------------------


def test_two_people_who_agree_give_two_labels_with_their_time(judged):
    item = judged.items[0]
    judged.say(item, "p1")
    assert judged.judging.collect() == 0
    judged.say(item, "p2")
    assert judged.judging.collect() == 2
    labels = read_labels(judged.folder)
    assert [(label.annotator, label.source, label.seconds) for label in labels] == [
        ("p1", "page", 7.2),
        ("p2", "page", 7.2),
    ]
    assert dict(labels[0].values) == YES_TEXTS
    assert judged.judging.collect() == 0


def test_what_was_chosen_and_is_not_asked_is_no_part_of_the_label(judged):
    for name in ("p1", "p2"):
        judged.say(judged.items[0], name, {**YES_TEXTS, "detected": "no"})
    judged.judging.collect()
    assert [dict(label.values) for label in read_labels(judged.folder)] == [NO_TEXTS] * 2


def test_where_two_differ_a_third_is_asked_by_itself(judged):
    item = judged.items[0]
    judged.say(item, "p1")
    judged.say(item, "p2", NO_TEXTS)
    assert judged.judging.collect() == 0
    assert judged.desk.item(item).needs == 3
    assert judged.desk.standing(item, "p3").state == "free"
    assert judged.desk.standing(item, "p1").state == "answered_by_you"
    judged.say(item, "p3", NO_TEXTS)
    assert judged.judging.collect() == 3
    one = labelled_run(judged.folder)
    assert one.items[item].people == {"detected": 0.0}
    assert one.disagreed == ()


def test_a_third_is_asked_where_paper_and_page_differ(tmp_path):
    folder = critique_run(tmp_path, 60)
    sample = drawn(label_run(folder), Design(n=20, strata="none"))
    keep_sample(folder, sample, labelled=())
    add_labels(folder, [Label(item=sample.items[0], annotator="p1", values=NO_TEXTS, source="csv")])
    one = Judged(folder)
    one.say(sample.items[0], "p2")
    assert one.judging.collect() == 0
    assert one.desk.item(sample.items[0]).needs == 2
    one.say(sample.items[0], "p3")
    assert one.judging.collect() == 2
    assert labelled_run(folder).items[sample.items[0]].people["detected"] == 1.0
    one.desk.close()


def test_it_can_be_undone_until_its_time_is_over(tmp_path):
    one = Judged(critique_run(tmp_path, 60), grace_s=10)
    item = one.items[0]
    one.say(item, "p1")
    one.say(item, "p2")
    assert one.judging.collect() == 0
    one.desk.undo("p2")
    one.say(item, "p2", YES_TEXTS | {"diag": "2"})
    one.clock.now += 11
    assert one.judging.collect() == 2
    with pytest.raises(RefusedError, match="cannot be undone any more"):
        one.desk.undo("p2")
    one.desk.close()


def test_when_the_page_closes_single_judgements_are_kept_too_and_it_goes_on_later(judged):
    first, second = judged.items[:2]
    judged.say(first, "p1")
    judged.say(second, "p1")
    judged.say(second, "p2", NO_TEXTS)
    assert judged.judging.collect(all_there_is=True) == 3
    again = judged.opened()
    again.lay()
    assert judged.desk.item(first).needs == 2
    judged.say(first, "p2")
    assert again.collect() == 1
    assert judged.desk.item(second).needs == 3
    judged.say(second, "p3")
    assert again.collect() == 1
    assert again.problems == []
    assert len(judged.labels()) == 5


def test_a_killed_page_loses_nothing(judged):
    for item in judged.items[:5]:
        judged.say(item, "p1")
        judged.say(item, "p2")
    judged.desk.close()
    assert not (judged.folder / LABELS).exists()
    one = Judged(judged.folder)
    with Collector(one.judging, lambda told: None):
        pass
    assert len(read_labels(judged.folder)) == 10
    one.desk.close()


def test_what_was_taken_and_not_written_by_a_page_that_was_killed_is_written_by_the_next(judged):
    item = judged.items[0]
    judged.say(item, "p1")
    judged.say(item, "p2")
    judged.desk.take([item])  # and killed before the labels were written
    with Collector(judged.opened(), lambda told: None):
        assert judged.labels() == [(item, "p1"), (item, "p2")]


def test_what_became_a_label_when_the_page_closed_cannot_be_undone_later(judged):
    item = judged.items[0]
    judged.say(item, "p1")
    judged.judging.collect(all_there_is=True)
    again = judged.opened()
    again.lay()
    assert judged.desk.last_submission("p1") is None
    with pytest.raises(RefusedError, match="cannot be undone any more"):
        judged.desk.undo("p1")
    judged.say(judged.items[1], "p1")
    judged.desk.undo("p1")
    judged.say(item, "p2")
    again.collect()
    assert again.problems == []
    assert judged.labels() == [(item, "p1"), (item, "p2")]


def test_a_lost_desk_does_not_ask_again_what_is_labelled(judged, tmp_path):
    for name in ("p1", "p2"):
        judged.say(judged.items[0], name)
    judged.judging.collect()
    done = judged.items[0]
    judged.desk.close()
    for file in judged.folder.glob(f"{DESK}*"):
        file.unlink()
    one = Judged(judged.folder)
    assert one.n_laid == 19
    assert done not in one.items
    one.desk.close()


def test_somebody_who_says_something_else_than_on_paper_is_told_and_the_first_label_stays(judged):
    item = judged.items[0]
    add_labels(judged.folder, [Label(item=item, annotator="p1", values=NO_TEXTS, source="csv")])
    judged.say(item, "p1")
    judged.say(item, "p2")
    assert judged.judging.collect() == 1
    assert "p1 has labelled" in judged.judging.problems[0]
    assert dict(read_labels(judged.folder)[0].values) == NO_TEXTS


def test_a_full_disk_is_told_once_and_what_people_did_stays_on_the_desk(judged):
    item = judged.items[0]
    (judged.folder / LABELS).mkdir()
    told: list[str] = []
    with Collector(judged.judging, told.append):
        judged.say(item, "p1")
        judged.say(item, "p2")
    assert len(told) == 1
    assert LABELS in told[0]
    (judged.folder / LABELS).rmdir()
    assert judged.judging.collect(all_there_is=True) == 2


def test_conversations_are_scored_and_points_two_apart_need_a_third(tmp_path):
    one = Judged(talk_run(tmp_path, 20), n=15)
    near, far = one.items[:2]
    for item, scores in ((near, ("3", "4")), (far, ("1", "4"))):
        for name, score in zip(("p1", "p2"), scores, strict=True):
            one.say(item, name, {"score": score})
    assert one.judging.collect() == 2
    assert one.desk.item(far).needs == 3
    assert labelled_run(one.folder).items[near].people == {"score": 3.5}
    one.desk.close()


# --- at the page ------------------------------------------------------------------------------------------------------


def enter(desk: Desk, name: str) -> TestClient:
    door = Door(hosts=allowed_hosts("testserver"))
    client = TestClient(Page(desk, own_forms(), door).app(), base_url="http://testserver", follow_redirects=True)
    client.get(f"/enter?token={door.new_token()}")
    text = client.get("/").text
    client.post("/name", data={"csrf": csrf_of(text), "annotator": name})
    return client


def csrf_of(text: str) -> str:
    return text.split('name="csrf" value="')[1].split('"')[0]


def test_a_reply_with_html_is_shown_as_text_and_judged_at_the_page(tmp_path):
    rows = [record(number, [YES] * 3, text="<script>alert(1)</script> No scale.") for number in range(6)]
    one = Judged(write_run(tmp_path, rows, critique_manifest()), n=6, annotators=1)
    client = enter(one.desk, "p1")
    shown = client.get("/next")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; No scale." in shown.text
    assert 'data-key="y"' in shown.text
    item = str(shown.url).rsplit("/", 1)[1].split("?")[0]
    bad = client.post(f"/item/{item}", data={"csrf": csrf_of(shown.text), "action": HAND_IN, "field.detected": "yes"})
    assert bad.status_code == 422
    assert "How well does it name the cause? Nothing was chosen." in bad.text
    sent = {f"field.{name}": value for name, value in YES_TEXTS.items()}
    good = client.post(f"/item/{item}", data={"csrf": csrf_of(bad.text), "action": HAND_IN, **sent})
    assert good.status_code == 200
    assert one.judging.collect() == 1
    assert one.labels() == [(item, "p1")]
    one.desk.close()


def test_in_a_terminal_the_same_sample_is_judged(tmp_path):
    folder = critique_run(tmp_path, 20)
    words = ["serve", folder, "--judge", "--terminal", "--annotator", "p1"]
    result = CliRunner().invoke(app, list(map(str, words)), input="n\n\n\n\n" * 2)
    assert result.exit_code == 0, result.output
    assert "drew 20 replies (seed 0)" in result.output
    assert "20 of 20 sampled replies are on the desk" in result.output
    assert "2 of 20 sampled replies have a label; then: interbench people calibrate" in result.output
    assert [label.annotator for label in read_labels(folder)] == ["p1", "p1"]
