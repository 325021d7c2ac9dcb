"""Pictures of links that are explained by parts: bars that end at the log-odds, and walks that can be read."""

from itertools import combinations, pairwise
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from gatas.inference.link_picture import draw_link, link_heading, save_link_pictures
from tests.inference.conftest import with_ids
from tests.inference.test_explain_link import by_parts
from tests.inference.test_picture import blank_share
from tests.tasks.toys import likes


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_bars_begin_where_the_last_one_ended_and_end_at_the_log_odds():
    found = by_parts().explain_link(0, "likes", 3)
    bars, _ = draw_link(found).axes
    drawn: Any = bars.patches
    *each, total = drawn
    assert len(each) == len(found.contributions)
    for before, after in pairwise(each):
        assert before.get_x() + before.get_width() == pytest.approx(after.get_x())
    assert each[-1].get_x() + each[-1].get_width() == pytest.approx(found.answer.log_odds)
    assert total.get_x() == 0 and total.get_width() == pytest.approx(found.answer.log_odds)
    labels = [label.get_text() for label in bars.get_yticklabels()]
    assert all(any(path.name in label for label in labels) for path in found.paths)


def test_walks_name_their_nodes_and_relations():
    found = by_parts(("paths",), with_ids(likes())).explain_link("a0", "knows", "a3")
    walks = draw_link(found).axes[1]
    assert {"a0", "a1", "a3", "likes", "100 %"} <= set(texts(walks))
    assert len([text for text in texts(walks) if text == "a0"]) == sum(len(path.walks[:3]) for path in found.paths)


def test_labels_do_not_cover_each_other():
    figure = draw_link(by_parts(num_steps=3).explain_link(0, "likes", 4), top=10)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.canvas.draw()
    for axes in figure.axes:
        boxes = [text.get_window_extent(renderer) for text in (*axes.texts, *axes.get_yticklabels()) if text.get_visible()]
        assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]


def test_long_ids_are_wrapped_and_cut_so_that_nodes_of_a_walk_do_not_cover_each_other():
    prefix = "GO:0015012 heparan sulfate proteoglycan biosynthetic process, number "
    found = by_parts(("paths",), with_ids(likes(), prefix)).explain_link(f"{prefix}0", "knows", f"{prefix}3")
    figure = draw_link(found)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.canvas.draw()
    shown = figure.axes[1].texts
    assert any(text.get_text().count("\n") == 1 and text.get_text().endswith("…") for text in shown)
    boxes = [text.get_window_extent(renderer) for text in shown]
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]


@pytest.mark.parametrize("target", [2, 4, 6])
def test_few_walks_do_not_leave_half_of_the_picture_empty(target):
    assert blank_share(draw_link(by_parts(num_steps=3).explain_link(0, "likes", target))) < 0.4


def test_a_link_without_paths_is_drawn_too():
    figure = draw_link(by_parts(("vectors", "paths"), num_steps=1).explain_link(0, "likes", 4))
    assert texts(figure.axes[1]) == ["no path within 1 step"]


def test_files_are_named_after_the_link_and_are_the_same_each_time(tmp_path):
    found = by_parts().explain_link(0, "likes", 5)
    paths = save_link_pictures(found, tmp_path)
    names = [
        "link-0-likes-5.png",
        "link-0-likes-5.svg",
        "link-0-likes-5-neighbourhoods.png",
        "link-0-likes-5-neighbourhoods.svg",
    ]
    assert [path.name for path in paths] == names
    before = [path.read_bytes() for path in paths]
    assert [path.read_bytes() for path in save_link_pictures(found, tmp_path)] == before
    assert link_heading(by_parts().explain_link(0, "likes", 1)).endswith(" %, a known link")
