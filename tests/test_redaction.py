from __future__ import annotations

import base64
import html
import json
import time
from urllib.parse import quote, quote_plus

import pytest

from interbench_tasks import settings
from interbench_tasks.redaction import MARK, names_a_secret, redact, shown_cause


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model=judge-x,api_key=abc,timeout=30", f"model=judge-x,api_key={MARK},timeout=30"),
        ('{"api_key": "a b", "model": "x"}', f'{{"api_key": "{MARK}", "model": "x"}}'),
        ("{'apiKey': 'abc', 'n': 1}", f"{{'apiKey': '{MARK}', 'n': 1}}"),
        (r"{\"api_key\": \"abc\"}", rf"{{\"api_key\": \"{MARK}\"}}"),
        ("Authorization: Bearer abcdef123", f"Authorization: Bearer {MARK}"),
        ("authorization: Basic dXNlcjpwYXNz next", f"authorization: Basic {MARK} next"),
        ("{'Authorization': 'Bearer x1'}", f"{{'Authorization': 'Bearer {MARK}'}}"),
        ("curl -H bearer abcdefghi", f"curl -H bearer {MARK}"),
        ("HF_TOKEN=abc", f"HF_TOKEN={MARK}"),
        ("client_secret = 's3'", f"client_secret = '{MARK}'"),
        ("password=hunter2;x=1", f"password={MARK};x=1"),
        ("x-api-key: zz1", f"x-api-key: {MARK}"),
        ("GET /v1?api_key=abc&model=m", f"GET /v1?api_key={MARK}&model=m"),
        ("--api-key abc123 --model x", f"--api-key {MARK} --model x"),
        ("https://user:pw@host/x", f"https://user:{MARK}@host/x"),
        ("Incorrect API key provided: abcd1234.", f"Incorrect API key provided: {MARK}"),
        ("see sk-proj-aa11bb22cc33 here", f"see {MARK} here"),
        ("see sk-ant-REDACTED-x_y here", f"see {MARK} here"),
        ("see hf_abcdefghij here", f"see {MARK} here"),
        ("see AIzaSyA1234567890abc here", f"see {MARK} here"),
        ("see ghp_abcdefgh1234 here", f"see {MARK} here"),
        ("see xoxb-1234567890-ab here", f"see {MARK} here"),
    ],
)
def test_a_secret_is_taken_out_and_the_rest_stays(text, expected):
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "max_tokens=512, input_tokens: 30",
        "api_key=None",
        '"token": null',
        "my token is nice",
        "unexpected token: the",
        "a task-oriented-approach with sk-learn",
        "model=openai:gpt-4o@http://localhost:8000/v1",
        "The secret of the Great Wall",
        "tokenizer=abc",
    ],
)
def test_what_is_no_secret_stays(text):
    assert redact(text) == text


def test_the_environments_keys_are_taken_out_wherever_they_stand(monkeypatch):
    monkeypatch.setenv("MY_SERVICE_API_KEY", 'plain words/and "quotes"')
    monkeypatch.setenv("OTHER_TOKEN", "plain words")
    text = (
        'a plain words/and "quotes" b plain%20words%2Fand%20%22quotes%22 c plain words/and \\"quotes\\" d plain words'
    )
    assert redact(text) == f"a {MARK} b {MARK} c {MARK} d plain words".replace("plain words", MARK)


def test_a_short_value_in_the_environment_does_not_eat_the_text(monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "1")
    assert redact("1 of 11") == "1 of 11"


