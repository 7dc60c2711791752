"""Confirmation: what a sweep chooses runs again on fresh seeds, and only these are reported."""
import csv
import json
import os
import signal
import time

from harness import Case, experiment, main, sweep


class Confirm(Case):
    def setUp(self):
        super().setUp()
        self.spec = sweep(confirm={"seed": [100, 101, 102]})
        self.spec["axes"][1]["values"] = [0.01, 0.02]
        self.write("sweep.json", self.spec)

    def run_sweep(self, *more, code=0):
        return self.phasor("sweep", "sweep.json", "--out", "out", *more, code=code)

    def trials(self):
        return list(csv.DictReader(self.phasor("table", "out", "--form", "trials").splitlines()[:-1]))

    def manifest(self):
        with open(self.path("out/sweep.json")) as file:
            return json.load(file)

    def test_both_phases_in_one_command(self):
        plan = self.run_sweep("--dry-run")
        self.assertIn("2 variant x 2 lr x 2 seed = 8 cells", plan)
        self.assertIn("+ confirm 2 cells x 3 fresh seeds = 6 trials", plan)
        self.assertIn("done 0   to run 14", plan)
        text = self.run_sweep("--jobs", "2")
        self.assertIn("14 trials, 0 done", text)
        self.assertIn("select   8/8 done   lr chosen on valid.sequence_accuracy@6, final", text)
        self.assertIn("finished 14   ok 14   diverged 0   failed 0   missing 0", text)
        self.assertEqual(len(self.records()), 14)
        table = self.phasor("table", "out", "--require-complete")
        self.assertIn("over 3 confirm seeds", table)
        self.assertIn("chosen on valid of seed 0, 1; reported on test of 3 fresh ones", table)
        self.assertNotIn("biased", table)
        fresh = [t for t in self.trials() if t["phase"] == "confirm"]
        self.assertEqual(sorted(t["seed"] for t in fresh), ["100", "100", "101", "101", "102", "102"])
        chosen = {(t["variant"], t["optimizer.lr"]) for t in self.trials() if t["phase"] == "select" and t["chosen"] == "yes"}
        self.assertEqual({(t["variant"], t["optimizer.lr"]) for t in fresh}, chosen)
        # The reported mean is that of the fresh trials, recomputed here.
        with open(self.path("out/table.long.csv")) as file:
            lines = [line for line in csv.DictReader(file) if line["slice"] == "6"]
        for line in lines:
            values = [float(t["test.sequence_accuracy@6"]) for t in fresh if t["variant"] == line["variant"]]
            self.assertAlmostEqual(float(line["mean"]), sum(values) / 3, places=4)
            self.assertEqual((line["n"], line["trials"], line["select_seeds"]), ("3", "7", "0;1"))
        self.assertIn("14 trials, 14 done", self.run_sweep())
        self.assertIn("done 14   to run 0", self.run_sweep("--dry-run"))
        self.assertEqual(json.loads(self.phasor("status", "out", "--json"))["done"], 14)

    def test_what_is_missing_of_either_phase_runs(self):
        self.run_sweep()
        before = self.records()
        of_phase = {phase: sorted(t["file"] for t in self.trials() if t["phase"] == phase) for phase in ["select", "confirm"]}
        for phase in of_phase:
            os.remove(self.path("out/" + of_phase[phase][0]))
            self.assertIn("finished 1   ok 14", self.run_sweep())
        after = self.records()
        self.assertEqual(sorted(after), sorted(before))
        for name in set(before) - {files[0] for files in of_phase.values()}:
            self.assertEqual(after[name], before[name])

    def test_a_new_value_adds_what_is_missing(self):
        self.spec["axes"][1]["values"] = [1e-30]  # learns nothing
        self.write("sweep.json", self.spec)
        self.run_sweep()
        before = self.records()
        self.spec["axes"][1]["values"] = [1e-30, 0.02]
        self.write("sweep.json", self.spec)
        text = self.run_sweep("--jobs", "2")
        self.assertNotIn("belong to no cell", text)
        changed = {t["variant"] for t in self.trials() if t["phase"] == "confirm" and t["optimizer.lr"] == "0.02"}
        self.assertTrue(changed, "the better rate is chosen for one variant at least")
        self.assertIn(f"finished {4 + 3 * len(changed)}   ok 14", text)
        self.assertEqual({name: self.records()[name] for name in before}, before)
        self.phasor("table", "out", "--require-complete")

    def test_an_interrupted_selection_waits(self):
        self.write("base.json", experiment(**{"train.steps": 2000}))
        driver = self.start("sweep", "sweep.json", "--out", "out", "--jobs", "1")
        while not (os.path.isdir(self.path("out/logs")) and os.listdir(self.path("out/logs"))):
            time.sleep(0.02)
        driver.send_signal(signal.SIGINT)
        out, _ = driver.communicate(timeout=120)
        self.assertEqual(driver.returncode, 3)
        self.assertIn("ok 1   diverged 0   failed 0   missing 13", out)
        self.assertEqual(self.manifest()["awaiting"], 6)
        found = json.loads(self.phasor("status", "out", "--json", code=3))
        self.assertEqual((found["trials"], found["done"], found["missing"]), (14, 1, 13))
        self.assertIn("6 fresh trials of the confirmation await the selection", self.phasor("table", "out"))
        self.phasor("table", "out", "--require-complete", code=3)

    def test_a_failed_trial_of_the_selection(self):
        """It makes its value one that is not chosen, as a diverged one does; the confirmation goes on, and says so."""
        self.write("base.json", experiment(**{"train.steps": 1500}))
        driver = self.start("sweep", "sweep.json", "--out", "out", "--jobs", "1")
        while not (os.path.isdir(self.path("out/logs")) and os.listdir(self.path("out/logs"))):
            time.sleep(0.02)
        time.sleep(0.2)
        with open(f"/proc/{driver.pid}/task/{driver.pid}/children") as file:
            os.kill(int(file.read().split()[0]), signal.SIGSEGV)
        out, error = driver.communicate(timeout=600)
        self.assertEqual(driver.returncode, 3, out + error)
        self.assertIn("crashed   NoPE / lr 0.01 / seed 0   killed by signal 11", error)
        self.assertIn("select   1 failed: a value with a failed trial is not chosen where another is whole; --retry-failed", out)
        self.assertIn("finished 14   ok 13   diverged 0   failed 1   missing 0", out)
        confirmed = {(t["variant"], t["optimizer.lr"]) for t in self.trials() if t["phase"] == "confirm"}
        self.assertIn(("NoPE", "0.02"), confirmed)
        self.assertNotIn(("NoPE", "0.01"), confirmed)
        table = self.phasor("table", "out")
        self.assertRegex(table, r"not eligible +.*NoPE.* 0\.01")
        before = self.records()
        text = self.run_sweep("--retry-failed")
        chosen = {(t["variant"], t["optimizer.lr"]) for t in self.trials() if t["phase"] == "confirm"}
        more = 3 * len(chosen - confirmed)  # where the choice is another one now
        self.assertIn(f"finished {1 + more}   ok 14   diverged 0   failed 0   missing 0", text)
        self.assertNotIn("failed: a value", text)
        self.assertEqual(len([name for name, when in before.items() if self.records()[name] != when]), 1)
        self.phasor("table", "out", "--require-complete")

    def test_where_nothing_is_whole_nothing_is_confirmed(self):
        self.spec["axes"][1]["values"] = [1e30]
        self.write("sweep.json", self.spec)
        text = self.run_sweep("--jobs", "2")
        self.assertIn("finished 4   ok 0   diverged 4   failed 0   missing 0", text)
        self.assertIn("6 trials less: where no value is whole there is nothing to confirm", text)
        self.assertIn("n/a", self.phasor("table", "out", "--require-complete"))


if __name__ == "__main__":
    main()
