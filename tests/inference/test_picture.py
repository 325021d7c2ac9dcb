"""Pictures of explanations: what is drawn where, and that it can be read."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.path import Path as Outline
from matplotlib.transforms import Affine2D

from gatas.graph import Graph
from gatas.inference import Predictor
from gatas.inference.picture import draw_explanation, file_name, heading, readable, save_pictures
from tests.tasks.toys import camps, classifier, likes, predictor


def named(names):
    """The two camps, with these ids."""
    dataset = camps(num_nodes=len(names))
    graph = Graph.from_edges(
        dataset.graph.source, dataset.graph.neighbour, num_nodes=len(names), node_ids=names, edge_type_names=["$friend$ of"]
    )
    return replace(dataset, graph=graph)


def explained(make, dataset, asked, **settings):
    """Explain what an untrained model says of all candidates."""
    return Predictor(make(dataset, **settings), dataset).explain(asked, mode="all")


def outlines(figure):
    """What each text covers, turned as it is."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.canvas.draw()
    found = {}
    for axes in figure.axes:
        for text in axes.texts:
            turned = text.get_rotation()
            text.set_rotation(0)
            box = text.get_window_extent(renderer)
            text.set_rotation(turned)
            anchor = text.get_transform().transform(text.get_position())
            turn = Affine2D().rotate_deg_around(anchor[0], anchor[1], turned)
            found[id(axes), text.get_text(), *text.get_position()] = Outline(
                turn.transform([(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)])
            )
    return found


@pytest.mark.parametrize("length", [3, 18, 90])
def test_labels_do_not_overlap(length):
    names = [f"{number:02d}" + "m" * (length - 2) for number in range(40)]
    figure = draw_explanation(explained(classifier, named(names), names[4], num_steps=3), top=1000)
    covered = outlines(figure)
    assert len(covered) > 20
    assert not [(a[1], b[1]) for a, b in combinations(covered, 2) if covered[a].intersects_path(covered[b], filled=True)]
    size = figure.get_size_inches() * figure.dpi
    assert all((outline.vertices >= 0).all() and (outline.vertices <= size).all() for outline in covered.values())


def blank_share(figure):
    """The share of the picture, in parts of a sixth of its sides, in which nothing is drawn."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    inked = np.asarray(canvas.buffer_rgba())[..., :3].min(-1) < 200  # rings are lighter
    parts = [part for rows in np.array_split(inked, 6) for part in np.array_split(rows, 6, axis=1)]
    return np.mean([not part.any() for part in parts])


@pytest.mark.parametrize("length", [2, 20])
def test_the_picture_is_as_large_as_what_it_shows(length):
    names = [f"{number:02d}" + "m" * (length - 2) for number in range(40)]
    figure = draw_explanation(explained(classifier, named(names), names[4], num_steps=3), top=30)
    assert blank_share(figure) < 0.2


def test_the_name_of_the_target_is_not_broken_within_words():
    names = [f"berg-alexandersson-{number}" for number in range(12)]
    (axes,) = draw_explanation(explained(classifier, named(names), names[2])).axes
    assert names[2] in [text.get_text() for text in axes.texts]


def test_neighbours_stand_on_the_ring_of_their_depth():
    explanation = explained(predictor, likes(), (0, "likes", 3))
    figure = draw_explanation(explanation)
    for axes, end in zip(figure.axes, explanation.ends, strict=True):
        dots = np.concatenate([dots.get_offsets() for dots in axes.collections])
        rings = np.round(np.hypot(*dots.T), 6).astype(int).tolist()
        expected = {name: step for name, step in zip(end.neighbour, end.step.tolist(), strict=True) if step}
        assert sorted(rings) == sorted(expected.values())


def test_the_widest_line_has_the_most_attention():
    explanation = explained(classifier, camps(), 3)
    (axes,) = draw_explanation(explanation).axes
    widths = sorted(patch.get_linewidth() for patch in axes.patches if type(patch).__name__ == "FancyArrowPatch")
    shown = explanation.attention[:24][explanation.step[:24] > 0]
    assert widths == pytest.approx(np.sort(np.maximum(0.5, 9 * shown / explanation.attention[0])))


def test_pictures_are_png_and_svg_and_the_same_each_time(tmp_path):
    written = []
    for _ in range(2):
        paths = save_pictures(explained(predictor, likes(), (0, "likes", 3)), tmp_path)
        written.append([path.read_bytes() for path in paths])
    assert [path.name for path in paths] == ["link-0-likes-3.png", "link-0-likes-3.svg"]
    assert written[0] == written[1] and written[0][0].startswith(b"\x89PNG") and b"<svg" in written[0][1]


def test_ids_that_look_like_formulas_or_paths_are_shown_and_saved(tmp_path):
    names = [f"$x_{{{number}$ ../a\n" for number in range(12)]
    explanation = explained(classifier, named(names), names[2])
    png, svg = save_pictures(explanation, tmp_path)
    assert png.parent == svg.parent == tmp_path and png.exists()
    assert file_name(explanation) != file_name(explained(classifier, named(names), names[3]))


def test_a_node_without_neighbours_can_be_drawn(tmp_path):
    dataset = camps()
    graph = Graph.from_edges([0], [1], num_nodes=30)
    assert save_pictures(explained(classifier, replace(dataset, graph=graph), 5), tmp_path)[0].exists()


def test_headings_say_what_was_asked_and_answered():
    assert heading(explained(predictor, likes(), (0, "knows", 3))).startswith("0 – knows → 3: ")
    assert heading(explained(predictor, likes(), 4)) == "4"
    assert heading(explained(classifier, camps(), 4))[:4] == "4: “"
    assert readable("a\tb" + "c" * 300) == "a b" + "c" * 196 + "…"


def test_long_names_are_whole_on_several_lines():
    names = [f"GO:00{number} regulation of a-calcium-dependent process, by {number} of both" for number in range(12)]
    explanation = explained(classifier, named(names), names[2], num_steps=3)
    figure = draw_explanation(explanation)
    written = {"".join(text.get_text().split()) for axes in figure.axes for text in axes.texts}
    assert {"".join(str(name).split()) for name in explanation.neighbour} <= written and len(explanation.neighbour) > 4
    assert "".join(figure.get_suptitle().split()) == "".join(heading(explanation).split()) and names[2] in heading(explanation)
    covered = outlines(figure)
    assert not [(a[1], b[1]) for a, b in combinations(covered, 2) if covered[a].intersects_path(covered[b], filled=True)]
