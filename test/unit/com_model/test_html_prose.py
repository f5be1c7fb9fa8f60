"""Next steps of pages: commands that can be copied, and links to the documentation."""

import re

from com_model.html import page, prose, report


def test_a_command_gets_a_button_and_is_escaped():
    text = prose("Run `make demo ROBOT=<mine>` now.")
    assert "<code>make demo ROBOT=&lt;mine&gt;</code><button>copy</button>" in text
    assert text.startswith("Run ")
    assert text.endswith(" now.")


def test_a_page_of_the_documentation_becomes_a_link_to_a_file_that_exists():
    text = prose("docs/conventions.md says it, docs/conventions.md#frames too")
    links = re.findall(r'href="([^"]+)"', text)
    assert len(links) == 2
    assert all(link.startswith("file:///") for link in links)
    assert links[1].endswith("docs/conventions.md#frames")


def test_the_policy_of_a_page_allows_its_own_script_only():
    text = page("a", *[])
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    assert "script-src 'sha256-" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2]


def test_plus_minus_is_a_sign_and_markup_in_texts_stays_text():
    text = report("t", "1 +- 2 mm", then=["<script>alert(1)</script>"])
    assert "1 ± 2 mm" in text
    assert "<script>alert" not in text
