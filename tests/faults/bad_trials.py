"""Trials that end badly are rows that say how; the others are done (acceptance A3; L22, L28)."""
import json
import os
import re
import time

from faults import Faults, children, experiment, main, status_of, sweep

BOOM = os.environ["PHASOR_BOOM"]


def boom(label, **options):
    return {"label": label, "set": {"model.encoding": {"name": "boom", **options}}}


class BadTrials(Faults):
    def make(self, points, **more):
        spec = sweep(**more)
        spec["axes"] = [{"name": "variant", "role": "row", "points": points}]
        spec["table"] = {"report": [{"split": "test", "metric": "sequence_accuracy", "slices": [6]}]}
        self.write("sweep.json", spec)

    def five(self):
        """Twelve trials: the third throws, the fifth diverges, the seventh wants all memory, the ninth crashes, the eleventh hangs."""
        points = [boom(f"good {i}") for i in range(12)]
        for i, point in enumerate(points):
            point["set"]["seed"] = i
        points[2] = boom("throws", where="forward")
        points[4]["label"], points[4]["set"]["optimizer.lr"] = "diverges", 1e30
        points[6] = boom("hogs", where="forward", what="hog")
        points[8] = boom("crashes", where="backward", what="segfault")
        points[10] = boom("hangs", where="forward", what="hang")
        self.make(points, limits={"seconds": 10, "memory_mb": 600})
        return {"throws": "error", "diverges": "diverged", "hogs": "oom", "crashes": "crashed", "hangs": "timeout"}

    def test_five_bad_of_twelve(self):
        expected = self.five()
        text = self.phasor("sweep", "sweep.json", "--out", "out", "--jobs", "2", "--plugin", BOOM, code=3)
        self.assertIn("finished 12   ok 7   diverged 1   failed 4   missing 0", text)
        status = json.loads(self.phasor("status", "out", "--json", code=3))
        self.assertEqual({t["name"]: t["status"] for t in status["troubles"]}, expected)
        for trouble in status["troubles"]:
            self.assertIn(f"  {trouble['status']:<8}  {trouble['name']}   {trouble['message']}", text)  # told when it happened
            self.assertTrue(os.path.exists(self.path(trouble["log"])), trouble)
            self.assertEqual(status_of(self.path(f"out/{trouble['id']}.h5")), expected[trouble["name"]])
        messages = {t["name"]: t["message"] for t in status["troubles"]}
        self.assertIn('encoding "boom": forward: boom', messages["throws"])
        self.assertRegex(messages["hogs"], "out of memory")
        self.assertIn("killed by signal 11", messages["crashes"])
        self.assertIn("took longer than 10 s (limits.seconds)", messages["hangs"])
        self.assertEqual(len({t["log"] for t in status["troubles"]}), 5)
        # The command of a row does the same thing again.
        rerun = [t["rerun"] for t in status["troubles"] if t["name"] == "hogs"][0].split()
        self.assertIn("oom: out of memory", self.phasor(*rerun[1:], code=1))
        trials = self.phasor("table", "out", "--format", "csv", "--form", "trials")
        for word in expected.values():
            self.assertEqual(trials.count(f",{word},"), 1, trials)
        self.assertIn("to run 4", self.phasor("sweep", "sweep.json", "--out", "out", "--plugin", BOOM, "--retry-failed", "--dry-run"))
        self.assertIn("to run 0", self.phasor("sweep", "sweep.json", "--out", "out", "--plugin", BOOM, "--only-missing", "--dry-run"))

    def test_fail_fast(self):
        self.five()
        text = self.phasor("sweep", "sweep.json", "--out", "out", "--jobs", "1", "--plugin", BOOM, "--fail-fast", code=3)
        self.assertIn("stopped after 3   ok 2   diverged 0   failed 1   missing 9", text)
        self.assertIn("expected without", self.phasor("sweep", "sweep.json", "--only-missing", "--retry-failed", "--plugin", BOOM, code=2))

    def test_a_trial_without_memory_leaves_the_next_alone(self):
        """L28: widths 64, 100,000, 64, 64 in one place."""
        spec = sweep(limits={"memory_mb": 1500})
        spec["axes"] = [{"name": "variant", "role": "row", "points": [
            {"label": f"{i}: {dim}", "set": {"model.dim": dim, "seed": i, "model.encoding": {"name": "nope"}}}
            for i, dim in enumerate([64, 100000, 64, 64])]}]
        spec["table"] = {"report": [{"split": "test", "metric": "sequence_accuracy", "slices": [6]}]}
        self.write("sweep.json", spec)
        self.write("base.json", experiment(**{"train.steps": 400}))
        driver = self.drive("--jobs", "1")
        runner, peak = {}, {}  # of each process of a trial, in order: what the runner holds when it is there; the most it held
        while driver.poll() is None:
            for child in children(driver.pid):
                held = self.memory(child, "VmHWM")
                peak[child] = max(held, peak.get(child, 0))
                runner.setdefault(child, self.memory(driver.pid, "VmRSS"))
            time.sleep(0.002)
        text = self.ended(driver, code=3)
        self.assertIn("finished 4   ok 3   diverged 0   failed 1   missing 0", text)
        wanted = re.search(r"  oom       1: 100000   .*out of memory: (\d+) bytes were asked for", text)
        self.assertIsNotNone(wanted, text)
        self.assertGreater(int(wanted.group(1)), 1500 << 20)
        self.assertEqual(len(runner), 4, "every trial was seen")
        held, most = list(runner.values()), list(peak.values())
        for after in (2, 3):
            self.assertLess(abs(most[after] - most[0]), 0.05 * most[0], most)
            self.assertLess(abs(held[after] - held[1]), 0.05 * held[1], held)  # reading a first record loads a library

    def memory(self, process, which):
        """kB; 0 when it has ended."""
        try:
            with open(f"/proc/{process}/status") as file:
                return next((int(line.split()[1]) for line in file if line.startswith(which + ":")), 0)
        except OSError:
            return 0

    def test_limits_are_checked(self):
        for limits, words in [({"seconds": 0}, "limits.seconds"), ({"memory_mb": 1.5}, "limits.memory_mb"),
                              ({"minutes": 3}, "unknown key \"minutes\""), (3, "expected an object")]:
            self.write("sweep.json", sweep(limits=limits))
            self.assertIn(words, self.phasor("sweep", "sweep.json", code=2))


if __name__ == "__main__":
    main()
