"""What an audit finds."""

from __future__ import annotations

from dataclasses import dataclass

SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a model, or may be.

    Attributes:
        severity: "error": results or simulations are wrong; "warning": probably; "info": look.
        element: The element of the URDF, with its line where it is one.
        message: What is the matter.
        fix: What to do.
    """

    severity: str
    element: str
    message: str
    fix: str


@dataclass(frozen=True)
class AuditReport:
    """All findings about a model, errors first.

    Attributes:
        title: The model in one line.
        findings: The findings.
    """

    title: str
    findings: tuple[Finding, ...]

    def of(self, severity: str) -> tuple[Finding, ...]:
        """Lists the findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity == severity)

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not self.of("error")

    def text(self) -> str:
        """Writes the report for a person."""
        lines = [self.title]
        for f in self.findings:
            lines += [f"{f.severity + ':':<9}{f.element}: {f.message}", f"{'':<9}-> {f.fix}"]
        counts = [(len(self.of(severity)), severity) for severity in SEVERITIES[:2]]
        words = [f"{n or 'no'} {severity}{'s' if n != 1 else ''}" for n, severity in counts]
        return "\n".join([*lines, ", ".join(words)])


def report(title: str, findings: list[Finding]) -> AuditReport:
    """Makes a report with the findings in order of severity."""
    return AuditReport(title, tuple(sorted(findings, key=lambda f: SEVERITIES.index(f.severity))))
