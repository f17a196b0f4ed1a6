"""Tool calls that a server leaves in the text, and the flag that makes it read them.

Names of parsers: vLLM (docs, "Tool calling", 0.10 to 0.31) and SGLang (docs, "Tool parser").
"""

from __future__ import annotations

import re

from orchestrator.health.engines import Engine

_FORMS: tuple[tuple[str, str, str], ...] = (
    (r"<tool_call>\s*<function=|<function=\w", "qwen3_coder", "qwen3_coder"),
    (r"<tool_call>\s*[\w.-]+\s*<arg_key>", "glm45", "glm45"),
    (r"<tool_call>", "hermes", "qwen25"),
    (r"\[TOOL_CALLS\]", "mistral", "mistral"),
    (r"<\|python_tag\|>", "llama3_json", "llama3"),
    (r"<[|｜]tool▁calls?▁(?:begin|sep)[|｜]>", "deepseek_v3", "deepseekv3"),
    (r"<\|tool_calls?(?:_section)?_begin\|>", "kimi_k2", "kimi_k2"),
    (r"<\|channel\|>commentary|to=functions\.\w", "openai", "gpt-oss"),
    (r"<minimax:tool_call>", "minimax_m2", "minimax-m2"),
    (r"functools\[", "phi4_mini_json", ""),
    (r"^\s*\[?\w+\(\w+=", "pythonic", "pythonic"),
    (r"<\|?tool_calls?\|?>|<function_calls?>|<invoke ", "", ""),
    (r"\{\s*\"(?:name|function|tool)\"\s*:\s*\"hermux_check\"", "", ""),
    (r"hermux_check\s*[({]", "", ""),
)
"""(form in the text, vLLM's parser, SGLang's parser); "" = ask the model's name."""

_NAMES: tuple[tuple[str, str, str], ...] = (
    (r"qwen-?3(?:\.\d)?[-_]?coder|qwen-?3\.[5-9]", "qwen3_coder", "qwen3_coder"),
    (r"qwen|qwq|hermes", "hermes", "qwen25"),
    (r"llama-?4", "llama4_pythonic", "llama4"),
    (r"llama-?3", "llama3_json", "llama3"),
    (r"mistral|mixtral|devstral|magistral|ministral", "mistral", "mistral"),
    (r"deepseek.*v?3\.2", "deepseek_v32", "deepseekv32"),
    (r"deepseek.*v?3\.1", "deepseek_v31", "deepseekv31"),
    (r"deepseek", "deepseek_v3", "deepseekv3"),
    (r"gpt-?oss", "openai", "gpt-oss"),
    (r"kimi", "kimi_k2", "kimi_k2"),
    (r"glm-?4\.7", "glm47", "glm47"),
    (r"glm-?4", "glm45", "glm45"),
    (r"minimax", "minimax_m2", "minimax-m2"),
    (r"gemma-?4", "gemma4", "gemma4"),
    (r"granite", "granite", ""),
    (r"phi-?4", "phi4_mini_json", ""),
)


def form_of(text: str) -> str:
    """Return how a tool call was printed into the text, as a short quote; "" where there is none."""
    for pattern, _, _ in _FORMS:
        if match := re.search(pattern, text, re.MULTILINE):
            return " ".join(text[match.start() : match.start() + 48].split())
    return ""


def parser_flags(engine: Engine, model: str, text: str = "") -> str:
    """Return what to start the server with, so that it reads tool calls; `text` is one that it did not read."""
    vllm, sglang = _parsers(model, text)
    flags = {
        Engine.VLLM: f"start vLLM with --enable-auto-tool-choice --tool-call-parser {vllm}",
        Engine.SGLANG: f"start SGLang with --tool-call-parser {sglang}",
        Engine.LLAMA_CPP: "start llama-server with --jinja (and a chat template that knows tools)",
        Engine.OLLAMA: "use a model with the tag `tools`; to see one's abilities: ollama show MODEL",
        Engine.LM_STUDIO: "load a model that LM Studio marks as trained for tool use",
    }
    return flags.get(
        engine,
        "start the server with its tool parser: vLLM --enable-auto-tool-choice --tool-call-parser "
        f"{vllm}, SGLang --tool-call-parser {sglang}, llama.cpp --jinja",
    )


def _parsers(model: str, text: str) -> tuple[str, str]:
    by_text = next(
        ((v, s) for form, v, s in _FORMS if text and re.search(form, text, re.MULTILINE)), ("", "")
    )
    by_name = next(((v, s) for name, v, s in _NAMES if re.search(name, model, re.IGNORECASE)), ("", ""))
    if by_text[0] == "hermes" and by_name[0] == "hermes":
        return by_name
    return by_text[0] or by_name[0] or "PARSER", by_text[1] or by_name[1] or "PARSER"
