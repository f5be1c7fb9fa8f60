"""What is on a page of HTML."""

from html.parser import HTMLParser

from com_model.html import SCRIPT


class Page(HTMLParser):
    """Collects tags and texts, and checks that tags are closed in order.

    Attributes:
        headings: texts of h1 and h2.
        paragraphs: texts of p.
        addresses: of what the page asks for or points at.
    """

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.addresses, self._open = [], [], [], []
        self._blocks = {"h1": [], "h2": [], "p": []}
        self.feed(text)
        assert not self._open
        self.headings = self._blocks["h1"] + self._blocks["h2"]
        self.paragraphs = self._blocks["p"]

    @property
    def text(self):
        """All texts."""
        return " ".join(self.texts)

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in ("meta", "img"):
            self._open.append(tag)
        if tag in self._blocks:
            self._blocks[tag].append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        named = {"href", "src", "xlink:href", "action", "data", "poster"}
        self.addresses += [value for name, value in attributes if name in named]

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, text):
        self.texts.append(text)
        for tag in self._open[-1:]:
            if tag in self._blocks:
                self._blocks[tag][-1] += text


def assert_report(text):
    """A page of a run that has ended: verdict first, what to do next last, nothing from outside.

    Links lead to files of the documentation; the only script is the page's own.
    """
    page = Page(text)
    assert page.tags.index("h1") < page.tags.index("p") < page.tags.index("h2")
    assert page.paragraphs[0].strip()
    assert page.headings[-1] == "What next"
    assert page.text.index("What next") < len(page.text) - 20
    for address in page.addresses:
        local = address.startswith("file:///") and "/docs/" in address
        assert local or address.startswith(("data:image/png", "#")), address
    assert page.tags.count("script") == 1
    assert text.count(SCRIPT) == 1
    return page
