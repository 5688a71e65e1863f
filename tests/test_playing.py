"""What the bridge makes of the harness's command line and model."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from interbench_tasks.errors import HarnessError
from interbench_tasks.harness.playing import receiver_from
from tests.harness_fakes import ChatModel

pytestmark = pytest.mark.integration


def model(**attributes) -> ChatModel:
    made = ChatModel(lambda conversation: "x", batch_size=3)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def args(model_args: str = "", name: str = "qwen2_5_vl") -> SimpleNamespace:
    return SimpleNamespace(model=name, model_args=model_args)


def test_the_receiver_is_named_after_model_and_weights():
    assert receiver_from(model(), args("pretrained=Qwen/Qwen2.5-VL-7B-Instruct,device_map=auto")).name == (
        "qwen2_5_vl:Qwen/Qwen2.5-VL-7B-Instruct"
    )
    assert receiver_from(model(), None).name == "ChatModel"
    assert receiver_from(model(), args()).batch_size == 3


def test_a_new_checkpoint_in_the_same_folder_is_another_model(tmp_path):
    """Else it would be given the replies of the old one out of the ledger."""
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"old")
    before = receiver_from(model(), args(f"pretrained={tmp_path}")).fingerprint
    assert receiver_from(model(), args(f"pretrained={tmp_path}")).fingerprint == before
    weights.write_bytes(b"newer")
    assert receiver_from(model(), args(f"pretrained={tmp_path}")).fingerprint != before


def test_model_arguments_are_part_of_the_fingerprint_and_keys_are_not_in_it():
    one = receiver_from(model(), args("pretrained=a,api_key=sk-test-0123456789abcdef")).fingerprint
    assert one != receiver_from(model(), args("pretrained=b")).fingerprint
    assert "0123456789abcdef" not in one


@pytest.mark.parametrize("kind", ["DistributedType.FSDP", "DistributedType.DEEPSPEED"])
def test_models_whose_ranks_must_keep_in_step_are_refused(kind):
    with pytest.raises(HarnessError, match=r"ranks must all make the same number of calls(.|\n)*Serve the model"):
        receiver_from(model(accelerator=SimpleNamespace(distributed_type=kind)), args())


def test_data_parallel_ranks_are_welcome():
    accelerator = SimpleNamespace(distributed_type="DistributedType.MULTI_GPU")
    assert receiver_from(model(accelerator=accelerator), args()).batch_size == 3
