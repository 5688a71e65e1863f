"""Whether a reply declines to answer because nothing it was told holds the answer."""

from __future__ import annotations

import re

from interbench_tasks.reasoning import said_in_the_end

_NOT = r"(?:not|n[\u2019']t|never|nowhere)"
_TOLD = (
    r"(?:mention(?:ed|s|ing)?|sa(?:y|ys|id)|specif(?:y|ies|ied)|stat(?:e|es|ed)|discuss(?:ed|es)?|provid(?:e|es|ed)"
    r"|contain(?:s|ed)?|includ(?:e|es|ed)|talk(?:ed)?|t(?:ell|ells|old)|g(?:ive|ives|iven)|cover(?:ed|s)?|reveal(?:ed|s)?"
    r"|disclos(?:e|es|ed)|shar(?:e|es|ed)|indicat(?:e|es|ed)|describ(?:e|es|ed)|c[ao]me\s+up|brought\s+up|refer(?:red|s)?"
    r"|record(?:ed)?|shown?|list(?:ed)?)"
)
_ABLE = (
    r"(?:answer(?:ed)?|determin(?:e|ed)|tell|say|find|provide|know|identif(?:y|ied)|see|give|confirm|recall|remember"
    r"|infer(?:red)?|deduc(?:e|ed)|help\s+with|comment|be\s+(?:answered|determined|known|inferred|sure))"
)
_DECLINES = re.compile(
    rf"""
    \b(?:can|could|would|am|are|is|was|were|do|does|did|has|have|had|will)(?:\s+|(?=n)){_NOT}\b
        (?:\s+[\w'\u2019]+){{0,6}}?\s+(?:{_ABLE}|{_TOLD})\b
    | \b(?:cannot|ca[n]['\u2019]t|won['\u2019]t)\b(?:\s+[\w'\u2019]+){{0,4}}?\s+{_ABLE}\b
    | \b(?:unable|impossible|not\s+able|not\s+possible)\s+to\s+{_ABLE}\b
    | \b(?:never|nowhere|not)\s+(?:\w+\s+){{0,3}}?{_TOLD}\b
    | \bno(?:thing|body)?\s+(?:\w+\s+){{0,4}}?(?:was|were|is|been|ever)\s+{_TOLD}\b
    | \bno(?:t\s+(?:any|enough|sufficient))?\s+(?:\w+\s+){{0,3}}?(?:information|mention|record|details?|indication|data
        |references?|evidence|context|knowledge|idea|clue|memory|recollection)\b
    | \b(?:do|does|did|have|has)\s*{_NOT}\s+(?:\w+\s+){{0,2}}?(?:know|recall|remember)\b
    | \b(?:i|(?:conversation|chat|dialogue|discussion|history|messages?|context)(?:\s+\w+)?)\s+
        (?:\w+\s+)?(?:do|does|did|have|has)\s*{_NOT}\s+(?:\w+\s+){{0,2}}?(?:have|hold)\b
    | (?:^|[,.;:!]\s*)(?:do|does)\s*{_NOT}\s+(?:\w+\s+)?have\b
    | \b(?:do|does|did)\s*{_NOT}\s+have\s+(?:\w+\s+){{0,3}}?
        (?:information|mention|record|details?|data|references?|context)\b
    | \b(?:insufficient|lack(?:s|ing)?(?:\s+of)?)\s+(?:\w+\s+){{0,2}}?(?:information|details?|context|data)\b
    | \b(?:unanswerable|unspecified|undisclosed|not\s+(?:known|available|part\s+of))\b
    | \b(?:i\s+am|i['\u2019]m|it\s+is|it['\u2019]s)\s+not\s+(?:sure|certain|clear)\b
    | \bthere\s+(?:is|was|were|are)\s+no\s+(?:\w+\s+){{0,4}}?(?:in|of|about)\s+(?:\w+\s+){{0,2}}?
        (?:conversation|chat|discussion|pictures?|images?|history)\b
    | 没有(?:提到|提及|说明|说过|相关|信息|讨论)|未(?:提到|提及|说明)|无法(?:回答|确定|得知|判断)|不(?:知道|清楚|确定)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_GUESSES = re.compile(
    r"\b(?:guess(?:ing)?|probabl[ey]|likely|perhaps|maybe|presumably|possibly|assum(?:e|ing|ption)|suppose"
    r"|i(?:'d|\u2019d| would)?\s+(?:think|believe|say|imagine|estimate)"
    r"|(?:might|may|could|must|should)\s+(?:well\s+)?(?:be|have)"
    r"|seems?\s+to|appears?\s+to|it\s+looks\s+like|(?:my|the)\s+answer\s+is|the\s+answer\s+(?:would|could)\s+be"
    r"|(?:around|about|approximately|roughly)\s+\W?\d|but\s+(?:(?:it|that)\s+(?:is|was|cost)\s+)?\W?\d+)\b|可能|大概|应该是|猜",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"\s*(?:sorry|i['\u2019]m\s|i\s+am\s|i\s+apologi|unfortunately|based\s+on|according\s+to|from\s|in\s|as\s|looking|after"
    r"|having|given|while|although|there|well|hmm|so\b|no\b|thank|great|good|that['\u2019]s|this|let\s+me|to\s+be|actually"
    r"|but|and\b|regarding|about|for\s|you\s+asked)",
    re.IGNORECASE,
)
"""How a clause begins that may stand before a refusal."""
_RECALLING = re.compile(r"\s*(?:you|we|the\s+user)\s+(?:talked|told|mentioned|said|discussed)", re.IGNORECASE)
"""How one begins that may stand before it in the same sentence."""
_WHOLE = re.compile(
    r"\W*(?:unknown|n/?a|no\s+answer|not\s+(?:mentioned|specified|stated|provided|given|applicable|available)"
    r"|no\s+(?:information|idea)|i\s+(?:do\s*n[o\u2019']t|do\s+not)\s+know)\W*",
    re.IGNORECASE,
)


def refuses(text: str) -> bool:
    """Whether the reply declines, and gives no answer all the same; False also where a pattern cannot tell.

    Some pattern of declining must be there, and after it nothing that reads like a guess ("but it was probably red").
    Source: ours (MMRC counts answers that are refused as expected, and does not say how it tells them).

    >>> refuses("The conversation does not say what it cost."), refuses("I'm not sure, but probably 300 euros.")
    (True, False)
    """
    said = said_in_the_end(text)
    if _WHOLE.fullmatch(said):
        return True
    found = _DECLINES.search(said)
    return found is not None and _is_early(said[: found.start()]) and _GUESSES.search(said, found.end()) is None


def _is_early(before: str) -> bool:
    """Whether no answer stands before the words that decline, as in: It cost 300 euros, more I cannot say."""
    pieces = re.split(r"([,;:.!?\n])\s*", before)
    for clause, end in zip(pieces[:-1:2], pieces[1::2], strict=True):
        if clause.strip() and not (_OPENING.match(clause) or (end in ",;:" and _RECALLING.match(clause))):
            return False
    return True
