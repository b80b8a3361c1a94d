"""What each word on the page means, in one sentence, for the small ? beside it.

Owns: the sentences. Must not know: streamlit, layout, traces. How a figure is computed stands beside its label
(export/tables.py); here is what the words themselves mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

TITLE = "Why a finished answer still has to wait"
WORDS: Mapping[str, str] = MappingProxyType(
    {
        "preset": "A set of requests to look at: every run gets exactly these, whatever its policy.",
        "request": "What one user asked: a prompt, the most tokens the answer may have, and when it arrives.",
        "arrival": "When the request joins the queue: the step, or the second, at which its user has sent it.",
        "policy": "The rule that decides who may sit down in a free slot, and when a slot is let go.",
        "sequential": "One request at a time: the next one begins when the one before it is finished.",
        "static": "A fixed group starts together and ends together: who is finished early waits for the last one.",
        "continuous": "A slot that becomes free is refilled before the next step, and a finished answer leaves at once.",
        "slot": "One lane of the running batch with its own KV memory: it serves one request at a time.",
        "slots": "How many requests the engine runs at once; sequential always has one.",
        "step": "One round of the engine: admit, one pass of the model over the batch, one more token for each slot at work.",
        "slot-step": "One slot during one step; it is prefill, decode, stalled, held or empty, and the five add up to slots × steps.",
        "prefill": "Reading a prompt, all its tokens at once or in pieces, before the first token of the answer.",
        "decode": "Making the answer, one token a step.",
        "stalled": "Seated but given no token in this step, because others are read in or the token budget is spent.",
        "held": "Finished, but the slot is not let go, because the group is still running.",
        "empty": "Nobody sits in the slot.",
        "withheld": "The answer is finished, and its user does not have it yet.",
        "mixed": "Prompts are read in the same step in which the others go on decoding.",
        "exclusive": "A step that reads prompts does nothing else: whoever decodes is stalled for that step.",
        "chunked": "Whoever decodes comes first; prompts are read in pieces, as far as the token budget of the step goes.",
        "token budget": "For chunked: how many tokens one step may feed to the model, at least one for each slot.",
        "KV budget": "How many KV positions all seated requests together may reserve; empty means as many as the slots have.",
        "KV memory": "What the model keeps of each token it has read, one position a token, as long as the request sits in its slot.",
        "reserved": "KV positions kept for a seated request: its prompt and the longest answer it may give.",
        "queue": "Requests that have arrived and have no slot yet.",
        "wait": "Steps from a request's arrival to the step in which its user has the whole answer, that step included.",
        "TTFT": "Time to first token: from a request's arrival to the first token of its answer being produced.",
        "TPOT": "Time per output token: the mean gap between the tokens of one answer after its first.",
        "utilization": "The share of slot-steps that did work, which is prefill or decode.",
        "throughput": "Output tokens per second over the whole run.",
        "delivered": "The user has the whole answer; under static batching that is when the whole group is finished.",
        "measured": "Taken from a clock on the machine that is named, while the model ran.",
        "counted": "Whole steps and tokens of a run of this engine; the same every time.",
        "recorded": "The model sampled these tokens earlier; they are shown again, unchanged.",
        "modelled": "Computed from a cost per step and per token, not taken from a clock.",
        "live": "The same requests on the real model now, on this server's processor, one policy after the other.",
        "chat": "The runs go on together, step by step, and what you write while they do joins every queue at the same step.",
        "link": "Opens this page as it is now: preset, panes, settings, step and speed.",
        "trace": "Every run on show as JSON: every slot at every step, every decision; the tool's own check holds it to the rules.",
        "page": "One file that plays these runs in any browser, without a server and without the network.",
        "picture": "The step at which the player rests, as an image; the last step if it never rested.",
        "animation": "The whole run as a moving image that begins anew at its end, for where nothing can be pressed.",
        "perfetto": "Every slot as a track of ui.perfetto.dev: open that page and drop the file on it.",
        "table": "Steps, seconds, slot-steps and mean waits of each run as a Markdown table for a report.",
        "scenario": "What was asked, as a YAML file that this page and the terminal can read.",
    }
)
