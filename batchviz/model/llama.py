"""The Llama family's forward pass, written plainly, with the weights of a model of transformers.

Owns: the order of operations, and which of them are put together. Must not know: slots, requests, where weights come from,
how an operation is computed. Transformers' own class is the source of truth, and tests hold this one to it; it is here
because it is faster: q, k and v are one product, gate and up another, the residual is added where a product ends, and nothing
is looked up at each call. Every operation gives a row the same bits whatever rows stand beside it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import nn

from batchviz.model.arithmetic import Arithmetic, Attend
from batchviz.model.attention_plan import AttentionPlan
from batchviz.model.elementwise import RowwiseRotary
from batchviz.model.number_format import LinearKind

PACKERS = 4  # layers laid out anew at once: mostly one thread's work each, but each takes a copy of its weights


class PlainLlama(nn.Module):
    """A Network. Takes over the weights of `model`, a LlamaForCausalLM, which is of no use afterwards."""

    def __init__(self, model: Any, make_linear: LinearKind, arithmetic: Arithmetic) -> None:
        super().__init__()
        config, body = model.config, model.model
        self._num_heads: int = config.num_attention_heads
        self._num_kv_heads: int = config.num_key_value_heads
        self._head_dim: int = body.layers[0].self_attn.head_dim
        self._scaling: float = body.layers[0].self_attn.scaling
        self.arithmetic = arithmetic
        self.attend: Attend = arithmetic.attend
        self.rows_for = make_linear.rows_for
        self.embedding = body.embed_tokens
        self.rotary = RowwiseRotary(body.rotary_emb, self._head_dim)
        self.norm = arithmetic.make_norm(body.norm)

        def build(index: int) -> PlainLayer:
            built = PlainLayer(body.layers[index], index, make_linear, arithmetic)
            body.layers[index] = nn.Identity()  # its weights are not needed twice
            return built

        with ThreadPoolExecutor(min(torch.get_num_threads(), PACKERS)) as pool:
            head = pool.submit(make_linear, model.lm_head)
            self.layers = nn.ModuleList(pool.map(build, range(len(body.layers))))
            self.head = head.result()
        for parameter in self.parameters():  # what is left may be a window into a file as large as the whole model
            parameter.data = parameter.data.clone()

    def forward(
        self, token_ids: torch.Tensor, positions: torch.Tensor, sampled_rows: torch.Tensor, plan: AttentionPlan
    ) -> torch.Tensor:
        """See network.Network."""
        hidden = self.embedding(token_ids)
        cos, sin = self.rotary(hidden, position_ids=positions)
        turn = self.arithmetic.turn(cos, sin, self._num_heads, self._num_kv_heads, self._scaling)
        for layer in self.layers:
            hidden = layer(hidden, turn, plan, self.attend)
        logits: torch.Tensor = self.head(self.norm(hidden.index_select(1, sampled_rows)))
        return logits[0]


class PlainLayer(nn.Module):
    """One decoder layer, [1, rows, width] -> the same."""

    def __init__(
        self,
        layer: Any,
        index: int,
        make_linear: LinearKind,
        arithmetic: Arithmetic,
    ) -> None:
        super().__init__()
        attention, mlp = layer.self_attn, layer.mlp
        self._index, self._head_dim = index, attention.head_dim
        self._arithmetic = arithmetic
        self.first_norm = arithmetic.make_norm(layer.input_layernorm)
        self.second_norm = arithmetic.make_norm(layer.post_attention_layernorm)
        self.qkv = make_linear(attention.q_proj, attention.k_proj, attention.v_proj)
        self.out = make_linear(attention.o_proj)
        self.gate_up = make_linear(mlp.gate_proj, mlp.up_proj)
        self.down = make_linear(mlp.down_proj)

    def forward(self, hidden: torch.Tensor, turn: Any, plan: AttentionPlan, attend: Attend) -> torch.Tensor:
        compute, num_rows = self._arithmetic, hidden.shape[1]
        qkv = self.qkv(self.first_norm(hidden)).view(num_rows, -1, self._head_dim)
        found = attend(plan, self._index, *compute.rotate(qkv, turn))
        hidden = self.out(found.reshape(1, num_rows, -1), hidden)
        result: torch.Tensor = self.down(compute.gate(self.gate_up(self.second_norm(hidden))), hidden)
        return result
