"""One folder holds one sweep: another one is refused, an edited one goes on."""
import json
import os

from harness import Case, main, sweep


class TwoSweeps(Case):
    def make(self, *more, code=0):
        return self.phasor("sweep", "sweep.json", "--out", "out", *more, code=code)

    def edit(self, **changes):
        spec = sweep()
        for name, values in changes.items():
            axis, = [axis for axis in spec["axes"] if axis["name"] == name]
            axis["points" if name == "variant" else "values"] = values
        return spec

    def refused(self, *words):
        """By everything that would write there or speak of it as of its own; the folder stays as it is."""
        before = self.listing()
        for command in [("sweep", "sweep.json"), ("sweep", "sweep.json", "--dry-run"), ("describe", "sweep.json")]:
            text = self.phasor(*command, "--out", "out", code=2)
            for word in ["out: holds another sweep, with records of 4 of its trials:", "another folder with --out", "remove out/sweep.json", *words]:
                self.assertIn(word, text)
        self.assertEqual(self.listing(), before)

    def test_another_name(self):
        self.make()
        self.write("sweep.json", sweep(name="other"))
        self.refused('name: "tiny" there, "other" now')
        with open(self.path("out/sweep.json")) as file:
            self.assertEqual(json.load(file)["name"], "tiny")
        os.remove(self.path("out/sweep.json"))  # as the message says
        self.assertIn("4 trials, 4 done", self.make())

    def test_the_same_name_and_other_rows(self):
        self.make()
        rows = [{"label": "RoPE", "set": {"model.encoding": {"name": "rope"}}}, {"label": "ALiBi", "set": {"model.encoding": {"name": "rope", "theta": 7.0}}}]
        spec = self.edit(variant=rows)
        spec["table"]["baseline"] = "RoPE"
        self.write("sweep.json", spec)
        self.refused("axis variant: NoPE, Selective there, RoPE, ALiBi now; no trial is in both")
        spec["axes"].append({"name": "width", "role": "column", "path": "model.dim", "values": [16]})
        self.write("sweep.json", spec)
        self.refused("axes: variant (row) x lr (select) x seed (replicate) there, variant (row) x lr (select) x seed (replicate) x width (column) now")

    def test_an_edited_sweep_goes_on(self):
        self.make()
        for changes, finished in [({"seed": [0, 1, 2]}, "finished 2   ok 6"), ({"lr": [0.02, 0.03]}, "finished 8   ok 8"),
                                  ({"seed": [7]}, "finished 2   ok 2"), ({"variant": sweep()["axes"][0]["points"][:1]}, "2 trials, 2 done")]:
            self.write("sweep.json", self.edit(**changes) if "variant" not in changes else {**self.edit(**changes), "note": "one row less"})
            self.assertIn(finished, self.make())

    def test_a_damaged_manifest_is_told(self):
        self.make()
        self.write("out/sweep.json", "{")
        self.assertRegex(self.phasor("describe", "sweep.json", "--out", "out"), r"out/sweep\.json:1:\d+.*`phasor sweep` writes it anew")
        text = self.make()
        self.assertRegex(text, r"(?m)^damaged +out/sweep\.json:1:\d+.*; it is written anew$")
        self.assertIn("4 trials, 4 done", text)
        self.assertNotIn("damaged", self.make())

    def test_the_sweeps_own_file_is_not_taken_for_a_damaged_manifest(self):
        with open(self.path("sweep.json")) as file:
            own = file.read()
        for command in [("sweep", "sweep.json"), ("sweep", "sweep.json", "--dry-run"), ("describe", "sweep.json")]:
            text = self.phasor(*command, "--out", ".", code=2)
            self.assertIn('./sweep.json: found JSON without "format", expected the manifest', text)
            self.assertIn("choose another folder with --out", text)
        for command in ("table", "status", "verify"):
            self.assertIn('found JSON without "format", expected the manifest', self.phasor(command, ".", code=3 if command == "verify" else 2))
        with open(self.path("sweep.json")) as file:
            self.assertEqual(file.read(), own)


if __name__ == "__main__":
    main()
