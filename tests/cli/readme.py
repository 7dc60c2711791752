"""What README shows as whole files can be saved and run as they stand."""
import os
import re

from harness import Case, main

readme = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "README.md")


class Readme(Case):
    def test_experiment_and_sweep_of_recall(self):
        with open(readme) as file:
            blocks = re.findall(r"\n\n((?:    .*\n)+)", file.read())
        whole = [block for block in blocks if block.startswith("    {\n")]
        self.assertEqual(len(whole), 2)
        for name, block in zip(("recall.json", "recall_sweep.json"), whole):
            with open(self.path(name), "w") as file:
                file.write(re.sub("(?m)^    ", "", block))
        text = self.phasor("sweep", "recall_sweep.json", "--out", "recall", "--set", "train.steps=2")
        self.assertIn("finished 8   ok 8", text)
        self.assertRegex(self.phasor("table", "recall"), r"(?m)^RoPE \(baseline\) +\.\d+")


if __name__ == "__main__":
    main()
