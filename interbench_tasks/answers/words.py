"""The words by which a reader knows that an answer follows, is taken back or is refused, in the usual languages.

Pieces of regular expressions, all for plain text and for `re.IGNORECASE`; `(?-i:...)` marks where upper case counts.
Every repetition is bounded, so that a reply is read in linear time.
"""
# ruff: noqa: RUF001  (letters of other scripts are what this file is about)

from __future__ import annotations

import unicodedata

START, END = r"(?<![^\W_])", r"(?![^\W_])"
"""A word begins, a word ends; unlike `\\b` also beside an underscore."""


def any_of(*pieces: str) -> str:
    """One group of alternatives, in the form (NFKC) that plain text has."""
    return unicodedata.normalize("NFKC", f"(?:{'|'.join(pieces)})")


GAP = r"[^.:;!?\n|⟦⟧]{0,60}?"
"""Words between `answer` and `is`."""
COPULA = rf"{START}(?:is|are|was|be|were|becomes?|remains?|equals?){END}(?:n't)?"
LINK = r"""["'\])]*\s{0,3}(?:\([^()\n]{2,40}\)\s?)?(?::|=+>?|->|\||-(?=\s))"""
"""What may stand between `Answer` and what is declared."""

ADVERBS = any_of(
    r"(?:(?:most|almost|quite|very)\s)?[a-z]{2,12}ly|then|now|still|also|just|again|in fact|of course|instead|rather",
    "indeed|thus|hence|therefore|so|both|either|closest to|given by|as follows|as below",
    "donc|probablement|also|somit|daher|folglich|demnach|eindeutig|vermutlich|entonces|por lo tanto|por tanto",
    "claramente|quindi|portanto|então|dus|waarschijnlijk|jadi|adalah|olur",
)
OPTION_NOUNS = any_of(
    "options?|choices?|letters?|answers?|alternatives?|selections?|item|statement|response",
    "figure|image|picture|graph|diagram|panel|shape|pattern|structure",
    "buchstabe|antwort|möglichkeit|lettre|réponse|proposition|opci[oó]n|opç[aã]o|opzione|letra|lettera|alternativa",
    "respuesta|resposta|risposta|inciso|literal|вариант|optie|antwoord|opsi|pilihan|phương án|lựa chọn",
    "选项|選項|選択肢|選択|선택지|보기|번호|حرف|الخيار|विकल्प|ข้อ|ตัวเลือก",
)
FILLERS = any_of(
    rf"(?:the|that it is|it is|it's|is|are|be|to be|{ADVERBS}|{OPTION_NOUNS}){END}",
    rf"(?:die|der|das|ist|ist die|lautet|wäre|la|le|el|est|est la|es|es la|son|sería|seria|l'|o|é|é a|è|è la|la letra"
    rf"|is het|het|de|là){END}",
    r"(?-i:a)\s(?=[(]?(?-i:[A-Z])(?![A-Za-z]))",  # Portuguese `é a C`
    r"[是为為选選择擇应應该該就即填的项項は이가은는]|الخيار|هي|هو|है",
    r"[:=\-\"'\s,>|]",
)
"""What may stand between the link and the letter, e.g. `is therefore option`."""

AND_OR = any_of(
    r",\s*(?:and|or|&|und|oder|et|ou|y|e|o)?|/|&|\+|;",
    rf"{START}(?:and/or|and|or|nor|und|oder|et|ou|y|e|o|i|и|или|en|of|dan|atau|và|hoặc|veya|ve|plus|as well as"
    rf"|along with|through|to){END}",
    "[、和與与及或跟]|以及|或者|または|および|と|か|또는|와|과",
)
SINGULAR_VERB = (
    r"(?:is|was|has|does|would|will|can|cannot|can't|could|isn't|doesn't|wouldn't|being|having|needs|requires|fails"
    rf"|gives|shows|assumes|ignores|seems|looks|leaves|ist|wäre|est|es|sería|é){END}"
)
"""`C, A would need ...`: A begins a new clause and is not listed."""

