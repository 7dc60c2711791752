"""Models that no machine holds: their size is said, nothing of it is allocated, and nothing is started."""
import json
import os
import re
import resource
import subprocess

import harness
from harness import Case, experiment, main, sweep

LARGEST = {"model.dim": 1 << 20, "model.backbone.heads": 8}  # 60 TB of parameters


class Sizes(Case):
    def in_little_memory(self, *arguments, code):
        """So that a part of it that were asked for would be missed."""
        process = subprocess.run([harness.PHASOR, *arguments], cwd=self.folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, timeout=300,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)))
        self.assertEqual(process.returncode, code, process.stdout)
        return process.stdout

    def test_a_model_that_is_too_wide(self):
        self.write("base.json", experiment(**LARGEST))
        text = self.in_little_memory("describe", "base.json", code=0)
        self.assertRegex(text, r"(?m)^parameters +[\d,]{15,}, of which")
        line, = [line for line in text.splitlines() if line.startswith("memory ")]
        self.assertRegex(line, r"! it does not fit: it needs at least \d+\.\d TB: parameters \d+\.\d TB, .*; this machine has [\d.]+ GB: make model\.dim")
        found = json.loads(self.in_little_memory("describe", "base.json", "--json", code=0))
        self.assertGreater(found["cost"]["least_bytes"], 4 * found["parameters"]["total"])
        self.assertIn("at least", found["cost"]["does_not_fit"])
        for command in [("run", "base.json"), ("sweep", "sweep.json")]:
            text = self.in_little_memory(*command, "--out", "out", code=2)
            self.assertRegex(text, r"phasor: memory: .*it needs at least \d+\.\d TB.*this machine has [\d.]+ GB: make model\.dim")
            self.assertFalse(os.path.exists(self.path("out")))
        text = self.in_little_memory("sweep", "sweep.json", "--out", "out", "--dry-run", code=2)
        self.assertIn("memory           ! 4 of the trials to run cannot run here; NoPE / lr 0.01 / seed 0: it needs at least", text)
        self.assertNotIn("fits", text)
        self.assertIn("no room", self.in_little_memory("describe", "sweep.json", code=0))

    def test_one_row_of_a_sweep_that_is_too_wide(self):
        spec = sweep()
        spec["axes"][0]["points"].append({"label": "vast", "set": {"model.dim": 1 << 20}})
        self.write("sweep.json", spec)
        self.assertIn("2 of the trials to run cannot run here; vast / lr 0.01 / seed 0", self.phasor("sweep", "sweep.json", "--out", "out", code=2))
        self.assertFalse(os.path.exists(self.path("out")))
        self.phasor("sweep", "sweep.json", "--dry-run", "--launcher", "slurm")  # other machines have more
        self.write("sweep.json", {**spec, "limits": {"memory_mb": 1500}})
        self.assertIn("ends as oom, and the others run", self.phasor("sweep", "sweep.json", "--dry-run"))
        text = self.phasor("sweep", "sweep.json", "--out", "out", code=3)
        self.assertIn("ok 4   diverged 0   failed 2   missing 0", text)
        self.assertEqual(text.count("  oom       vast"), 2)

    def test_activations_that_are_too_many(self):
        self.write("base.json", experiment(**{"train.batch": 1 << 24, "train.micro_batch": 1 << 22, "task.train.rows": 1 << 24,
                                              "model.dim": 1024, "model.mlp.width": 64}))
        for command, code in [(("run", "base.json", "--out", "out"), 2), (("describe", "base.json"), 0)]:
            self.assertRegex(self.in_little_memory(*command, code=code), r"memory.*it needs at least .*activations \d+\.\d .B.*this machine has")
        self.assertFalse(os.path.exists(self.path("out")))

    def test_many_layers_are_counted_at_once(self):
        self.write("base.json", experiment(**{"model.layers": 10000, "train.batch": 1, "train.lanes": 1}))
        process = self.start("describe", "base.json")
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, error)
        self.assertIn("x 10000 layers", out)
        self.assertTrue(re.search(r"(?m)^time ", out) or "does not fit" in out, out)


if __name__ == "__main__":
    main()
