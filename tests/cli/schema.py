"""The schemas: the committed ones are what the program prints, shipped files fit them, typical mistakes do not."""
import copy
import glob
import json
import os

from jsonschema import Draft202012Validator

from harness import ROOT, Case, experiment, main, sweep

SHIPPED = [(kind, file) for kind, folder in [("experiment", "experiments"), ("sweep", "sweeps")]
           for file in sorted(glob.glob(os.path.join(ROOT, folder, "**/*.json"), recursive=True))]


def read(file):
    with open(file) as stream:
        return json.load(stream)


class Schema(Case):
    def setUp(self):
        super().setUp()
        self.phasor("schema", "--write", "schema")
        self.validators = {kind: Draft202012Validator(read(self.path(f"schema/{kind}.json"))) for kind in ("experiment", "sweep")}

    def mistakes(self, kind, value):
        return [f"{'.'.join(map(str, e.absolute_path))}: {e.message}" for e in self.validators[kind].iter_errors(value)]

    def test_they_are_schemas(self):
        for validator in self.validators.values():
            Draft202012Validator.check_schema(validator.schema)

    def test_the_committed_ones_are_up_to_date(self):
        for kind in self.validators:
            with open(os.path.join(ROOT, f"docs/schema/{kind}.json")) as committed, open(self.path(f"schema/{kind}.json")) as now:
                self.assertTrue(committed.read() == now.read(), f"docs/schema/{kind}.json is not what this program prints; "
                                "when plugins or options changed:  build/bin/phasor schema --write docs/schema")
            with open(self.path(f"schema/{kind}.json")) as written:
                self.assertEqual(self.phasor("schema", kind), written.read())
        self.assertIn("experiment", self.phasor("schema", "experment", code=2))

    def test_shipped_files_fit(self):
        self.assertGreaterEqual(len(SHIPPED), 3)
        for kind, file in SHIPPED:
            value = read(file)
            self.assertEqual(self.mistakes(kind, value), [], file)
            self.assertIn("$schema", value, file)
            target = os.path.normpath(os.path.join(os.path.dirname(file), value["$schema"]))
            self.assertEqual(target, os.path.join(ROOT, f"docs/schema/{kind}.json"), file)

    def test_what_the_program_takes_fits(self):
        self.assertEqual(self.mistakes("experiment", experiment()), [])
        self.assertEqual(self.mistakes("sweep", sweep()), [])
        resolved = json.loads(self.phasor("describe", "base.json", "--json"))["spec"]
        self.assertEqual(self.mistakes("experiment", resolved), [])

    def test_mistakes_in_experiments(self):
        self.assertEqual(self.mistakes("experiment", experiment(**{"optimizer.betas": [0.9, 0.99], "train.lanes": None})), [])
        for path, value in [("learnig_rate", 0.1), ("optimizer.lrr", 0.1), ("optimizer.lr", "1e-3"), ("optimizer.lr", -1.0),
                            ("train.steps", 0), ("train.steps", 3.5), ("train.steps", True), ("train.precision", "f16"),
                            ("model.encoding.name", "ropee"), ("model.encoding.theta", 2.0), ("model.encoding", "rope"),
                            ("model.encoding", {}), ("model.encoding.gate", {"kind": "standrd"}), ("task.group", 2),
                            ("optimizer.schedule.name", "cosin"), ("optimizer.betas", [0.9, "x"]), ("model.tie_head", "true"),
                            ("model.backbone.num-heads", 2), ("seed", -1), ("run.threads", 0)]:
            bad = experiment(**{path: value})
            self.assertNotEqual(self.mistakes("experiment", bad), [], f"{path} = {value}")
            self.write("bad.json", bad)
            self.phasor("describe", "bad.json", code=2)  # the program agrees
        for missing in ["task", "model"]:
            bad = experiment()
            del bad[missing]
            self.assertNotEqual(self.mistakes("experiment", bad), [], missing)
        # Of another plugin: right there, wrong here.
        self.assertEqual(self.mistakes("experiment", experiment(**{"model.encoding": {"name": "rope", "theta": 2.0}})), [])
        self.assertNotEqual(self.mistakes("experiment", experiment(**{"model.encoding": {"name": "rope", "bias": True}})), [])

    def test_mistakes_in_sweeps(self):
        def change(*path, to):
            bad = copy.deepcopy(sweep())
            at = bad
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = to
            return bad

        good = change("axes", 0, "points", 1, "set", to={"model.encoding.gate.kind": "standard", "model.encoding.theta": 3.0})
        self.assertEqual(self.mistakes("sweep", good), [])
        for bad in [change("axs", to=[]), change("axes", to=[]), change("axes", 1, "role", to="selct"),
                    change("axes", 1, "path", to="optimizer.lrr"), change("axes", 1, "values", to=["1e-3"]),
                    change("axes", 1, "values", to=[-1.0]), change("axes", 1, "points", to=[]),
                    change("axes", 0, "points", 0, "set", "model.encoding", to={"name": "nop"}),
                    change("axes", 0, "points", 0, "set", to={"model.encoding.gate.kind": "standrd"}),
                    change("axes", 0, "points", 0, "set", to={"model.encodin.theta": 1.0}),
                    change("axes", 0, "points", 0, "label", to=""), change("table", "select", "split", to="test"),
                    change("table", "select", "metric", to="acuracy"), change("table", "solved_at", to=5),
                    change("table", "report", 0, "slices", to=[0]), change("name", to="a/b"), change("base", to=3)]:
            self.assertNotEqual(self.mistakes("sweep", bad), [], bad)
            self.write("bad.json", bad)
            self.phasor("sweep", "bad.json", "--dry-run", code=2)  # the program agrees


if __name__ == "__main__":
    main()
