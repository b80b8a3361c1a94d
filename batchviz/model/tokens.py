"""Between words and token ids: prompts one way, answers the other.

Owns: chat prompts, prompts of a given length, text that appears token by token. Must not know: slots, tensors, weights.
A tokenizer of transformers is passed in; nothing here imports that library.
"""

from __future__ import annotations

import random
from typing import Any

from batchviz.model.prose import SENTENCES

PLACEHOLDER = "batchvizPromptPlaceholder"
REPLACEMENT = "\ufffd"  # what a decoder writes for bytes that are no character (yet)
JOINER = "\u200d"


class PromptEncoder:
    """Turns prompts into token ids. Words that look like control tokens are words: a user cannot end their own turn."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._control = [str(token) for token in tokenizer.added_tokens_decoder.values()]

    def chat(self, prompt: str) -> tuple[int, ...]:
        """The prompt as a user's turn in the model's chat template, ready for the answer; as it is without a template.

        Raises ValueError for a prompt that is empty without a template.
        """
        if self._tokenizer.chat_template is None:
            token_ids = tuple(self._tokenizer(prompt, split_special_tokens=True)["input_ids"])
            if not token_ids:
                raise ValueError("the prompt is empty, and this model has no chat template to put around it")
            return token_ids
        if not any(token in prompt for token in self._control):
            return self._encode(self._render(prompt))
        before, after = self._template_around()
        return self._encode(before) + self._encode(prompt, plain=True) + self._encode(after)

    def length(self, num_tokens: int, seed: int = 0) -> tuple[int, ...]:
        """A prompt of exactly so many tokens, made of real sentences, in the chat template if it fits in.

        Equal seeds give equal prompts. Raises ValueError if `num_tokens` is not positive.
        """
        if num_tokens < 1:
            raise ValueError(f"a prompt has at least 1 token; {num_tokens} were asked for")
        before: tuple[int, ...] = ()
        after: tuple[int, ...] = ()
        if self._tokenizer.chat_template is not None:
            before, after = (self._encode(part) for part in self._template_around())
            if len(before) + len(after) >= num_tokens:
                before, after = (), ()
        num_words = num_tokens - len(before) - len(after)
        first = random.Random(seed).randrange(len(SENTENCES))
        words: tuple[int, ...] = ()
        while len(words) < num_words:
            page = [SENTENCES[(first + place) % len(SENTENCES)] for place in range(len(SENTENCES))]
            words += self._encode(" ".join(page) + " ", plain=True)
        return before + words[:num_words] + after

    def _render(self, prompt: str) -> str:
        turn = [{"role": "user", "content": prompt}]
        try:
            rendered: str = self._tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
        except Exception as error:  # a template is a program of whoever made the model
            why = " ".join(str(error).split())
            raise ValueError(f"this model's chat template does not take a user's turn by itself: {why}") from error
        return rendered

    def _template_around(self) -> tuple[str, str]:
        before, found, after = self._render(PLACEHOLDER).partition(PLACEHOLDER)
        if not found or PLACEHOLDER in after:
            raise ValueError("this model's chat template does not repeat a prompt once and as it is")
        return before, after

    def _encode(self, text: str, plain: bool = False) -> tuple[int, ...]:
        encoded = self._tokenizer(text, add_special_tokens=False, split_special_tokens=plain)
        return tuple(encoded["input_ids"])


class IncrementalDetokenizer:
    """The text each token makes visible, request by request. A batchviz.runner.Detokenizer.

    What is not whole yet is held back: the first bytes of a character, half a flag, an emoji that goes on. The pieces of
    a request, joined, are what decoding all its tokens at once gives; special tokens are never seen.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._token_ids: dict[str, list[int]] = {}
        self._num_shown: dict[str, int] = {}  # characters

    def push(self, request_id: str, token_id: int, final: bool) -> str:
        token_ids = self._token_ids.setdefault(request_id, [])
        token_ids.append(token_id)
        shown = self._num_shown.get(request_id, 0)
        text: str = self._tokenizer.decode(token_ids, skip_special_tokens=True)
        if final:
            self._token_ids.pop(request_id)
            self._num_shown.pop(request_id, None)
            return text[shown:]
        whole = _without_half_characters(text)
        self._num_shown[request_id] = max(shown, len(whole))
        return whole[shown:]


def _without_half_characters(text: str) -> str:
    """The text without an end that the next token may turn into something else."""
    text = text.rstrip(REPLACEMENT)
    num_regional = 0
    while num_regional < len(text) and "\U0001f1e6" <= text[-1 - num_regional] <= "\U0001f1ff":
        num_regional += 1
    if num_regional % 2:  # flags are pairs of these
        return text[:-1]
    return text.rstrip(JOINER)
