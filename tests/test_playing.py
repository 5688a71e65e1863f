"""What the bridge makes of the harness's command line and model."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from interbench_tasks.errors import HarnessError
from interbench_tasks.harness.playing import receiver_from
from tests.cli import run
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


@pytest.mark.parametrize(
    "kind", ["DistributedType.FSDP", "DistributedType.DEEPSPEED", "DistributedType.MEGATRON_LM", "FSDP"]
)
def test_models_whose_ranks_must_keep_in_step_are_refused(kind):
    with pytest.raises(HarnessError, match=r"ranks must all make the same number of calls(.|\n)*Serve the model"):
        receiver_from(model(accelerator=SimpleNamespace(distributed_type=kind)), args())


def test_data_parallel_ranks_are_welcome():
    accelerator = SimpleNamespace(distributed_type="DistributedType.MULTI_GPU")
    assert receiver_from(model(accelerator=accelerator), args()).batch_size == 3


@pytest.mark.parametrize(
    "model_args",
    [
        "model=m,tensor_parallel_size=2",
        "model=m,data_parallel_size=2",
        "model=m,tp_size=4",
        "pretrained=m,tp_plan=auto",
        "model=m,pipeline_parallel_size=2",
    ],
)
def test_one_model_over_several_ranks_is_refused_with_the_cure(monkeypatch, model_args):
    alone = receiver_from(model(), args(model_args))
    assert alone.name == "qwen2_5_vl:m"
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(
        HarnessError, match=r"over 2 ranks(.|\n)*Start one process, without torchrun(.|\n)*serve the model"
    ):
        receiver_from(model(), args(model_args))


def test_what_the_model_itself_says_of_its_gpus_counts_too(monkeypatch):
    """Called from Python there are no arguments to look at."""
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(HarnessError, match=r"tensor_parallel_size = 4 spreads one model over 4 ranks"):
        receiver_from(model(tensor_parallel_size=4), None)


@pytest.mark.parametrize("model_args", ["tensor_parallel_size=1", "tp=1,dp=1", "tp_plan=none", "device_map=auto", ""])
def test_ranks_with_a_model_each_are_welcome(monkeypatch, model_args):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert receiver_from(model(tensor_parallel_size=1), args(model_args)).batch_size == 3


def test_a_role_of_the_harness_is_refused_as_well(monkeypatch):
    from interbench_tasks.harness.playing import harness_model_from
    from interbench_tasks.records import GenerationSettings
    from interbench_tasks.role_words import role_words_from
    from interbench_tasks.task_roles import Role

    monkeypatch.setenv("WORLD_SIZE", "2")
    words = role_words_from("harness:dummy,tp_plan=auto")
    role = Role(words=words, settings=GenerationSettings(max_new_tokens=1, temperature=0.0), named_in="providers.0")
    with pytest.raises(HarnessError, match=r"tp_plan"):
        harness_model_from(role)


PARALLEL = r"""
import datetime, sys, time
import torch.distributed as dist
from lmms_eval.models.simple.vllm import VLLM

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=4))
lm = VLLM.__new__(VLLM)
lm._tp_world_size, lm._tp_rank_in_group, lm._tp_group_cpu = 2, dist.get_rank(), dist.group.WORLD
done = 0
try:
    for number in range(3 if dist.get_rank() == 0 else 1):
        assert lm._run_tp_synced([f"{dist.get_rank()}"], list) == [f"{dist.get_rank()}"]
        done += 1
    time.sleep(6 * dist.get_rank())  # rank 1 is there, and has no further call to make
except Exception as error:
    sys.stdout.write(f"rank {dist.get_rank()} made {done} calls, then: {type(error).__name__}\n")
    sys.stdout.flush()
"""


@pytest.mark.slow
def test_the_harness_s_tensor_parallel_ranks_do_wait_for_each_other(tmp_path):
    """Why they are refused: should the harness change, the refusal can go."""
    program = tmp_path / "parallel.py"
    program.write_text(PARALLEL)
    done = run(sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2", program, timeout_s=120)
    assert "rank 0 made 1 calls, then: RuntimeError" in done.output
