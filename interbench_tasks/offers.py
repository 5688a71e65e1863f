"""What the core itself offers; found by the entry point `core`, like any plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interbench_tasks.backends.anthropic import AnthropicBackend
from interbench_tasks.backends.human import HumanBackend
from interbench_tasks.backends.openai import OpenAIBackend
from interbench_tasks.backends.simulated import SimulatedBackend
from interbench_tasks.hookspecs import Backend, MetricSet, ProtocolFactory, Verifier, hookimpl
from interbench_tasks.metrics.interfeedback import FeedbackLoopMetrics
from interbench_tasks.metrics.mmpcbench import CritiqueMetrics
from interbench_tasks.protocols.conversation import Conversation
from interbench_tasks.protocols.critique import Critique
from interbench_tasks.protocols.feedback_loop import FeedbackLoop
from interbench_tasks.report_parts import ReportRun, Section


@hookimpl
def interbench_backends() -> Mapping[str, Callable[..., Backend]]:
    """OpenAI-compatible servers, Anthropic's API, people, and the simulation."""
    return {
        "anthropic": AnthropicBackend,
        "human": HumanBackend,
        "openai": OpenAIBackend,
        "simulated": SimulatedBackend,
    }


@hookimpl
def interbench_protocols() -> Mapping[str, ProtocolFactory]:
    """The scripts of episodes."""
    return {"conversation": Conversation, "critique": Critique, "feedback_loop": FeedbackLoop}


@hookimpl
def interbench_verifiers() -> Mapping[str, Callable[[], Verifier]]:
    """Readers of answers; loaded when a run makes one, because their many patterns take a tenth of a second."""
    return {"choice": _choice, "choice_or_exact": _choice_or_exact, "choice_or_math": _choice_or_math}


@hookimpl
def interbench_metrics() -> Mapping[str, Callable[..., MetricSet]]:
    """Metric sets, by the name that a protocol asks for."""
    return {"feedback_loop": FeedbackLoopMetrics, "mmpcbench": CritiqueMetrics, "mmrc": _mmrc}


def _mmrc(options: Any) -> MetricSet:  # noqa: ANN401 - the protocol's own options
    from interbench_tasks.metrics.mmrc import ConversationMetrics  # reads replies, with as many patterns

    return ConversationMetrics(options)


@hookimpl
def interbench_report_sections() -> Mapping[str, Callable[[Sequence[ReportRun]], Section | None]]:
    """Charts of the three benchmarks, of judges and of people; loaded when a report is made, because they draw."""
    return {
        "interfeedback": _interfeedback,
        "mmrc": _mmrc_charts,
        "mmpcbench": _mmpcbench,
        "judges": _judges,
        "people": _people,
    }


def _interfeedback(runs: Sequence[ReportRun]) -> Section | None:
    from interbench_tasks.report.sections_interfeedback import interfeedback_section

    return interfeedback_section(runs)


def _mmrc_charts(runs: Sequence[ReportRun]) -> Section | None:
    from interbench_tasks.report.sections_mmrc import mmrc_section

    return mmrc_section(runs)


def _mmpcbench(runs: Sequence[ReportRun]) -> Section | None:
    from interbench_tasks.report.sections_mmpcbench import mmpcbench_section

    return mmpcbench_section(runs)


def _judges(runs: Sequence[ReportRun]) -> Section | None:
    from interbench_tasks.report.sections_agreement import agreement_section

    return agreement_section(runs)


def _people(runs: Sequence[ReportRun]) -> Section | None:
    from interbench_tasks.labels.section import people_section

    return people_section(runs)


def _choice() -> Verifier:
    from interbench_tasks.answers import ChoiceVerifier

    return ChoiceVerifier()


def _choice_or_exact() -> Verifier:
    from interbench_tasks.answers import ChoiceOrExactVerifier

    return ChoiceOrExactVerifier()


def _choice_or_math() -> Verifier:
    from interbench_tasks.answers import ChoiceOrMathVerifier

    return ChoiceOrMathVerifier()
