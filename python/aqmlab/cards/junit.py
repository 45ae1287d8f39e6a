"""A card as JUnit XML: a test case for each gate and finding, the grades as properties."""

from __future__ import annotations

from xml.etree import ElementTree

from aqmlab.cards.card import Card
from aqmlab.cards.findings import FAIL, NOTE
from aqmlab.cards.page import failure

__all__ = ["junit"]


def junit(card: Card) -> str:
    """The card for continuous integration, and for teachers: names, and what passes.

    The property ``points`` counts gates and findings that pass among those that were run; what
    only warns passes. The properties ``grade AREA`` are the grades.
    """
    gates = [gate for gate in card.gates if gate.passed is not None]
    found = [one for one in card.findings if one.outcome != NOTE]
    failed = [gate.rule.name for gate in gates if not gate.passed]
    failed += [one.name for one in found if one.outcome == FAIL]
    count = len(gates) + len(found)
    suite = ElementTree.Element(
        "testsuite", name=card.name, tests=str(count), failures=str(len(failed))
    )
    properties = ElementTree.SubElement(suite, "properties")
    values = {"points": f"{count - len(failed)} of {count}", "sha256": card.sha256}
    values |= {f"grade {area.name}": area.grade for area in card.areas}
    for name, value in values.items():
        ElementTree.SubElement(properties, "property", name=name, value=value)
    for gate in gates:
        case = ElementTree.SubElement(suite, "testcase", classname="gates", name=gate.rule.name)
        if not gate.passed:
            ElementTree.SubElement(case, "failure", message=failure(gate))
    for one in found:
        case = ElementTree.SubElement(suite, "testcase", classname="findings", name=one.name)
        if one.outcome == FAIL:
            ElementTree.SubElement(case, "failure", message=one.text)
        elif one.text:
            ElementTree.SubElement(case, "system-out").text = f"warning: {one.text}"
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
