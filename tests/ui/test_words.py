"""Every word that the page uses in a label has its one sentence."""

from __future__ import annotations

import pytest

from batchviz.export.formats import FORMATS
from batchviz.export.series import PHASE_WORDS
from batchviz.export.tables import METRIC_LINES
from batchviz.prefill import PrefillMode
from batchviz.scheduler import Policy
from batchviz.trace import Seconds, SlotPhase
from batchviz.ui.address import CHARTS
from batchviz.ui.chart_data import MAKERS
from batchviz.ui.figures import KINDS, SPECS
from batchviz.ui.theme import PHASE_COLOURS, STAGE_COLOURS
from batchviz.ui.words import WORDS


def test_every_policy_phase_mode_and_kind_of_seconds_is_explained() -> None:
    for word in (*Policy, *SlotPhase, *PrefillMode, *Seconds, "recorded", "counted", "live", "slot", "step"):
        assert word in WORDS


@pytest.mark.parametrize("term", ["TTFT", "TPOT", "wait", "withheld", "queue", "step", "throughput", "utilization"])
def test_every_term_of_the_figures_is_explained(term: str) -> None:
    assert term in WORDS
    assert any(term.lower() in line.label.lower() for line in METRIC_LINES)


def test_a_sentence_is_one_sentence_of_readable_length() -> None:
    for word, sentence in WORDS.items():
        assert sentence.endswith("."), word
        assert sentence.count(". ") == 0, word
        assert 20 < len(sentence) < 160, word


def test_every_chart_has_a_name_words_a_maker_and_a_spec() -> None:
    assert tuple(KINDS) == CHARTS == tuple(MAKERS)
    assert {word for kind in KINDS.values() for word in kind.words} <= set(WORDS)
    assert {"share" if name == "waits" else name for name in CHARTS} <= set(SPECS)


def test_every_phase_and_stage_that_is_drawn_has_a_colour() -> None:
    assert list(PHASE_WORDS.values()) == list(PHASE_COLOURS)
    assert len(STAGE_COLOURS) == 4


def test_every_file_to_take_away_is_explained() -> None:
    assert {known.key for known in FORMATS} | {"scenario", "trace", "link"} <= set(WORDS)


def test_every_figure_says_how_it_is_computed() -> None:
    assert all(len(line.how) > 10 for line in METRIC_LINES)
