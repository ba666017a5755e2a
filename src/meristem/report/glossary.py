"""The words of a report, a line each.

    words(evidence) → Section

docs/report.md has the same lines. Imports section; sections imports it.
"""

from meristem.report.evidence import Evidence
from meristem.report.section import Section, Table

WORDS = {
    "gate": "A number from 0, closed, to 1, open, that says how much of a unit, a layer or an input there is; it is learned.",
    "soft size": "How much of the network is used: the sum of its gates.",
    "hard size": "How many units, or nodes of a tree, are open at all, however little.",
    "penalty, price": "What size costs in training: the higher, the smaller the network.",
    "l2": "How strongly large weights are held back: the higher, the smoother what is learned.",
    "dropout": "The share of inputs that is hidden at random in each step of training.",
    "rate": "The learning rate, how far a step of training goes; it shrinks when the loss falls no more.",
    "to settle": "After learning, a network closes whatever is not worth its price.",
    "left early": "Of a setting: it was behind when settings were compared, and was trained no further.",
    "temperature": "What outputs are divided by before they become probabilities, so that they are as sure as they should be.",
}


def words(evidence: Evidence) -> Section:
    """The same for every model."""
    return Section(
        "words", "Words", [], [], [Table("Words of this page", ["word", "meaning"], [[*one] for one in WORDS.items()])]
    )
