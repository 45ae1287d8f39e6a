"""What the programs of the lab share."""

from __future__ import annotations

import pytest
from aqmlab.errors import AqmlabError, RunError

from lab import study

PAGE = "head\n<!-- one -->\nold\n<!-- end -->\nmiddle\n<!-- two -->\n<!-- end -->\n"


def test_a_section_is_renewed_and_the_rest_stays() -> None:
    page = study.with_section(PAGE, "one", "new\n")
    assert page == PAGE.replace("old", "new")
    assert study.with_section(page, "two", "more\n").endswith("<!-- two -->\nmore\n<!-- end -->\n")


@pytest.mark.parametrize(
    "page", ["", "<!-- end -->\n", "<!-- one -->\n", "<!-- end --><!-- one -->"]
)
def test_a_page_without_both_marks_is_refused(page: str) -> None:
    with pytest.raises(AqmlabError, match="no mark <!-- one --> with an end"):
        study.with_section(page, "one", "new\n")


def test_names_choose_and_none_choose_all() -> None:
    known = {"a": 1, "b": 2, "c": 3}
    assert study.chosen(known, [], "no {}") == [1, 2, 3]
    assert study.chosen(known, ["c", "a"], "no {}") == [3, 1]
    with pytest.raises(AqmlabError, match=r"^there is no case d; known: a, b, c$"):
        study.chosen(known, ["a", "d"], "there is no case {}")


def test_a_refusal_is_a_message_and_a_status(capsys: pytest.CaptureFixture[str]) -> None:
    @study.program
    def main(error: Exception | None = None) -> int:
        if error:
            raise error
        return 1

    assert main() == 1
    assert main(AqmlabError("lab: wrong")) == 2
    assert main(RunError("lab: failed")) == RunError.exit_status
    assert "aqmlab: lab: wrong\n" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        main(ZeroDivisionError())
