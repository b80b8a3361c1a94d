"""The page *Learn*, run as Streamlit runs it: the list, a lesson by its link, garbage in the address."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from batchviz.lesson import list_lessons
from tests.ui.component import data_of


def script() -> None:
    from batchviz.ui.pages.learn import learn_page

    learn_page()


def page_of(**params: str) -> AppTest:
    page = AppTest.from_function(script, default_timeout=60)
    for name, value in params.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def test_it_opens_with_the_list() -> None:
    data = data_of(page_of())
    assert [one["id"] for one in data["lesson"]["lessons"]] == [lesson.id for lesson in list_lessons()]
    assert "cards" not in data["lesson"]


def test_a_link_opens_a_lesson_at_a_card_and_presents() -> None:
    data = data_of(page_of(lesson="kv-cache", stop="3", present="1"))
    assert data["lesson"]["id"] == "kv-cache"
    assert (data["place"], data["present"]) == (3, True)


@pytest.mark.parametrize("stop", ["-1", "x", "9" * 40, "1.5", "", "٣"])
def test_a_card_that_there_is_not_is_the_first(stop: str) -> None:
    data = data_of(page_of(lesson="kv-cache", stop=stop))
    assert data["place"] in (0, 3)
    assert data["present"] is False


@pytest.mark.parametrize("name", ["nothing", "../kv-cache", "<b>", "kv-cache.md"])
def test_a_lesson_that_there_is_not_is_said(name: str) -> None:
    page = page_of(lesson=name)
    assert "no lesson of that name" in page.info[0].value
    assert "lessons" in data_of(page)["lesson"]
