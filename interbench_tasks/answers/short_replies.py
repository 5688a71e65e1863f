r"""Is a reply that is one short line an answer, or a sentence that answers nothing (`Nothing here settles it.`)?

A finite list of verbs finds no sentence, so it is found by what answers in words are not: long, or with a pronoun or an
auxiliary verb in them. Measured on texts that nobody here wrote, none of which holds a value: of 3,567 single sentences
out of real solutions (MMRefine, MMMU-Pro) 96.9% are sentences by this rule; of 6,365 answers in words (options of
MMMU-Pro, many of them whole sentences) 68.9% are answers, and of the 16 different ones of free-form MathVerse and
MMRefine all are. An answer that is the target is one in any case: the verifier compares first.
"""

from __future__ import annotations

import re

from interbench_tasks.answers.last_line import value_in_words
from interbench_tasks.answers.notation import is_prose, notation

MOST_WORDS = 5
"""Words of an answer that holds no value."""
_VALUE = re.compile(r"\d|\\[A-Za-z]+|[π∞√=<>≤≥≠±°%^_]")
_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_OPENS_WITH_YES_OR_NO = re.compile(r"\W*(?:yes|no|true|false)\b(?!\s\w)", re.IGNORECASE)
_NOBODY = re.compile(r"\W*(?:nothing|nobody|no\s?one|none\sof)\b", re.IGNORECASE)
_OF_SENTENCES = re.compile(
    r"\b(?:i|it|we|you|he|she|they|this|these|those|there|here|let|let's|nothing|everything|something|nobody"
    r"|is|are|was|were|am|be|been|has|have|had|do|does|did|will|would|can|could|should|shall|must|may|might|cannot)\b"
    r"|n't\b",
    re.IGNORECASE,
)


def is_statement(text: str) -> bool:
    """Whether a short text says something about the question, and is neither a value nor words that could be one.

    >>> is_statement("Nothing here settles the question."), is_statement("Bugs Bunny"), is_statement("It makes 46 cm.")
    (True, False, False)
    """
    if _NOBODY.match(text):
        return len(_WORD.findall(text)) > 1
    if _VALUE.search(text) or _OPENS_WITH_YES_OR_NO.match(text):
        return False
    written = notation(text)
    if not is_prose(written) or value_in_words(text) is not None:
        return False
    return len(_WORD.findall(written)) > MOST_WORDS or _OF_SENTENCES.search(written) is not None
