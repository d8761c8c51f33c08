"""Docstrings in the three styles say the same."""

import pytest

from offbook.actors.tools.signature import Docstring, read_docstring

GOOGLE = """Find a book.

    Looks in all shelves.

    Args:
        title (str): the title
            of the book
        year: when

    Returns:
        The book.

    Raises:
        KeyError: there is none
    """
NUMPY = """Find a book.

    Looks in all shelves.

    Parameters
    ----------
    title : str
        the title
        of the book
    year : int, optional
        when

    Returns
    -------
    Book
        The book.
    """
REST = """Find a book.

    Looks in all shelves.

    :param title: the title
        of the book
    :type title: str
    :param int year: when
    :returns: The book.
    :raises KeyError: there is none
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST], ids=["google", "numpy", "rest"])
def test_all_styles_are_read(text):
    assert read_docstring(text) == Docstring(
        "Find a book.\n\nLooks in all shelves.", {"title": "the title of the book", "year": "when"}
    )


@pytest.mark.parametrize("text", [None, "", "  \n "])
def test_no_docstring_says_nothing(text):
    assert read_docstring(text) == Docstring()


@pytest.mark.parametrize("text", ["Just this.", "No style: at all (really) -- :x", "Two\nlines."])
def test_a_docstring_without_sections_is_a_description(text):
    assert read_docstring(text) == Docstring(text)


def test_numpy_names_several_at_once_and_google_stars_the_rest():
    assert read_docstring("A.\n\nParameters\n----------\nx, y : int\n    both\n").arguments == {
        "x": "both",
        "y": "both",
    }
    assert read_docstring("A.\n\nArgs:\n    *rest: the rest\n").arguments == {"rest": "the rest"}
