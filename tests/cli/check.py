"""phasor check: nothing is wrong with what is shipped, and a planted leak in a plugin outside the tree is found (A9).
phasor plugins: the pairs that it lists are those that an experiment refuses, no more and no fewer."""
import json
import os
import re

from harness import Case, experiment, main

LEAKY = os.environ["PHASOR_LEAKY"]


class Check(Case):
    def verdicts(self, output):
        """(backbone, encoding) to the verdict."""
        rows = [line.split(maxsplit=2) for line in output.splitlines()]
        return {(backbone, encoding): verdict for backbone, encoding, verdict in rows}

    def test_what_is_shipped(self):
        found = self.verdicts(self.phasor("check"))
        self.assertEqual(found["gla", "nope"], "ok")
        self.assertEqual(found["gla", "rope"], "ok")
        self.assertEqual(found["gla", "selective_rope"], "ok")
        self.assertTrue(found["base_conv", "rope"].startswith("refused: "), found["base_conv", "rope"])
        for pair, verdict in found.items():
            self.assertTrue(verdict == "ok" or verdict.startswith("refused: "), f"{pair}: {verdict}")

    def test_a_planted_leak(self):
        found = self.verdicts(self.phasor("check", "leaky", "--plugin", LEAKY, code=3))
        self.assertRegex(found["leaky", "nope"], r"^LEAKS: position 0, 1, .* read later tokens; position .* gradients to later tokens")
        self.assertNotIn(("gla", "nope"), found)
        found = self.verdicts(self.phasor("check", "nope", PHASOR_PLUGIN_PATH=os.path.dirname(LEAKY), code=3))
        self.assertEqual(found["gla", "nope"], "ok")
        self.assertRegex(found["forgetful", "nope"], "^LEAKS: .* when the sequence is cut$")
        self.assertRegex(found["crossing", "nope"], "^LEAKS: .* other documents of their row$")

    def test_names(self):
        self.assertEqual(len(self.phasor("check", "gla").splitlines()), len(set(self.verdicts(self.phasor("check", "gla")))))
        self.assertIn('did you mean "rope"', self.phasor("check", "rop", code=2))
        self.assertIn("--plugin", self.phasor("check", "--plugin", "missing.so", code=2))

    def test_listed_pairs_are_those_that_are_refused(self):
        self.write("base.json", experiment(**{"model.dim": 64, "train.steps": 1}))
        text = self.phasor("plugins", "--plugin", LEAKY)
        names = {kind: re.findall(rf"^{kind} +(\S+) +\d", text, re.MULTILINE) for kind in ["backbone", "encoding"]}
        found = re.findall(r"^((\S+) does not fit the backbone (\S+): .+)$", text, re.MULTILINE)
        listed = {(backbone, encoding): line for line, encoding, backbone in found}
        self.assertEqual(len(found), len(listed), text)
        self.assertIn(("leaky", "rope"), listed)  # asked, not known
        self.assertIn(("gla", "alibi"), listed)
        for backbone in names["backbone"]:
            for encoding in names["encoding"]:
                line = listed.pop((backbone, encoding), None)
                output = self.phasor("run", "base.json", "--out", "out", "--plugin", LEAKY,
                                     "--set", "model.backbone=" + json.dumps({"name": backbone}),
                                     "--set", "model.encoding=" + json.dumps({"name": encoding}), code=2 if line else 0)
                if line:
                    self.assertIn("model.encoding: " + line, output)
        self.assertEqual(listed, {})  # all were of this kind


if __name__ == "__main__":
    main()