@pytest.mark.parametrize("piece", ["a", "token", "token=", "api_key:", "sk-", '"', "Bearer ", "://", "a_"])
def test_a_long_text_is_redacted_in_linear_time(piece):
    started = time.process_time()
    redact(piece * (200_000 // len(piece)))
    assert time.process_time() - started < 5


# --- keys of the environment, however they are written ----------------------------------------------------------

KEY = "aZ3/bY4+cX5=\"dW6'eV7&fU8%gT9"


@pytest.mark.parametrize(
    "spelled",
    [
        KEY,
        quote(KEY, safe=""),
        quote(KEY),
        quote_plus(KEY),
        quote(KEY, safe="").replace("%2F", "%2f").replace("%2B", "%2b").replace("%3D", "%3d"),
        json.dumps(KEY),
        json.dumps(json.dumps(KEY)),
        repr(KEY),
        html.escape(KEY),
        base64.b64encode(KEY.encode()).decode(),
        base64.b64encode(f":{KEY}".encode()).decode(),
        base64.b64encode(f"user:{KEY}".encode()).decode(),
        base64.urlsafe_b64encode(f"ab{KEY}cd".encode()).decode().rstrip("="),
        f"{KEY[:9]}\n{KEY[9:]}",
        f"{KEY[:9]}\\n    {KEY[9:20]}\r\n{KEY[20:]}",
        " ".join(KEY),
    ],
)
def test_a_key_is_found_in_every_spelling(monkeypatch, spelled):
    monkeypatch.setenv("SOME_API_KEY", KEY)
    found = redact(f"before <{spelled}> after")
    assert MARK in found
    assert found.startswith("before <")
    assert found.endswith("> after")
    for piece in ("Z3/b", "cX5", "eV7", "gT9", "cX", spelled[3:9]):
        assert piece not in found


def escaped(text: str, form: str) -> str:
    return "".join(character if character.isalnum() else form.format(ord(character)) for character in text)


@pytest.mark.parametrize(
    "spelled",
    [
        KEY.replace("/", "\\/"),  # PHP's JSON
        KEY.replace("&", "\\u0026"),  # Go's JSON
        escaped(KEY, "\\u{:04x}"),
        escaped(KEY, "\\u{:04X}"),  # .NET's JSON
        json.dumps(escaped(KEY, "\\u{:04x}")),
        "".join(f"\\u{ord(character):04x}" for character in KEY),
        "".join(f"\\x{ord(character):02x}" for character in KEY),
        KEY.replace("+", "%2B"),
        KEY.replace("/", "%2F").replace("+", "%2b"),
        quote(quote(KEY, safe=""), safe=""),
        "".join(f"%{ord(character):02X}" for character in KEY),
        escaped(KEY, "&#{};"),
        escaped(KEY, "&#x{:X};"),
        html.escape(html.escape(KEY)),
        escaped(KEY, "\\{:c}"),
        KEY.lower(),
        KEY.upper(),
        KEY.encode().hex(),
        KEY.encode().hex(":").upper(),
        KEY.encode().hex(" "),
        ", ".join(f"0x{byte:02x}" for byte in KEY.encode()),
        f"{KEY[:9]}\u200b{KEY[9:]}",
        f"{KEY[:9]}\\\\n{KEY[9:]}",
    ],
)
def test_a_key_is_found_however_single_characters_are_escaped(monkeypatch, spelled):
    monkeypatch.setenv("SOME_API_KEY", KEY)
    assert redact(f"before <{spelled}> after").strip('"').replace('"', "") == f"before <{MARK}> after"


@pytest.mark.parametrize("key", ["C:\\new\\table8", "ab%41cd&amp;ef", "%25%25%25%25x", "n\\nn\\nn\\n1"])
def test_a_key_that_looks_escaped_itself_is_found(monkeypatch, key):
    monkeypatch.setenv("SOME_API_KEY", key)
    for text in (key, json.dumps(key), json.dumps(json.dumps(key)), quote(key, safe=""), html.escape(key), repr(key)):
        found = redact(f"x {text} y")
        assert MARK in found
        assert key[2:] not in found


@pytest.mark.parametrize("piece", ["%25", "\\", "&amp;", "\\u0061", "a\\n", "61:", "&#97;", "a"])
def test_a_long_text_of_escapes_is_redacted_in_linear_time(monkeypatch, piece):
    monkeypatch.setenv("SOME_API_KEY", "a" * 40 + "b")
    started = time.process_time()
    assert redact(piece * (200_000 // len(piece)))
    assert time.process_time() - started < 5


def test_a_key_with_other_letters_and_of_several_lines_is_found(monkeypatch):
    monkeypatch.setenv("SERVICE_KEY", "clé-secrète-ü")
    monkeypatch.setenv("PEM_KEY", "-----BEGIN KEY-----\nabcdef\n-----END KEY-----")
    for key in ("clé-secrète-ü", "-----BEGIN KEY-----\nabcdef\n-----END KEY-----"):
        for text in (key, json.dumps(key), repr(key), quote(key), base64.b64encode(key.encode()).decode()):
            assert MARK in redact(f"x {text} y"), text
            assert "secr" not in redact(text)
            assert "abcdef" not in redact(text)


@pytest.mark.parametrize(
    "name",
    ["MY_API_KEY", "MYAPIKEY", "AZURE_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_PAT", "DB_PASSWORD", "X_PASS", "HF_TOKEN"],
)
def test_variables_with_such_names_hold_secrets(monkeypatch, name):
    monkeypatch.setenv(name, "plain-words-here")
    assert redact("say plain-words-here.") == f"say {MARK}."


@pytest.mark.parametrize(
    "name",
    ["INTERBENCH_MAX_TOKENS", "LLM_MAX_TOKENS", "TOKENIZERS_PARALLELISM", "HF_TOKEN_PATH", "KEYBOARD", "COMPASS"],
)
def test_variables_with_such_names_hold_none(monkeypatch, name):
    monkeypatch.setenv(name, "12345678")
    assert redact("all 12345678 of them") == "all 12345678 of them"


def test_a_variable_counts_from_when_a_key_was_read_from_it(monkeypatch):
    monkeypatch.setenv("ODDLY_NAMED", "plain-words-here")
    monkeypatch.setenv("ODDLY_SHORT", "a1b2c")
    monkeypatch.setenv("ODDLY_EMPTY", "EMPTY")
    text = "plain-words-here a1b2c xa1b2cx EMPTY"
    assert redact(text) == text
    for name in ("ODDLY_NAMED", "ODDLY_SHORT", "ODDLY_EMPTY"):
        settings.key_variable(name)
    assert redact(text) == f"{MARK} {MARK} xa1b2cx EMPTY"
    assert {"plain-words-here", "a1b2c"}.isdisjoint(settings.environment_without_secrets().values())


def test_the_scheme_of_a_header_is_no_part_of_the_secret(monkeypatch):
    monkeypatch.setenv("GATEWAY_TOKEN", "Bearer plain-words-here")
    assert redact("got plain-words-here") == f"got {MARK}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://token123@host/v1", f"http://{MARK}@host/v1"),
        ("http://user:p@ss:word@host/v1", f"http://user:{MARK}@host/v1"),
        ("GET /v1?key=abc&x=1", f"GET /v1?key={MARK}&x=1"),
        ("http://h/v1?x=1&sig=a%2Fb#top", f"http://h/v1?x=1&sig={MARK}#top"),
        ("http://h/v1?x=1&subscription-key=abc", f"http://h/v1?x=1&subscription-key={MARK}"),
        ("openai:m@http://h:8000/v1,x=1", "openai:m@http://h:8000/v1,x=1"),
        ("http://h/v1?api-version=2024", "http://h/v1?api-version=2024"),
    ],
)
def test_addresses_show_no_key(text, expected):
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize(
    "name",
    ["api_key", "openai_api_key", "apiKey", "X-Api-Key", "key", "token", "hf_token", "access-token", "Cookie", "X-Auth",
     "proxy-authorization", "client_secret", "db_password", "subscription-key"],
)  # fmt: skip
def test_such_options_hold_a_secret(name):
    assert names_a_secret(name)


@pytest.mark.parametrize("name", ["max_tokens", "eos_token", "stop_token_ids", "prompt_cache_key", "keyword", "author"])
def test_such_options_hold_none(name):
    assert not names_a_secret(name)


def test_a_cause_that_quotes_a_key_is_not_shown(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", KEY)
    plain, quoting = ValueError("plain"), ValueError(f"with {KEY}")
    assert shown_cause(plain) is plain
    assert shown_cause(quoting) is None
    plain.__cause__ = quoting
    assert shown_cause(plain) is None


def test_an_error_that_came_up_while_a_key_was_told_is_not_shown(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "plain-words-only-key")
    harmless = ValueError("harmless")
    harmless.__context__ = RuntimeError("refused: plain-words-only-key")  # as `raise` in an `except` without `from`
    assert shown_cause(harmless) is None
    assert shown_cause(ValueError("harmless")) is not None


def test_an_error_that_cannot_say_its_text_is_shown():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    error = Mute()
    assert shown_cause(error) is error


def test_many_keys_and_a_long_text_are_redacted_quickly(monkeypatch):
    for number in range(20):
        monkeypatch.setenv(f"SERVICE{number}_API_KEY", f"{KEY}{number:03}")
    started = time.process_time()
    redact("an ordinary error text, " * 5000)
    assert time.process_time() - started < 5


def test_dots_in_a_hint_stand_for_a_secret_and_are_shown():
    for hint in ("export OPENAI_API_KEY=...", "(export HF_TOKEN=...); then", "api_key='...'"):
        assert redact(hint) == hint
    assert redact("api_key=...abc123") == "api_key=[redacted]"
