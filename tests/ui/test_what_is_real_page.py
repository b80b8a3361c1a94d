"""The page *What is real here*: it reads the runs on show, and says of the model and the figures what is so."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from batchviz.export.tables import METRIC_LINES
from batchviz.ui.address import AWAY, KEPT
from batchviz.ui.words import WORDS


def script() -> None:
    from batchviz.ui.pages.what_is_real import what_is_real_page

    what_is_real_page()


def shown(kept: str | None = None) -> AppTest:
    page = AppTest.from_function(script, default_timeout=60)
    if kept is not None:
        page.session_state[KEPT] = kept
    page.run()
    assert not page.exception
    assert page.session_state[AWAY] is True
    return page


def captions(page: AppTest) -> str:
    return " ".join(caption.value for caption in page.caption).replace("\\", "")


def test_it_says_what_is_measured_counted_recorded_modelled_and_simplified() -> None:
    text = " ".join(markdown.value for markdown in shown().markdown)
    for word in ("Measured", "Counted", "Recorded", "Modelled", "Simplified"):
        assert f"**{word}**" in text
    assert "four-bit ones made dense again, not the original checkpoint" in text


def test_a_new_session_reads_the_first_preset_s_measured_runs() -> None:
    said = captions(shown())
    assert "1: static, 4 slots: seconds measured." in said
    assert "SmolLM2-135M-Instruct" in said
    assert "torch 2." in said


def test_it_reads_the_runs_that_are_on_show() -> None:
    said = captions(shown("four-slots|static-8,continuous-8-chunked-b16"))
    assert "1: static, 8 slots: seconds modelled as" in said
    assert "2: continuous, 8 slots, chunked by 16: seconds modelled as" in said
    assert "fitted to the recorded steps" in said


def test_runs_without_a_model_say_so() -> None:
    said = captions(shown("golden-lengths|static-4,continuous-4"))
    assert "seconds modelled as" in said
    assert "Tokens by" not in said


def test_every_figure_stands_with_its_formula_and_every_word_with_its_sentence() -> None:
    figures, words = (frame.value for frame in shown().dataframe)
    assert list(figures["how it is computed"]) == [line.how for line in METRIC_LINES]
    assert dict(zip(words["word"], words["what it means"], strict=True)) == dict(WORDS)
