"""Equations 1, 3 and 4, one target and one neighbour at a time, in plain loops. Reads the encoder's weights, nothing else."""

import math

import torch
from torch.nn.functional import elu

from gatas.transitions.paths import path_relations


def represent(encoder, target, pairs, log_probability, features):
    """h′ of one target; `pairs` is a list of (node, path), `log_probability` ln P of each."""
    h_i = node_input(encoder, target, features)
    neighbours = [neighbour(encoder, h_i, node, path, features) for node, path in pairs]
    attention = encoder.neighbours
    heads, hidden, width = attention.num_heads, attention.hidden_size, attention.head_size
    out = []
    for k in range(heads):
        of_target = slice(k * hidden, (k + 1) * hidden)
        W = torch.cat([attention.hidden_of_target.weight[of_target], attention.hidden_of_neighbour.weight[of_target]], dim=1)
        logits = []
        for n, ln_p in zip(neighbours, log_probability, strict=True):
            inner = elu(W @ torch.cat([h_i, n]) + attention.hidden_of_target.bias[of_target])  # g's hidden layer
            logits.append(attention.score[k] @ inner + ln_p)  # eq. 3
        alpha = torch.stack(logits).softmax(0)
        of_value = slice(k * width, (k + 1) * width)
        d = [elu(attention.value.weight[of_value] @ n + attention.value.bias[of_value]) for n in neighbours]
        out.append(elu(sum(a * v for a, v in zip(alpha, d, strict=True))))  # eq. 4
    return torch.cat(out)


def node_input(encoder, node, features):
    """h = [l ‖ b]."""
    inputs, parts = encoder.inputs, []
    if inputs.embeddings is not None:
        parts.append(inputs.embeddings.weight[node])
    if features is not None:
        x = features[node]
        x = (x - x.mean()) / (x.var(unbiased=False) + inputs.norm.eps).sqrt() * inputs.norm.weight + inputs.norm.bias
        parts.append(elu(inputs.dense.weight @ x + inputs.dense.bias))
    return torch.cat(parts)


def neighbour(encoder, h_i, node, path, features):
    """n of eq. 1, the target's term of f included although it cancels."""
    h_j = node_input(encoder, node, features)
    if encoder.path_attention == "none":
        return h_j
    relations = path_relations(path, encoder.num_relations)
    positions = [0] if path == 0 else list(range(1, len(relations) + 1))  # the self-loop uses p₀
    if encoder.positions_from_neighbour:
        positions.reverse()
    steps = [step(encoder, relation, position) for relation, position in zip(relations, positions, strict=True)]
    scores, values = [], []
    for e_p in steps:
        if encoder.path_attention == "linear":
            any_weight = torch.linspace(-1, 1, len(h_i), dtype=h_i.dtype)  # f's weights for the target: any will do
            scores.append(any_weight @ h_i + encoder.paths.score.weight[0] @ e_p)
        else:
            f = encoder.paths
            inner = f.hidden_of_target.weight @ h_i + f.hidden_of_target.bias + f.hidden_of_step.weight @ e_p
            scores.append(f.score.weight[0] @ elu(inner))
        z = encoder.paths
        values.append(elu(z.value_of_input.weight @ h_j + z.value_of_step.weight @ e_p + z.value_of_step.bias))
    beta = torch.stack(scores).softmax(0)
    return sum(b * v for b, v in zip(beta, values, strict=True))


def step(encoder, relation, position):
    """e + p."""
    e = encoder.steps.relation_embeddings.weight[relation]
    D = len(e)
    p = [
        math.sin(position / 10_000 ** (i / D)) if i % 2 == 0 else math.cos(position / 10_000 ** ((i - 1) / D)) for i in range(D)
    ]
    return e + torch.tensor(p, dtype=e.dtype)
