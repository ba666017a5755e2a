"""The report on a model of pictures: the score, what is confused with what (the pictures themselves), and the network found.

from_images(estimator, evaluation, facts) → ReportData;  image_sections(data, evaluation)       sections.py, the others
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from meristem.check import many
from meristem.data.image_reader import png_bytes
from meristem.pictures import figure_style
from meristem.pictures.figure_style import GRID, Axes
from meristem.pictures.image_files import page_svg
from meristem.report.baselines import Comparison, compare, compare_scores, short_of_time
from meristem.report.formatting import count, duration, percent, significant
from meristem.report.metric_formulas import Outcome, Predicted
from meristem.report.report_data import OTHER_ROWS, ReportData, Section, Table
from meristem.report.scoring import CLASS, Scorer
from meristem.report.sections import calibration_section, confusion_section, score_section
from meristem.report.sections_model import path_section, versions
from meristem.report.task_metrics import BY_LABEL, evaluate, scores_in
from meristem.show.elements import el, shorten
from meristem.show.network_structure import stages_of
from meristem.show.structure_drawing import gallery, networks_of

MOST_PICTURES, EACH = 24, 3  # that are shown, and of each confusion
SIDE = 72  # of a picture on the page
MOST_NAMED = 6  # layers of a legend
STEPS = {"reading": "reading the pictures", "baselines": "baselines", "search": "search", "all": "total"}
UNKNOWN = "(unknown class)"
MAY_BE_LEARNED = "If the model learned from some of these pictures, which its file cannot tell, it will be worse on others."


@dataclass(frozen=True, eq=False)
class ImageEvaluation:
    """The pictures that were held out, and what is predicted for them."""

    pixels: np.ndarray = field(repr=False)  # bytes [n, height, width] or [n, height, width, 3]
    names: tuple[str, ...] = field(repr=False)  # of their files
    outcome: Outcome
    outputs: np.ndarray = field(repr=False)
    baselines: dict[str, Predicted] = field(repr=False)


def evaluate_images(
    estimator: Any,
    pixels: np.ndarray,
    labels: np.ndarray,
    names: tuple[str, ...],
    baselines: dict[str, Predicted] | None = None,
) -> ImageEvaluation:
    """Return what a fitted estimator predicts for pictures, whose labels may be of no class that it has."""
    targets, outputs = estimator._targets_, estimator._outputs_of(pixels)
    codes = {label: code for code, label in enumerate(targets.classes.tolist())}
    true = np.array([codes.get(label, -1) for label in labels.tolist()])
    predicted = Predicted(np.searchsorted(targets.classes, targets.decode(outputs)), targets.probabilities(outputs))
    outcome = Outcome(CLASS, true, predicted, len(targets.classes), targets.positive)
    return ImageEvaluation(pixels, names, outcome, outputs, baselines or {})


def scorer_of(facts: dict[str, Any], evaluation: ImageEvaluation) -> Scorer:
    return Scorer(CLASS, evaluation.outcome.y, tuple(facts["classes"]))


def compare_images(facts: dict[str, Any], evaluation: ImageEvaluation) -> tuple[Comparison, ...]:
    """Compare the model with its baselines, picture by picture."""
    scorer, outcome, metric = scorer_of(facts, evaluation), evaluation.outcome, BY_LABEL[facts["score"]["measure"]]
    own = evaluation.baselines, facts["baselines"]
    return compare(scorer, outcome.predicted.values, *own, int(facts["seed"]), outcome=outcome, metric=metric)


def from_images(estimator: Any, evaluation: ImageEvaluation, facts: dict[str, Any], *, is_held_out: bool = True) -> ReportData:
    """Return the data of the report on a fitted TunnelImageClassifierCV, for the pictures that `fit` held out or for others."""
    n, baselines = len(evaluation.names), facts["baselines"]
    note = f"The baselines learned from the same pixels and are evaluated on the same {n:,} pictures.{short_of_time(baselines)}"
    score, metrics = facts["score"], scores_in(facts)
    if is_held_out:
        others = compare_images(facts, evaluation)
    else:
        metrics, note = evaluate(evaluation.outcome, int(facts["seed"])), OTHER_ROWS
        score = BY_LABEL[score["measure"]].score(evaluation.outcome, int(facts["seed"]))
        others = compare_scores(baselines, score, is_held_out=False)
    return ReportData(
        model=estimator,
        target=f"{facts['target']} ({Path(facts['source']).name})",
        rows=f"{n:,} held-out pictures" if is_held_out else f"{n:,} pictures",
        score=score,
        n_rows=n,
        baselines=others,
        baselines_note=note,
        is_paired=is_held_out,
        metrics=metrics,
        row_caveats=() if is_held_out else (MAY_BE_LEARNED,),
        scorer=scorer_of(facts, evaluation),
        outcome=evaluation.outcome,
        predictions=evaluation.outcome.predicted.values,
        outputs=evaluation.outputs,
        facts=facts,
    )


def image_sections(data: ReportData, evaluation: ImageEvaluation) -> list[Section]:
    assert data.scorer is not None and data.predictions is not None
    made = [
        score_section(data),
        confused_section(data, evaluation),
        confusion_section(data, data.scorer, data.predictions),
        network_section(data),
        channels_section(data),
        path_section(data),
        calibration_section(data, data.scorer, data.predictions),
        usage_section(data),
        provenance_section(data),
    ]
    return [section for section in made if section is not None]


def confused_section(data: ReportData, evaluation: ImageEvaluation) -> Section | None:
    """Return pictures of the most frequent confusions, the surest mistakes of each first."""
    outcome, labels = evaluation.outcome, [*data.facts["classes"], UNKNOWN]
    predicted, probabilities = outcome.predicted.values, outcome.predicted.probabilities
    wrong = np.flatnonzero(outcome.y != predicted)
    if not len(wrong) or probabilities is None:
        return None
    pairs: dict[tuple[int, int], list[int]] = {}
    for row in wrong[np.argsort(-probabilities[wrong, predicted[wrong]], kind="stable")].tolist():
        pairs.setdefault((int(outcome.y[row]), int(predicted[row])), []).append(row)
    frequent = sorted(pairs.values(), key=len, reverse=True)
    selected = [row for rows in frequent for row in rows[:EACH]][:MOST_PICTURES]
    cards = []
    for row in selected:
        true, predicted_name = (shorten(labels[code], 18) for code in (outcome.y[row], predicted[row]))
        share = percent(float(probabilities[row, predicted[row]]))
        title = f"{evaluation.names[row]}: {labels[outcome.y[row]]}, predicted as {labels[predicted[row]]} ({share})"
        source = f"data:image/png;base64,{base64.b64encode(png_bytes(evaluation.pixels[row])).decode()}"
        picture = el("img", src=source, alt=title, title=title, width=SIDE)
        cards.append(el("li", picture, el("span", true), el("b", f"→ {predicted_name}"), el("small", share)))
    text = (
        f"{count(len(wrong))} of {many(len(predicted), 'picture')} are wrong; {many(len(selected), 'is', 'are')} shown, of the "
        "most frequent confusions the ones with the highest probability: the true class, what is predicted, and its share."
    )
    return Section("confused", "Pictures that are confused", [text], [el("ul", *cards, class_="pictures")])


def network_section(data: ReportData) -> Section:
    """Return the network found as a picture, and the channels of each layer."""
    text = ["Layer by layer, from the pixels to the classes; each cell is a channel, and the numbers count what is open."]
    tables = []
    for number, member in enumerate(data.members, 1):
        rows = [list(row) for row in _channels(member.network_)]
        which = f" of network {number}" if len(data.members) > 1 else ""
        tables.append(Table(f"Channels{which}", ["layer", "open", "most"], rows, is_folded=len(data.members) > 1))
    return Section("network", "The network found", text, [gallery(networks_of(data.members), name="network")], tables)


def _channels(network: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each layer with gates, its open channels, and all of them."""
    for number, stage in enumerate(stages_of(network), 1):
        for row in stage.above:
            if row.name == "trunk":
                yield f"stage {number}, trunk", count((row.gates > 0).sum()), count(row.gates.size)
        for block, gates in enumerate(getattr(stage.structure, "values", ()), 1):
            yield f"stage {number}, block {block}", count((gates > 0).sum()), count(gates.size)


