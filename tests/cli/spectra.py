"""Phases and gates of a trained model: the numbers of the figures are those of a forward pass made here from the checkpoint."""
import csv
import os
import xml.etree.ElementTree

import h5py
import numpy

from harness import Case, experiment, main

HEADS, PLANES, TAPS = 2, 2, 4


def sigmoid(x):
    return 1.0 / (1.0 + numpy.exp(-x))


def by_hand(values, tokens):
    """Of the first layer, layers.md 2, 3.3 and 5.2: angle [time, heads, planes], phase gate [time, heads], kept [time, heads, 2 planes]."""
    weight = lambda name: values["layers.0." + name].astype(numpy.float64)
    x = values["embeddings.weight"].astype(numpy.float64)[tokens]
    x = x / numpy.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * weight("attn_norm.weight")
    slices = x.reshape(len(tokens), HEADS, -1)
    normed = (slices / numpy.sqrt((slices * slices).sum(axis=2, keepdims=True) + 1e-6)).reshape(x.shape)
    raw = normed @ weight("encoding.phi_proj.0.weight").T @ weight("encoding.phi_proj.1.weight").T
    taps = weight("encoding.phi_conv1d.weight")
    mixed = sum(numpy.vstack([numpy.zeros((back, raw.shape[1])), raw[:len(raw) - back]]) * taps[:, TAPS - 1 - back] for back in range(TAPS))
    phase = mixed.reshape(len(tokens), HEADS, PLANES) + numpy.exp(weight("encoding.phi_bias"))
    gate = sigmoid(normed @ weight("encoding.phase_gate_proj.weight").T + weight("encoding.phase_gate_proj.bias"))
    angle = weight("encoding.temperature") * numpy.cumsum(phase * gate[:, :, None], axis=0)
    logits = x @ weight("attn.gk_proj.0.weight").T @ weight("attn.gk_proj.1.weight").T + weight("attn.gk_proj.1.bias")
    return angle, gate, (sigmoid(logits) ** (1 / 16)).reshape(len(tokens), HEADS, 2 * PLANES)


class Spectra(Case):
    def checkpoint(self, **changes):
        self.write("base.json", experiment(**{"run.keep_checkpoint": True, "train.precision": "f64", "optimizer.lr": 0.05, **changes}))
        self.phasor("run", "base.json", "--out", "out", "--force")
        (name,) = os.listdir(self.path("out/checkpoints"))
        return os.path.join("out/checkpoints", name)

    def drawn(self, checkpoint, *more):
        text = self.phasor("plot", checkpoint, "--figure", "spectra", "--out", "s.svg", *more)
        with open(self.path("s.csv"), newline="") as file:
            return text, list(csv.DictReader(file))

    def test_numbers_are_those_of_a_pass_by_hand(self):
        gated = {"model.encoding.gate": {"kind": "standard"}, "model.encoding.temperature": {"theta": 100.0, "learned": True}}
        checkpoint = self.checkpoint(**gated)
        text, lines = self.drawn(checkpoint, "--row", "3", "--split", "test", "--length", "9")
        self.assertIn("row 3 of test at length 9", text)
        tokens = [int(line["value"]) for line in lines if line["quantity"] == "token"]
        self.assertEqual(len(tokens), 10, "a token before the row and 9 letters")
        with h5py.File(self.path(checkpoint), "r") as file:
            values = {}
            file["values"].visititems(lambda name, node: values.update({name: node[()]}) if isinstance(node, h5py.Dataset) else None)
        shapes = {"encoding.phi_conv1d.weight": (8 // 2, TAPS), "encoding.phi_bias": (HEADS, PLANES), "embeddings.weight": (-1, 8),
                  "encoding.phi_proj.0.weight": (2, 8), "encoding.phi_proj.1.weight": (4, 2), "encoding.phase_gate_proj.weight": (HEADS, 8),
                  "attn.gk_proj.0.weight": (16, 8), "attn.gk_proj.1.weight": (8, 16)}
        for name, shape in shapes.items():
            full = name if name.startswith("embed") else "layers.0." + name
            values[full] = values[full].reshape(shape)
        angle, gate, kept = by_hand(values, tokens)
        counts = {}
        for line in lines:
            quantity, value = line["quantity"], float(line["value"])
            counts[quantity] = counts.get(quantity, 0) + 1
            if quantity in ("token", "initial_temperature"):
                continue
            if quantity == "temperature":
                expected = values["layers.0.encoding.temperature"][int(line["index"])]
            else:
                at, head, index = int(line["position"]), int(line["head"]), int(line["index"])
                expected = {"angle": lambda: angle[at, head, index], "phase_gate": lambda: gate[at, head],
                            "kept": lambda: numpy.percentile(kept[at, head], index)}[quantity]()
            self.assertAlmostEqual(value, expected, delta=1e-9, msg=str(line))
        self.assertEqual(counts, {"token": 10, "temperature": 2, "initial_temperature": 2, "angle": 40, "kept": 60, "phase_gate": 60})
        start = [float(line["value"]) for line in lines if line["quantity"] == "initial_temperature"]
        self.assertEqual(start, [1.0, 0.1])
        now = [float(line["value"]) for line in lines if line["quantity"] == "temperature"]
        self.assertNotEqual(start, now, "they were trained")
        for name, panels in [("temperatures", 1), ("phases", 2), ("gates", 2)]:
            page = xml.etree.ElementTree.parse(self.path(f"s-{name}.svg")).getroot()
            found = [node for node in page.iter() if node.get("class") == "panel"]
            self.assertEqual(len(found), panels, name)

    def test_what_is_not_there_is_said(self):
        fixed = self.checkpoint(**{"model.backbone": {"name": "transformer", "heads": 2}, "model.encoding": {"name": "rope", "theta": 100.0}})
        text, lines = self.drawn(fixed)
        self.assertIn("They are fixed", text)
        self.assertFalse(os.path.exists(self.path("s-gates.svg")))
        angles = [line for line in lines if line["quantity"] == "angle"]
        self.assertEqual({line["head"] for line in angles}, {"0"}, "all heads turn alike")
        for line in angles:
            self.assertAlmostEqual(float(line["value"]), int(line["position"]) * 100.0 ** (-int(line["index"]) / 2), places=12)
        self.phasor("run", "base.json", "--out", "none", "--force", "--set", 'model.encoding={"name": "nope"}')
        (name,) = os.listdir(self.path("none/checkpoints"))
        self.assertIn("has no temperatures, phases or gates", self.phasor("plot", f"none/checkpoints/{name}", "--figure", "spectra", "--out", "n.svg", code=2))
        (record,) = [name for name in os.listdir(self.path("none")) if name.endswith(".h5")]
        self.assertIn("expected a checkpoint", self.phasor("plot", f"none/{record}", "--figure", "spectra", "--out", "n.svg", code=2))

    def test_mistakes(self):
        checkpoint = self.checkpoint()
        plot = lambda *more: self.phasor("plot", checkpoint, "--figure", "spectra", "--out", "s.svg", *more, code=2)
        self.assertIn("--row: found 40, expected 0 to 39", plot("--row", "40"))
        self.assertIn("--length: found 7, expected one of test: 6, 9", plot("--length", "7", "--split", "test"))
        self.assertIn("--split: found", plot("--split", "train"))
        self.assertIn("found a folder, expected the checkpoint", self.phasor("plot", "out", "--figure", "spectra", "--out", "s.svg", code=2))
        self.assertIn("without --figure spectra", self.phasor("plot", "out", "--row", "1", "--out", "s.svg", code=2))


if __name__ == "__main__":
    main()
