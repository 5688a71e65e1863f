"""A real local vision-language model (tiny, random) through the harness's own backend, in batches of four."""

from __future__ import annotations

import re
from typing import Any

import pytest
from PIL import Image

from tests.harness_fakes import evaluate, question_rows, records_of, write_task
from tests.tiny_vlm import save_tiny_vlm

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # the harness calls transformers in ways that warn
]
SIZES = [(28 * (2 + i), 28 * 2) for i in range(6)]


class ListeningProcessor:
    """The model's processor; remembers each batch, and puts a wrong answer where the random model has nonsense."""

    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self.batches: list[tuple[list[str], list[tuple[int, int]], Any]] = []
        self.decoded: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._processor, name)

    def __call__(self, *, text, images, **more):
        inputs = self._processor(text=text, images=images, **more)
        self.batches.append((list(text), [image.size for image in images], inputs))
        return inputs

    def batch_decode(self, ids, **more):
        self.decoded += self._processor.batch_decode(ids, **more)
        return ["Answer: A"] * len(ids)


def test_each_prompt_of_a_batch_holds_its_own_question_and_picture(tmp_path):
    from lmms_eval.models import get_model

    rows = question_rows(len(SIZES))
    for i, size in enumerate(SIZES):  # the size tells the pictures apart, before and after the processor
        Image.effect_noise(size, 80).convert("RGB").save(tmp_path / f"{i}.png")
        rows[i]["image"] = f"{i}.png"
    write_task(tmp_path, rows)
    model = get_model("qwen2_5_vl")(
        pretrained=str(save_tiny_vlm(tmp_path / "model")),
        device="cpu",
        device_map="cpu",
        batch_size=4,
        min_pixels=28 * 28,
    )
    listening = model.processor = ListeningProcessor(model.processor)
    results = evaluate(model, tmp_path, gen_kwargs="max_new_tokens=5")

    assert results["results"]["bridge_task"]["n_test,none"] == len(SIZES)
    assert len(listening.batches[0][0]) == 4
    assert len(listening.decoded) == 3 * len(SIZES)  # round 0, and one round in each of two arms
    for texts, sizes, inputs in listening.batches:
        assert len(texts) == len(sizes) == len(inputs["image_grid_thw"])
        for text, size, grid in zip(texts, sizes, inputs["image_grid_thw"].tolist(), strict=True):
            numbers = set(re.findall(r"number (\d+)", text))
            assert len(numbers) == 1
            number = int(numbers.pop())
            assert size == SIZES[number]
            assert (grid[2] * 14, grid[1] * 14) == SIZES[number]
            assert text.count("<|image_pad|>") == 1
    later = [text for texts, _, _ in listening.batches for text in texts if "is incorrect" in text]
    assert len(later) == 2 * len(SIZES)
    for text in later:
        assert re.findall(r"<\|im_start\|>(\w+)", text) == ["user", "assistant", "user", "assistant"]
        assert text.index("<|image_pad|>") < text.index("Answer: A<|im_end|>") < text.index("is incorrect")
    assert {turn["round"] for record in records_of(tmp_path) for turn in record["turns"]} == {0, 1}