CONNECTORS = any_of(
    "because|since|as|due|given|for|with|without|in|at|on|by|from|to|over|instead|rather|based|which|where|when|while",
    "if|so|thus|hence|therefore|but|not|and|or|this|it|he|she|they|we|the|here|only|though|although|is|are|was|were",
    "will|would|can|cannot|could|should|may|might|must|has|have|does|matches|fits|represents|shows|describes",
    "corresponds|seems|appears|looks|makes|gives|states|indicates|satisfies|works|applies|best|correctly",
    "weil|da|denn|ist|car|puisque|parce|est|porque|ya|es|pues|perché|omdat|karena|vì|потому|так",
)
"""Words that cannot follow the article A: before them a lone A is a letter."""
STRICT_CONNECTORS = any_of(
    "only|because|since|as|due|given|for|over|instead|rather|based|so|thus|hence|therefore|but|not",
    "weil|da|denn|car|puisque|parce|porque|ya|pues|perché|omdat|karena|vì|потому",
)
"""The same where no answer was announced: before these a lone letter is still a choice."""

NEGATION = any_of(
    rf"{START}(?:not|isn't|wasn't|aren't|never|neither|nor|except(?: for)?|other than|anything but|unlikely(?: to be)?"
    rf"|cannot be|can't be|nicht|keinesfalls|weder|pas|ni|não|non|не|niet|bukan|tidak|không phải|değil|ليس"
    rf"|no(?= (?:es|son|la|el|option|opci))){END}",
    "不(?:是|选|選|为|為|应选|應選|能是|可能是)|并非|並非|而非|排除",
)
_SURELY = r"(?:(?:clearly|definitely|also|therefore|thus|both|all|simply|obviously)\s+)?"
REJECTED_AFTER = r"\s*" + any_of(
    rf"(?:is|was|are|seems|looks|must be|ist|est|es|é|è)\s+{_SURELY}"
    r"(?:not (?:correct|right|it|the (?:answer|correct|right|best)|possible|valid|true|an? (?:option|answer))"
    rf"|wrong|incorrect|invalid|impossible|false|out{END}|excluded|eliminated|rejected|ruled out|falsch"
    r"|nicht (?:richtig|korrekt)|faux|fausse|inc?orrecte|incorrect[ao]|sbagliat[ao]|errad[ao]|falsa?)",
    r"(?:isn't|wasn't|is not|aren't|cannot be|can't be|could not be|couldn't be|must not be|doesn't|does not|don't"
    rf"|do not|didn't|fails|can be (?:excluded|eliminated|ruled out|rejected)){END}",
    r"(?:选项|選項|项|項)?\s*(?:不|错|錯|有误|有誤|排除|是错|是錯)",
    r"[はが]\s?(?:間違|誤|違|正しくな|正解では|答えでは)|では?(?:なく|な|あり)|じゃな",
    r"[은는이가]?\s*(?:정답이\s*)?(?:아니|아닙|틀|맞지)|değil|नहीं",
)
"""What makes the letter before it a rejected one."""
BUT = (
    r"[\s,;:.\-]*"
    + any_of(
        r"(?:but|rather|instead|so|it is|it's|it must be|is|sondern|mais|sino|pero|mas|ma)(?![A-Za-z])[\s,:]*",
        r"(?:而是|應該是|应该是|应是|是|应选|選|选|ではなく|なく|라|고|입니다|다)[\s,:]*",
    )
    + "{0,3}"
)
"""What joins a rejected option with the one that is chosen instead."""
NO_ANSWER = any_of(
    rf"there (?:is|was) (?:no|an error)|(?:none|neither|no(?:ne)?) of|none{END}|no (?:answer|option|choice|correct)",
    "cannot|can't|could not|can not|unable|unknown|unclear|undetermined|indeterminate|n/a|insufficient|impossible to",
    "not (?:clear|determin|given|possible|enough|available|provided|listed|sure|in the)",
    "i (?:don't|do not|can't|cannot|am not|am unable|'m (?:not|unable|sorry))|i'm (?:not|unable|sorry)",
    "无法|無法|不知道|不确定",
)
"""How a declaration begins that declares that there is no answer."""