def channels_section(data: ReportData) -> Section:
    """Return the channels of each layer, and the loss, over the epochs."""
    members = data.members
    sizes = members[0].history_["layer_sizes"]
    first, last = (significant(float(sizes[at].sum())) for at in (0, -1))
    most = significant(float(sizes.sum(1).max()))
    text = (
        f"{count(members[0].n_iter_)} epochs. The sum of the gates of all layers is {first} after the first epoch, {most} at "
        f"most, {last} at the end. A line is a layer with gates, from the pixels (purple) to the classes (yellow)."
    )
    if len(members) > 1:
        text += f" Of {count(len(members))} networks the first is drawn."

    def draw(losses: Axes, channels: Axes) -> None:
        figure_style.plot_curve(losses, members[0].history_["loss"], label="training loss", color=figure_style.SERIES[0])
        losses.set(ylabel="training loss")
        colors = figure_style.layer_colors(sizes.shape[1])
        for layer, color in enumerate(colors):
            figure_style.plot_curve(channels, sizes[:, layer], color=color, label=f"layer {layer + 1}")
        if len(colors) <= MOST_NAMED:
            place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2, "frameon": False}
            channels.legend(**place, fontsize="small", ncols=3, handlelength=1.4, columnspacing=1.1)
        channels.set(xlabel="epoch", ylabel="sum of gates")
        for ax in (losses, channels):
            figure_style.from_zero(ax, min_span=0.5)
            ax.grid(axis="y", color=GRID)
        channels.xaxis.get_major_locator().set_params(integer=True)

    chart = page_svg("channels", "Loss and channels by epoch", text, draw, height=400, rows=2)
    return Section("channels", "Channels over the epochs", [text], [chart])


