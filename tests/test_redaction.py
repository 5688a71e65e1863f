from __future__ import annotations

import time

import pytest

from interbench_tasks.redaction import MARK, redact


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