ANSWER_NOUNS = {
    "de": "antwort|lösung",
    "fr": "r[ée]ponse",
    "es": "respuesta",
    "pt": "resposta|gabarito",
    "it": "risposta",
    "nl": "antwoord",
    "sv, da, no": "svar(?:et)?",
    "pl, cs": "odpowied[źz]|odpověď",
    "ru, uk": "ответ|відповідь",
    "tr": "cevap|cevabı|yanıt",
    "vi": "đáp án|câu trả lời",
    "id": "jawaban(?:nya)?",
    "el": "απάντηση",
    "ar, fa": "ال[إا]جابة|[إا]جابة|الجواب|جواب|پاسخ",
    "hi": "उत्तर|जवाब",
    "th": "คำตอบ",
    "zh": r"答案|答复|解答|答(?=\s*[:是为為])",
    "ja": "答え|答(?=は)|正解|回答",
    "ko": r"정답|답변|답(?=\s*[:은는이])",
}
"""Language -> its words for `answer`, beside the English one."""
ANSWER_COPULAS = (
    rf"{START}(?:ist|lautet|wäre|sind|est|serait|sont|هي|هو|es|sería|son|é|seria|è|sarebbe|is|are|är|er|jest|to|adalah"
    rf"|là|será){END}"
)
CHOSEN_OPTION_ENGLISH = any_of(
    r"(?:correct|right|best|final|closest|proper|appropriate|suitable|accurate|likely|fitting|matching|chosen|selected"
    r"|nearest|missing|next|odd|desired|required|corresponding|plausible|reasonable)"
    r"\s+(?:(?!answer|and|or|but|if)[a-z-]{1,20}\s+)?(?:option|choice|one|letter|alternative|match|pick|selection"
    r"|response|candidate|figure|image|picture|graph|diagram|shape|piece|pattern|tile|statement|description|expression"
    r"|value|result)",
    r"(?:my|our)\s+(?:final\s+|own\s+|best\s+)?(?:choice|pick|selection|guess|prediction|vote|conclusion|decision"
    r"|verdict|option)",
)
CHOSEN_OPTION = {
    "de": r"richtige\s+(?:option|wahl|aussage|lösung|möglichkeit)|richtig\s+ist|korrekt\s+ist",
    "fr": r"(?:bonne|meilleure)\s+(?:option|proposition)|option\s+correcte|choix\s+(?:correct|final)",
    "es": r"(?:opci[óo]n|alternativa|letra)\s+correcta|la\s+correcta(?=\s+es)",
    "pt": r"(?:opç[ãa]o|alternativa|letra)\s+corret[ao]|letra\s+certa",
    "it": r"(?:opzione|alternativa)\s+corretta|opzione\s+giusta",
    "nl": r"juiste\s+(?:optie|keuze)",
    "ru": r"правильный\s+вариант|верный\s+вариант",
    "zh": "(?:正确|正確|最佳|最合适)(?:的)?(?:选项|選項|说法|說法|一项|一項|选择|選擇|是|为|為)"
    "(?:应该|應該|应|應)?(?:是|为|為)?",
    "ja": "正しい(?:選択肢|もの|記述|の)|適切な(?:選択肢|もの)",
    "ko": r"올바른\s*(?:선택지|것|보기)|옳은\s*(?:것|보기)",
}
"""Language -> words that announce the option that is chosen, beside the English ones."""
_TO_CHOOSE = (
    r"(?:choos(?:e|ing)|chose|select(?:ed|ing)?|pick(?:ed|ing)?|go(?:ing)?\s+(?:with|for)|went\s+with|opt(?:ing)?\s+for"
    r"|vote(?:\s+for)?|settle\s+on|stick(?:ing)?\s+with|lean(?:ing)?\s+(?:to|towards?)|answer|bet\s+on|mark|conclude"
    r"|say)"
)
FIRST_PERSON_CHOICE = any_of(
    rf"{START}(?:I|we|I'd|I'll|I'm|I am|I will|I would|we'd|we'll|let's|let me|I have|I've){END}\s+"
    r"(?:(?:would|will|must|should|can|have to|am|to|finally|therefore|thus|then|now|still|probably|also|say|be|rather)"
    rf"\s+){{0,3}}{_TO_CHOOSE}(?:\s+(?:that\s+)?it\s+is)?",
    r"ich\s+(?:wähle|nehme)|ich\s+würde(?=\s\S{1,12}\s(?:wählen|nehmen))|je\s+(?:choisis|prends)",
    r"(?:yo\s+)?(?:elijo|escojo)|(?:eu\s+)?escolho|scelgo|я\s+выбираю|ik\s+kies|saya\s+memilih|tôi\s+chọn",
    "(?<![不别勿没多单多單])(?:故|因此|所以|应|應|就|我|本题|本題|应该|應該|只能|答案)?(?:选择|選擇|选|選)"
    "(?![项項取出中自题題手民])",
    "我的(?:选择|選擇)(?:应该|應該)?[是为為]|選ぶのは|選択は|選びます|선택은|고르면",
)
"""The writer says what they choose."""
RETRACTED = any_of(
    rf"{START}(?:wait|hold on|hang on|actually|scratch that|correction|corrected|on second thought|on reflection"
    r"|let me re-?(?:check|consider|think|do|read|examine|visit)|reconsider(?:ing)?|i (?:was|am) wrong"
    r"|i made an? (?:mistake|error)|my mistake|oops|hmm+|no,|no:|no -|sorry,|apologi[sz]e|i mean|rather,"
    rf"|moment mal|halt|nein|attend(?:s|ez)|non,|espera|perd[óo]n|aspetta|подожди|нет){END}",
    "等等|不对|不對|等一下|再想|重新|待って|いや|잠깐|잠시|아니",
)
"""What announces that the answer before it may be taken back."""
TAKEN_BACK = any_of(
    r"(?:that|this|it|which|my answer|the above|above)(?:'s| is| was| can't be| cannot be)\s+"
    r"(?:clearly\s+|actually\s+|not\s+(?:right|correct|it)|wrong|incorrect|a mistake|an error)",
    "不对|不對|错了|錯了|i (?:was|am) wrong",
)
DOUBTED = any_of(
    r"(?:previous|previously|earlier|initial|initially|original|originally|first|wrong|incorrect|your|prior"
    r"|last round's)\s+(?:my\s+|stated\s+|given\s+|selected\s+)?$",
    r"(?:initially|originally|at first)[^.]{0,40}(?:thought|said|assumed|believed)",
    rf"{START}I\s+(?:had\s+)?(?:thought|assumed|believed)",
    r"(?:might|may|could|would|will)\s+(?:think|say|assume|suggest|guess|argue|believe|claim|be tempted)",
    r"tempt(?:ed|ing)\s+to|(?:many|some|most|other)\s+(?:people|students|readers|solvers)",
    r"you\s+(?:said|say|think|claim)|(?:common|typical|usual|frequent)\s+(?:mistake|error|trap|wrong)",
    rf"{START}to\s$|whether|not\s+(?:sure|certain)|doubt",
)
"""Before a cue: it reports what somebody might think, or what was said before."""
REFUSED = any_of(
    rf"{START}(?:can't|cannot|can not|could not|couldn't|unable to|not able to|am not able|won't)\s+(?:\w+\s+){{0,2}}?"
    r"(?:see|view|read|tell|determine|identify|answer|analy[sz]e|provide|help|assist|make out|access|interpret|say|know"
    r"|assess|find|recogni[sz]e|display|process|be determined|comply|complete|discern|evaluate|choose|decide)",
    rf"{START}(?:unable|sorry){END}|don't know|do not know|not sure|no idea|insufficient information",
    r"\bno\s(?:entiendo|puedo|veo|sé)\b|\bje\sne\s(?:peux|vois|sais|comprends)\b|\bich\s(?:kann|weiß|sehe)\b[^.\n]{0,60}\bnicht\b",
    "not enough information|无法|無法|不能|抱歉|对不起|對不起|不知道|できません|わかりません|申し訳|죄송|알 수 없",
)
"""What makes a reply, or a sentence, one that does not answer."""
AGAINST = any_of(
    NEGATION,
    r"n't\b|\bno\b|\b(?:none|neither|wrong|incorrect|but|too|fail\w*|unlike\w*|eliminat\w+|exclud\w+|rul\w+ out|false"
    r"|instead|rather)\b|不|错|錯",
)
"""Words after which a mention of an option is no choice of it, or that turn from one option to another."""
