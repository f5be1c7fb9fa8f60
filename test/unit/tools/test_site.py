"""The site of the documentation: links follow the pages, the reference comes from the sources."""

import importlib.util
from pathlib import Path

import pytest
import site_pages as tool
import yaml
from browser import Browser, find_browser

from com_estimation.nodes.sesc_publisher import Parameters

PAGES = {
    "README.md": "index.md",
    "docs/install.md": "start/install.md",
    "src/com_model/README.md": "packages/com_model.md",
    "python": "reference/python.md",
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder in which there are a few pages."""
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    for name in ("README.md", "docs/install.md", "src/com_model/README.md", "a.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# Title\n")
    return tmp_path


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[x](../README.md)", "[x](../index.md)"),
        ("[x](../src/com_model/README.md#a)", "[x](../packages/com_model.md#a)"),
        ("[x](../src/com_model)", "[x](../packages/com_model.md)"),
        ("[x](#here), [y](https://a.org/b)", "[x](#here), [y](https://a.org/b)"),
        ("![x](../a.png)", "![x](../images/a.png)"),
        ("[x](../src)", "x (`src`)"),
        ("```\\n[x](../README.md)\\n```", "```\\n[x](../README.md)\\n```"),
    ],
)
def test_links_follow(checkout, before, after):
    page = checkout / "docs" / "install.md"
    page.write_text(before.replace("\\n", "\n"))
    top = checkout / "pages"
    assert tool.follow_links("docs/install.md", PAGES, top) == after.replace(
        "\\n", "\n"
    )
    assert (top / "images" / "a.png").is_file() == ("a.png" in before)


def test_a_link_to_nothing_is_named(checkout):
    (checkout / "docs" / "install.md").write_text("[x](nowhere.md)")
    with pytest.raises(SystemExit, match=r"docs/install.md: there is no nowhere.md"):
        tool.follow_links("docs/install.md", PAGES, checkout / "pages")


def test_every_page_is_on_the_site():
    """The documents of the checkout, each once; so are the sections of the reference."""
    contents = yaml.safe_load((tool.SOURCES / "pages.yaml").read_text())
    _, pages = tool.read_pages(contents)
    assert len(set(pages.values())) == len(pages), "two pages have one place"
    assert set(tool.GENERATED) <= set(pages)
    root = Path(tool.__file__).resolve().parents[1]
    documents = [*root.glob("docs/*.md"), *root.glob("src/*/README.md")]
    assert {str(path.relative_to(root)) for path in documents} <= set(pages)


def test_parameters_are_those_of_the_node():
    rows = {name: row for name, *row in tool.parameters(Parameters())}
    assert rows["use_imu"][0] == "False"
    assert "robot_description" in rows
    assert all(row[-1] for row in rows.values()), "each is described"


@pytest.mark.exhaustive
@pytest.mark.skipif(not find_browser(), reason="no Chromium")
def test_it_is_built_without_a_warning_and_searched_without_network(tmp_path):
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("needs tools/requirements/docs.txt (make docs)")
    assert tool.main(["--output", str(tmp_path / "site")]) == 0
    derived = (tmp_path / "site" / "explanation" / "derivations.html").read_text()
    assert derived.count("<math") > 400
    assert "$$" not in derived
    with Browser(tmp_path / "profile") as browser:
        browser.open((tmp_path / "site" / "index.html").as_uri())
        place = "document.querySelector('.md-search__input')"
        browser.wait_for(lambda: browser.js(f"!!{place}"), "the page is there")
        browser.js("document.querySelector('.md-search__button, .md-icon')?.click(); 1")
        browser.js(f"{place}.focus(); 1")
        for letter in "payload":
            for kind in ("keyDown", "keyUp"):
                text = {"text": letter} if kind == "keyDown" else {}
                browser.call("Input.dispatchKeyEvent", type=kind, key=letter, **text)
        found = "document.querySelectorAll('.md-search-result__item').length"
        browser.wait_for(lambda: browser.js(found) > 5, "pages are found")
        assert browser.errors == []
        assert not [r for r in browser.requests if r.startswith("http")]
