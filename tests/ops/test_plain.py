"""Operators in plain torch are the operators."""

import pytest
import torch

from gatas.nn import Encoder
from gatas.ops.plain import plain_operators
from gatas.sampling import Neighbourhood


def small_encoder():
    torch.manual_seed(0)
    return Encoder(
        feature_size=4, num_relations=3, num_steps=2, hidden_size=6, neighbour_size=5, head_size=3, num_heads=2
    ).eval()


def small_batch(rows):
    paths = small_encoder().known_paths
    generator = torch.Generator().manual_seed(rows)
    mask = torch.rand(3, 4, generator=generator) < 0.8
    node, path = (torch.randint(0, most, (3, 4), generator=generator) for most in (rows, len(paths)))
    log_probability = torch.where(mask, torch.rand(3, 4, generator=generator).log(), -torch.inf)
    targets = torch.randint(0, rows, (3,), generator=generator)
    return targets, Neighbourhood(node, paths[path], log_probability, mask), torch.randn(rows, 4, generator=generator)


class Program(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = small_encoder()

    def forward(self, targets, node, path, log_probability, mask, features):
        return self.encoder.encode_rows(targets, Neighbourhood(node, path, log_probability, mask), None, features)


def given(rows):
    targets, slots, features = small_batch(rows)
    return targets, slots.node, slots.path, slots.log_probability, slots.mask, features


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of torch, by itself
def test_a_program_of_plain_operators_has_none_of_ours_and_says_the_same_for_any_number_of_rows():
    program = Program()
    shapes = (None, None, None, None, None, {0: torch.export.Dim("rows", min=1)})
    with torch.no_grad():
        exported = torch.export.export(program, given(7), dynamic_shapes=shapes)
        assert any("gatas" in str(node.target) for node in exported.graph.nodes)
        plain = exported.run_decompositions(plain_operators())
        assert not any("gatas" in str(node.target) for node in plain.graph.nodes)
        for rows in (7, 2, 1, 40):
            torch.testing.assert_close(plain.module()(*given(rows)), program(*given(rows)), atol=1e-6, rtol=1e-5)


def test_rows_of_a_table_are_encoded_as_nodes_of_the_whole_graph():
    encoder = small_encoder()
    targets, slots, features = small_batch(9)
    with torch.no_grad():
        torch.testing.assert_close(encoder.encode_rows(targets, slots, None, features), encoder(targets, slots, features))