def usage_section(data: ReportData) -> Section:
    height, width = data.facts["size"]
    colors = "gray, [N, height, width]" if data.facts["gray"] else "red, green and blue, [N, height, width, 3]"
    onnx = (
        f"model.onnx needs onnxruntime only, in any language. Its input `X` are pixels as float32 from 0 to 255, {colors}, "
        f"scaled to {height} × {width}; it returns the label and the probabilities of each picture."
    )
    python = 'import meristem\n\nmodel = meristem.load("model.safetensors")\nmodel.predict("folder")  # or a list of paths\n'
    shell = "meristem predict model.safetensors folder --out predictions.csv\n"
    return Section("load", "How to use the model", [onnx], code=[python, shell])


def provenance_section(data: ReportData) -> Section:
    facts, rows = data.facts, data.facts["rows"]
    height, width = facts["size"]
    items = {
        "estimator": f"{facts['estimator']}, {facts.get('body', '')}",
        "pictures": f"{shorten(facts['source'], 120)}: {count(rows['train'])} to learn from, {count(rows['test'])} held out",
        "size": f"every picture was scaled to {height} × {width}, {'gray' if facts['gray'] else 'in color'}",
        "classes": many(len(facts["classes"]), "class", "classes"),
        "device": f"{facts['device']}, {many(int(facts['cores']), 'core')}",
        "seed": str(facts["seed"]),
    }
    for name, numbers in (("versions of the fit", facts.get("versions")), ("versions of this report", versions())):
        if numbers:
            items[name] = ", ".join(f"{package} {number}" for package, number in numbers.items())
    times = [[name, duration(float(facts["seconds"][key]))] for key, name in STEPS.items()]
    origin = Table("Origin of the model", ["item", "value"], [list(item) for item in items.items()])
    return Section("made", "Data, seed and versions", [], [], [origin, Table("Time", ["step", "time"], times)])
