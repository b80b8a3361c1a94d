"""The Llama family's forward pass, written plainly, with the weights of a model of transformers.

Owns: the order of operations, and which of them are put together. Must not know: slots, requests, where weights come from.
Transformers' own class is the source of truth, and tests hold this one to it; it is here because it is faster: q, k and v
are one product, gate and up another, the residual is added inside a product, and nothing is looked up at each call. Every
operation gives a row the same bits whatever rows stand beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from batchviz.model.attention import attend
from batchviz.model.attention_plan import AttentionPlan
from batchviz.model.elementwise import RowwiseActivation, RowwiseRotary
from batchviz.model.number_format import Linear

Attend = Callable[[AttentionPlan, int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""`attention.attend`, or another function of that shape."""


class Turn(NamedTuple):
    """Rotary embedding of a step, worked out once for all layers: [1, rows, (heads + kv_heads) * head_dim] each."""

    cos: torch.Tensor
    sin: torch.Tensor  # the sign of rotate_half is in it


class PlainLlama(nn.Module):
    """A Network. Takes over the weights of `model`, a LlamaForCausalLM, which is of no use afterwards."""

    def __init__(self, model: Any, make_linear: Linear) -> None:
        super().__init__()
        config, body = model.config, model.model
        self._num_heads: int = config.num_attention_heads
        self._num_kv_heads: int = config.num_key_value_heads
        self._head_dim: int = body.layers[0].self_attn.head_dim
        self._scaling: float = body.layers[0].self_attn.scaling
        self.attend: Attend = attend
        self.rows_for = make_linear.rows_for
        self.embedding = body.embed_tokens
        self.rotary = RowwiseRotary(body.rotary_emb, self._head_dim)
        self.norm = body.norm
        self.head = make_linear(model.lm_head)
        self.layers = nn.ModuleList()
        for index in range(len(body.layers)):
            self.layers.append(PlainLayer(body.layers[index], index, self._num_heads, self._num_kv_heads, make_linear))
            body.layers[index] = nn.Identity()  # its weights are not needed twice
        for parameter in self.parameters():  # what is left may be a window into a file as large as the whole model
            parameter.data = parameter.data.clone()

    def forward(
        self, token_ids: torch.Tensor, positions: torch.Tensor, sampled_rows: torch.Tensor, plan: AttentionPlan
    ) -> torch.Tensor:
        """See network.Network."""
        hidden = self.embedding(token_ids)
        turn = self._turn(hidden, positions)
        for layer in self.layers:
            hidden = layer(hidden, turn, plan, self.attend)
        logits: torch.Tensor = self.head(rms_norm(hidden.index_select(1, sampled_rows), self.norm))
        return logits[0]

    def _turn(self, hidden: torch.Tensor, positions: torch.Tensor) -> Turn:
        """The tables for queries and keys side by side; the queries' hold the scaling of attention as well."""
        cos, sin = self.rotary(hidden, position_ids=positions)
        half = self._head_dim // 2
        sin = torch.cat((-sin[..., :half], sin[..., half:]), dim=-1)
        tables = []
        for table in (cos, sin):
            queries = (table * self._scaling).repeat(1, 1, self._num_heads)
            tables.append(torch.cat((queries, table.repeat(1, 1, self._num_kv_heads)), dim=-1))
        return Turn(*tables)


class PlainLayer(nn.Module):
    """One decoder layer, [1, rows, width] -> the same."""

    def __init__(self, layer: Any, index: int, num_heads: int, num_kv_heads: int, make_linear: Linear) -> None:
        super().__init__()
        attention, mlp = layer.self_attn, layer.mlp
        self._index, self._head_dim = index, attention.head_dim
        self._num_heads, self._num_kv_heads = num_heads, num_kv_heads
        self.first_norm, self.second_norm = layer.input_layernorm, layer.post_attention_layernorm
        self.qkv = make_linear(attention.q_proj, attention.k_proj, attention.v_proj)
        self.out = make_linear(attention.o_proj)
        self.gate_up = make_linear(mlp.gate_proj, mlp.up_proj)
        self.down = make_linear(mlp.down_proj)
        self.activation = RowwiseActivation(mlp.act_fn)

    def forward(self, hidden: torch.Tensor, turn: Turn, plan: AttentionPlan, attend: Attend) -> torch.Tensor:
        num_rows, num_heads, num_kv_heads = hidden.shape[1], self._num_heads, self._num_kv_heads
        qkv = self.qkv(rms_norm(hidden, self.first_norm)).view(num_rows, num_heads + 2 * num_kv_heads, self._head_dim)
        value = qkv[:, num_heads + num_kv_heads :]
        turned = rotate(qkv[:, : num_heads + num_kv_heads], turn)
        found = attend(plan, self._index, turned[:, :num_heads], turned[:, num_heads:], value)
        hidden = self.out(found.reshape(1, num_rows, num_heads * self._head_dim), hidden)
        gate, up = self.gate_up(rms_norm(hidden, self.second_norm)).chunk(2, dim=-1)
        result: torch.Tensor = self.down(self.activation(gate) * up, hidden)
        return result


def rms_norm(rows: torch.Tensor, norm: Any) -> torch.Tensor:
    """Root mean square normalisation over the last dimension (Zhang and Sennrich, 2019)."""
    return functional.rms_norm(rows, norm.weight.shape, norm.weight, norm.variance_epsilon)


def rotate(heads: torch.Tensor, turn: Turn) -> torch.Tensor:
    """Rotary embedding (Su et al., 2021) of queries and keys together, [rows, heads + kv_heads, head_dim]."""
    first, second = heads.chunk(2, dim=-1)
    swapped = torch.cat((second, first), dim=-1)
    return torch.addcmul(heads * turn.cos.view_as(heads), swapped, turn.sin.view_as(heads))
