"""Pictures of links that are explained by parts: bars that end at the log-odds, and walks that can be read."""

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import FancyArrowPatch

from gatas.inference.link_explanation import PathWalk
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


def drawn_boxes(figure):
    """What each text covers with its frame, by axes; and the arrows, each from where it begins to where it ends."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.canvas.draw()
    boxes, arrows = [], []
    for axes in figure.axes:
        for text in (*axes.texts, axes.title, *(axes.get_yticklabels() if axes.axison else ())):
            frame = text.get_bbox_patch()
            boxes.append((text.get_text(), (text if frame is None else frame).get_window_extent(renderer)))
        arrows += [patch.get_window_extent(renderer) for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    boxes += [(text.get_text(), text.get_window_extent(renderer)) for text in figure.texts]
    return [box for box in boxes if box[0]], arrows


def assert_readable(figure):
    """No text covers another, none leaves the picture, and no box hides an arrow."""
    boxes, arrows = drawn_boxes(figure)
    assert not [(a[0], b[0]) for a, b in combinations(boxes, 2) if a[1].overlaps(b[1])]
    width, height = figure.get_size_inches() * figure.dpi
    assert not [text for text, box in boxes if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height]
    assert not [text for text, box in boxes for arrow in arrows if box.shrunk(0.99, 0.99).overlaps(arrow)]
    assert all(arrow.width > 0.3 * figure.dpi for arrow in arrows)


@pytest.mark.parametrize(
    "prefix", ["a", "lopez-2000-01", "GO:0015012 heparan sulfate proteoglycan biosynthetic process, number ", "m" * 60]
)
def test_names_of_any_length_can_be_read(prefix):
    found = by_parts(num_steps=3, dataset=with_ids(likes(), prefix)).explain_link(f"{prefix}0", "likes", f"{prefix}4")
    assert_readable(draw_link(found))


NAMES = "appears in", "proceedings of", "GO:0015012 heparan sulfate proteoglycan biosynthetic process", "gene:EXTL1"
ENZYME = "GO:0050508 glucuronosyl-N-acetylglucosaminyl-proteoglycan 4-alpha-N-acetylglucosaminyltransferase activity"


def with_long_names():
    """An explanation whose names have the lengths that real ones have."""
    first, second, process, gene = NAMES
    found = by_parts(("paths",)).explain_link(0, "likes", 4)
    relations = (first, second, "biological process")
    walks = (
        PathWalk((gene, ENZYME, "gene:EXT2", process), 0.6),
        PathWalk((gene, "Open Proceedings", "gene:EXT1", process), 0.4),
    )
    path = replace(found.paths[0], name=" → ".join(relations), relations=relations, walks=walks)
    terms = (replace(found.terms[0], kind="target", name=f"{process} as a target"),)
    return replace(found, source=gene, target=process, paths=(path,), terms=terms)


def test_long_names_are_whole_where_there_is_room():
    figure = draw_link(with_long_names())
    assert_readable(figure)
    shown = [" ".join(text.split()) for text, _ in drawn_boxes(figure)[0]]
    assert not [text for text in shown if "…" in text]
    assert f"{NAMES[3]} – likes → {NAMES[2]}" in shown[-1]
    assert any(text.startswith(f"{NAMES[2]} as a target") for text in shown)
    assert {*NAMES, "biological process"} <= set(shown)
    assert any(text.replace(" ", "") == ENZYME.replace(" ", "") for text in shown)


def test_what_has_no_room_is_cut_and_says_so():
    found = with_long_names()
    walk = PathWalk((NAMES[3], "m" * 150, "m" * 150, NAMES[2]), 1.0)
    figure = draw_link(replace(found, paths=(replace(found.paths[0], walks=(walk,)),)))
    assert_readable(figure)
    assert [text for text, _ in drawn_boxes(figure)[0] if text.startswith("mm") and text.endswith("…")]


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
