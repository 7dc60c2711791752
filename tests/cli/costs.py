"""What rows of a sweep cost: phasor bench --decode, and the columns that its costs.json gives a table."""
import csv
import io
import json
import os

from harness import Case, main


class Costs(Case):
    def table(self, *more):
        return list(csv.DictReader(io.StringIO(self.phasor("table", "out", "--format", "csv", *more).split("csv   ")[0])))

    def test_one_experiment(self):
        text = self.phasor("bench", "base.json", "--decode", "--steps", "2", "--context", "5", "--context", "20")
        self.assertRegex(text, r"(?m)^prefill +[\d.]+ ms \([\d.]+ to [\d.]+\) for 8 x 7 tokens and the one after them, [\d,]+ tokens/s$")
        self.assertRegex(text, r"(?m)^decode +[\d.]+ ms \([\d.]+ to [\d.]+\) of every row after 5 tokens, with 608 B of state a row$")
        self.assertRegex(text, r"(?m)^ +20 +[\d.]+ ms")
        softmax = ["--set", 'model.backbone={"name": "transformer", "heads": 2}', "--set", 'model.encoding={"name": "rope"}']
        text = self.phasor("bench", "base.json", "--decode", "--steps", "1", "--context", "5", "--context", "20", "--rows", "1", *softmax)
        self.assertRegex(text, r"(?m)^ +5 .* 320 B ")  # keys and values of 8 numbers a token
        self.assertRegex(text, r"(?m)^ +20 .* 1,280 B ")
        table = ["--set", 'model.encoding={"name": "learned_absolute"}', *softmax[:2]]
        self.phasor("bench", "base.json", "--decode", "--steps", "1", *table)  # the default contexts are within what it knows
        self.assertIn("position", self.phasor("bench", "base.json", "--decode", "--steps", "1", "--context", "500", *table, code=2))

    def test_a_sweep(self):
        self.phasor("sweep", "sweep.json", "--out", "out")
        before = self.table()
        self.assertEqual({line["decode_ms"] for line in before}, {"NA"})
        self.assertNotIn("cost of variant", self.phasor("table", "out"))
        text = self.phasor("bench", "out", "--decode", "--steps", "2")
        self.assertRegex(text, r"NoPE / lr 0.01 / seed \d   step [\d.]+ ms, prefill [\d.]+ ms, one token [\d.]+ ms, state 512 B")
        self.assertRegex(text, r"Selective / lr 0.01 / seed \d   step")
        with open(self.path("out/costs.json")) as file:
            costs = json.load(file)
        self.assertEqual(len(costs["entries"]), 2, "one trial of every shape")
        lines = self.table()
        for line in lines:
            entry = next(one for one in costs["entries"] if one["state_bytes"] == int(line["state_bytes"]))
            self.assertAlmostEqual(float(line["decode_ms"]), entry["decode_ms"]["median"], delta=1e-4)
            self.assertAlmostEqual(float(line["training_ms"]), entry["training_ms"]["median"], delta=1e-4)
            self.assertEqual(int(line["training_bytes"]), entry["training_bytes"])
            base = next(other for other in lines if other["variant"] == "NoPE")
            self.assertAlmostEqual(float(line["state_ratio"]), int(line["state_bytes"]) / int(base["state_bytes"]), delta=1e-4)
        self.assertEqual([line["decode_ratio"] for line in lines[:2]], ["1.0000"] * 2)
        shown = self.phasor("table", "out")
        self.assertIn("cost of variant", shown)
        self.assertIn("no part of a trial's bits", shown)
        self.assertNotIn("another build", shown)
        self.assertIn("cost of variant", self.phasor("table", "out", "--format", "latex"))
        self.phasor("report", "out", "--out", "r.html")
        with open(self.path("r.html")) as file:
            self.assertIn("cost of variant", file.read())
        self.phasor("verify", "out")
        costs["facts"]["commit"] = "of another day"
        self.write("out/costs.json", costs)
        self.assertIn("the trials are of another build or machine", self.phasor("table", "out"))
        self.write("out/costs.json", "{}")
        self.assertIn("costs.json", self.phasor("table", "out", code=2))

    def test_mistakes(self):
        os.mkdir(self.path("empty"))
        self.assertIn("sweep.json", self.phasor("bench", "empty", "--decode", code=2))
        self.assertIn("found a folder", self.phasor("bench", "empty", code=2))
        self.assertIn("found without --decode", self.phasor("bench", "base.json", "--context", "5", code=2))
        self.assertIn('--context: found "5x"', self.phasor("bench", "base.json", "--decode", "--context", "5x", code=2))
        self.assertIn("found with --decode", self.phasor("bench", "base.json", "--decode", "--against", "seed=1", code=2))


if __name__ == "__main__":
    main()
