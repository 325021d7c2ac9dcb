"""Text that is measured before it is drawn: lines that fit, and what is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatas.inference.measured_text import cut, longest_word, text_width, wrapped
from gatas.inference.walk_picture import shared


def test_a_line_ends_between_words_and_nothing_is_lost():
    text = "heparan sulfate proteoglycan biosynthetic process"
    lines = wrapped(text, 1.5, 9, max_lines=9).split("\n")
    assert len(lines) > 2 and " ".join(lines) == text
    assert all(text_width(line, 9) <= 1.5 for line in lines)


def test_a_word_that_is_too_wide_is_broken_behind_a_hyphen():
    assert wrapped("N-acetylglucosaminyl-proteoglycan", 1.7, 9, max_lines=9) == "N-acetylglucosaminyl-\nproteoglycan"
    assert longest_word("proteoglycan 4-alpha", 9) == text_width("proteoglycan", 9)


def test_only_what_does_not_fit_is_cut():
    assert wrapped("one two three", 9, 9, max_lines=1) == "one two three"
    assert wrapped("one two three", text_width("one two …", 9), 9, max_lines=1) == "one two …"
    assert cut("mmmmmm", text_width("mmm…", 9), 9) == "mmm…"


@given(st.text("ab -", max_size=60), st.floats(0.3, 3), st.integers(1, 4))
def test_wrapped_lines_fit_and_are_as_few_as_allowed(text, room, most):
    lines = wrapped(text, room, 9, max_lines=most).split("\n")
    assert len(lines) <= most and all(text_width(line, 9) <= room for line in lines)
    if not lines[-1].endswith("…"):
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_room_is_shared_up_to_a_limit_but_none_gets_less_than_it_needs():
    assert shared([1, 2], [0, 0], 5) == [1, 2]
    assert shared([1, 9, 9], [0, 0, 0], 7) == pytest.approx([1, 3, 3])
    assert shared([1, 9, 9], [1, 4, 0], 7) == pytest.approx([1, 4, 2])
    assert sum(shared([9, 9], [8, 8], 4)) == pytest.approx(4)
