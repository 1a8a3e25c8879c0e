"""The verdict as JUnit XML, which CI systems show: a test case for each guarantee in its mode, world and storage.

    violated, and not in the baseline                failure
    violated, and in the baseline; not promised,     skipped, with the reason
    not applicable
    inconclusive; what stopped the campaign          error: nothing is known, which must not look like a pass
    holds                                            passed

Whether the suite as a whole passed is one more case, "verdict", which says what the exit code says.
"""

from __future__ import annotations

from xml.etree import ElementTree

from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.report.verdict import EXIT_HOLDS, VerdictOutcome
from marker_sim.report.words import printable

_WAYS = {"violated": "failure", "inconclusive": "error", "not-promised": "skipped", "not-applicable": "skipped"}


def junit_xml(outcome: VerdictOutcome) -> str:
    """The document; names of markers are escaped, so that any reader takes it."""
    campaign = outcome.campaign
    suite = ElementTree.Element("testsuite", name=printable(f"marker-sim {campaign.sut}"))
    suite.set("time", f"{campaign.duration_s:.3f}")
    for row in outcome.rows:
        case = _case(suite, f"{row.world}.{row.mode}.{row.storage}", f"{row.id} {row.slug}")
        way, why = _WAYS.get(row.verdict, ""), f"{row.verdict}: {row.message}".removesuffix(": ")
        if way == "failure" and not _counts(row, outcome):
            way, why = "skipped", f"known: {row.message}"
        if way:
            _add(case, way, why, f"replay: {row.replay}" if way == "failure" and row.replay else "")
    whole = _case(suite, "marker-sim", "verdict")
    if campaign.trouble:
        _add(whole, "error", campaign.trouble)
    elif outcome.exit_code() != EXIT_HOLDS:
        missed = "; ".join((*campaign.not_reached, *campaign.left_out))
        _add(whole, "failure" if outcome.verdict == "violated" else "error", outcome.verdict, missed)
    for counted, way in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(counted, str(len(suite.findall(f"testcase/{way}"))))
    suite.set("tests", str(len(suite)))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _counts(row: VerdictRow, outcome: VerdictOutcome) -> bool:
    """Whether a violation is not in the baseline, or there is none."""
    if outcome.differences is None:
        return True
    place = (row.id, row.mode, row.storage)
    return any((known.guarantee, known.mode, known.storage) == place for known in outcome.differences.unexpected)


def _case(suite: ElementTree.Element, where: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=printable(where), name=printable(name))


def _add(case: ElementTree.Element, way: str, message: str, text: str = "") -> None:
    ElementTree.SubElement(case, way, message=printable(message)).text = printable(text) or None
