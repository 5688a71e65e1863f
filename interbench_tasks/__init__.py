"""Interbench: how multimodal models behave when the exam talks back.

The names in `__all__` are what a plugin may import; anything else can change without notice.
"""

from interbench_tasks.errors import InterbenchError
from interbench_tasks.feedback_rounds import FeedbackRound
from interbench_tasks.hookspecs import (
    Backend,
    Call,
    EpisodeProtocol,
    FeedbackProvider,
    Memory,
    MemoryOptions,
    MetricSet,
    Notetaker,
    PanelRule,
    Parts,
    PatientVerifier,
    ProtocolFactory,
    Provider,
    RoleClient,
    Roles,
    TwoPassMetrics,
    TwoPassProtocol,
    Verifier,
    WeightedMetrics,
    hookimpl,
)
from interbench_tasks.prompts import render
from interbench_tasks.reasoning import said_in_the_end, without_reasoning
from interbench_tasks.records import (
    BranchEnd,
    Episode,
    EpisodeRecord,
    Extraction,
    Feedback,
    GenerationSettings,
    Judgement,
    Message,
    Notes,
    PictureRef,
    Reply,
    Turn,
    Usage,
    Verdict,
    history,
)
from interbench_tasks.report_parts import Chart, ReportRun, ReportTable, Section

__version__ = "0.1.0"

__all__ = [
    "Backend",
    "BranchEnd",
    "Call",
    "Chart",
    "Episode",
    "EpisodeProtocol",
    "EpisodeRecord",
    "Extraction",
    "Feedback",
    "FeedbackProvider",
    "FeedbackRound",
    "GenerationSettings",
    "InterbenchError",
    "Judgement",
    "Memory",
    "MemoryOptions",
    "Message",
    "MetricSet",
    "Notes",
    "Notetaker",
    "PanelRule",
    "Parts",
    "PatientVerifier",
    "PictureRef",
    "ProtocolFactory",
    "Provider",
    "Reply",
    "ReportRun",
    "ReportTable",
    "RoleClient",
    "Roles",
    "Section",
    "Turn",
    "TwoPassMetrics",
    "TwoPassProtocol",
    "Usage",
    "Verdict",
    "Verifier",
    "WeightedMetrics",
    "history",
    "hookimpl",
    "render",
    "said_in_the_end",
    "without_reasoning",
]
