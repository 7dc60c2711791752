"""Several trials in one process (--trials-per-device): each is what it is alone, and none disturbs the others."""
import json
import os
import re
import signal
import time

from faults import Faults, children, content, experiment, grid, kill, main, status_of, sweep

BOOM = os.environ["PHASOR_BOOM"]


def boom(label, seed, **options):
    return {"label": label, "set": {"seed": seed, "model.encoding": {"name": "boom", **options}}}


class Shared(Faults):
    def contents(self, folder="out"):
        return {os.path.basename(file): content(file) for file in self.files(folder)}

    def alone(self, *more):
        """The records of the same sweep with a process for each trial."""
        self.phasor("sweep", "sweep.json", "--out", "alone", "--jobs", "2", *more)
        return self.contents("alone")

    def log(self, record):
        with open(self.path(f"out/logs/{os.path.basename(record)[:8]}.log")) as file:
            return file.read()

    def processes(self, driver):
        """All processes that a runner has while it works, and its output."""
        seen = set()
        while driver.poll() is None:
            seen.update(children(driver.pid))
            time.sleep(0.005)
        return seen

    def test_same_bits_and_a_log_each(self):
        self.write("base.json", experiment(**{"train.steps": 200}))
        self.write("sweep.json", grid(6, (0.01, 0.02)))
        expected = self.alone()
        self.assertEqual(len(expected), 12)
        for jobs, trials in [("1", "4"), ("2", "3"), ("1", "16")]:
            driver = self.drive("--jobs", jobs, "--trials-per-device", trials)
            self.assertEqual(len(self.processes(driver)), int(jobs))
            text = self.ended(driver)
            self.assertIn(f", {jobs} jobs of {trials} trials\n", text)
            self.assertIn("finished 12   ok 12   diverged 0   failed 0   missing 0", text)
            self.assertEqual(self.contents(), expected)
            ids = [os.path.basename(file)[:-3] for file in self.files()]
            for record in self.files():
                said = self.log(record)
                self.assertEqual([one for one in ids if one in said], [os.path.basename(record)[:-3]], said)
                self.assertRegex(said, re.compile(r"^trial .*\n(.*\n)*valid loss +6: .*\n(.*\n)*bits +\w+\nrecord +out/.*\n$"))
            self.assertEqual(self.leases(), [])
            for name in os.listdir(self.path("out")):
                if name.endswith(".h5"):
                    os.remove(self.path("out/" + name))

    def test_one_that_fails_is_a_row_and_the_others_are_whole(self):
        self.write("base.json", experiment(**{"train.steps": 100}))
        bad = {"throws": "error", "throws an int": "error", "diverges": "diverged", "cannot be made": "error"}
        points = [boom(f"good {i}", i) for i in range(8)]
        points[1] = boom("throws", 1, where="backward")
        points[3] = boom("throws an int", 3, where="forward", what="int")
        points[4] = boom("diverges", 4)
        points[4]["set"]["optimizer.lr"] = 1e30
        points[6] = boom("cannot be made", 6, where="create")
        self.rows(points)
        good = [point for point in points if point["label"] not in bad]
        text = self.phasor("sweep", "sweep.json", "--out", "out", "--jobs", "1", "--trials-per-device", "8", "--plugin", BOOM, code=3)
        self.assertIn("finished 8   ok 4   diverged 1   failed 3   missing 0", text)
        self.assertNotIn("  again  ", text)
        status = json.loads(self.phasor("status", "out", "--json", code=3))
        self.assertEqual({t["name"]: t["status"] for t in status["troubles"]}, bad)
        messages = {t["name"]: t["message"] for t in status["troubles"]}
        self.assertIn('encoding "boom": backward: boom', messages["throws"])
        self.assertIn('encoding "boom": create: boom', messages["cannot be made"])
        found = self.contents()
        self.rows(good)
        for name, record in self.alone("--plugin", BOOM).items():
            self.assertEqual(found[name], record)

    def rows(self, points, **more):
        spec = sweep(**more)
        spec["axes"] = [{"name": "variant", "role": "row", "points": points}]
        spec["table"] = {"report": [{"split": "test", "metric": "sequence_accuracy", "slices": [6]}]}
        self.write("sweep.json", spec)

    def test_one_that_brings_the_process_down(self):
        """A crash takes the others with it; they run again, and so does it, each alone: it is to blame and they are not."""
        self.write("base.json", experiment(**{"train.steps": 1000}))
        for where, what in [("backward", "segfault"), ("destructor", "runtime_error")]:
            points = [boom(f"good {i}", i) for i in range(4)]
            points[2] = boom("crashes", 2, where=where, what=what)
            self.rows(points)
            folder = f"out_{what}"
            text = self.phasor("sweep", "sweep.json", "--out", folder, "--jobs", "1", "--trials-per-device", "4", "--plugin", BOOM, code=3)
            self.assertIn("finished 4   ok 3   diverged 0   failed 1   missing 0", text)
            self.assertIn("  again     crashes   the process that it shared with other trials ended (killed by signal ", text)
            status = json.loads(self.phasor("status", folder, "--json", code=3))
            self.assertEqual({t["name"]: t["status"] for t in status["troubles"]}, {"crashes": "crashed"})
            self.assertEqual(status["lost_attempts"], 0)

    def test_one_that_takes_too_long(self):
        """It is asked to end; one that hangs is ended with its process, and the others go on in a new one."""
        self.write("base.json", experiment(**{"train.steps": 1000000}))
        points = [boom(f"good {i}", i) for i in range(3)] + [boom("slow", 8), boom("hangs", 9, where="forward", what="hang")]
        for point in points[:3]:
            point["set"]["train.steps"] = 50
        self.rows(points, limits={"seconds": 3})
        text = self.phasor("sweep", "sweep.json", "--out", "out", "--jobs", "1", "--trials-per-device", "2", "--grace", "2", "--plugin", BOOM, code=3)
        self.assertIn("finished 5   ok 3   diverged 0   failed 2   missing 0", text)
        status = json.loads(self.phasor("status", "out", "--json", code=3))
        self.assertEqual({t["name"]: t["status"] for t in status["troubles"]}, {"slow": "timeout", "hangs": "timeout"})
        for trouble in status["troubles"]:
            self.assertIn("took longer than 3 s (limits.seconds)", trouble["message"])

    def keeping(self, steps=3000):
        self.write("base.json", experiment(**{"train.steps": steps, "run.checkpoint_every": 100}))
        self.write("sweep.json", grid(3))

    def checkpoints(self):
        place = self.path("out/checkpoints")
        return [name for name in os.listdir(place) if not name.startswith(".")] if os.path.isdir(place) else []

    def test_interrupted_and_resumed(self):
        self.keeping()
        expected = self.alone()
        for number, code in [(signal.SIGINT, 3), (signal.SIGTERM, 130)]:
            driver = self.drive("--jobs", "1", "--trials-per-device", "3")
            self.until(lambda: len(self.checkpoints()) == 3)
            os.kill(driver.pid, number)
            text = self.ended(driver, code)
            self.assertIn("stopped after 3   ok 0   diverged 0   failed 0   missing 3", text)
            self.assertEqual((len(self.files()), len(self.checkpoints()), self.leases()), (0, 3, []))
            text = self.ended(self.drive("--jobs", "1", "--trials-per-device", "3"))
            self.assertIn("finished 3   ok 3", text)
            self.assertEqual(self.contents(), expected)
            self.assertEqual(self.checkpoints(), [])
            for file in self.files():
                os.remove(file)

    def test_ctrl_c_lets_those_without_checkpoints_finish(self):
        self.write("base.json", experiment(**{"train.steps": 2000}))
        self.write("sweep.json", grid(4))
        driver = self.drive("--jobs", "1", "--trials-per-device", "2")
        self.until(lambda: len(self.leases()) == 2)
        os.kill(driver.pid, signal.SIGINT)
        self.assertIn("stopped after 2   ok 2   diverged 0   failed 0   missing 2", self.ended(driver, 3))
        self.assertEqual([status_of(file) for file in self.files()], ["done"] * 2)

    def test_two_ctrl_c_end_all(self):
        self.keeping(10 ** 7)
        driver = self.drive("--jobs", "1", "--trials-per-device", "3")
        self.until(lambda: len(self.checkpoints()) == 3)
        process, = children(driver.pid)
        self.stop(process)  # it cannot answer the first
        os.kill(driver.pid, signal.SIGINT)
        time.sleep(0.5)
        os.kill(driver.pid, signal.SIGINT)
        self.assertIn("missing 3", self.ended(driver, 130))
        self.assertEqual((len(self.files()), len(self.checkpoints())), (0, 3))

    def test_the_process_is_killed_and_the_runner_is_killed(self):
        self.keeping()
        expected = self.alone()
        driver = self.drive("--jobs", "1", "--trials-per-device", "3")
        self.until(lambda: len(self.checkpoints()) == 3)
        process, = children(driver.pid)
        status = json.loads(self.phasor("status", "out", "--json", code=3))
        self.assertEqual((status["jobs"], status["running"]), (3, 3))
        self.assertTrue(kill(process))
        text = self.ended(driver)
        self.assertEqual(text.count("  again     "), 3)
        self.assertIn("finished 3   ok 3", text)
        self.assertEqual(self.contents(), expected)
        for file in self.files():
            os.remove(file)
        driver = self.drive("--jobs", "1", "--trials-per-device", "3")
        self.until(lambda: len(self.checkpoints()) == 3)
        process, = children(driver.pid)
        self.assertTrue(kill(driver.pid))
        driver.communicate()
        self.until(lambda: not os.path.exists(f"/proc/{process}"))
        self.assertIn("finished 3   ok 3", self.ended(self.drive("--jobs", "1", "--trials-per-device", "2")))
        self.assertEqual(self.contents(), expected)

    def test_a_trial_that_others_have_taken_over_stores_nothing(self):
        self.write("base.json", experiment(**{"train.steps": 4000}))
        self.write("sweep.json", grid(2))
        stopped = self.drive("--jobs", "1", "--trials-per-device", "2", "--lease", "1")
        logs = self.path("out/logs")
        self.until(lambda: os.path.isdir(logs) and sum(not name.startswith("process") for name in os.listdir(logs)) == 2)
        process, = children(stopped.pid)
        self.stop(stopped.pid, process)
        other = self.drive("--jobs", "1", "--trials-per-device", "2", "--lease", "1")
        self.until(lambda: sum(name.endswith(".lost") for name in self.leases()) == 2)
        self.go_on(process)
        self.assertIn("finished 2   ok 2", self.ended(other))
        before = self.records()
        self.go_on(stopped.pid)
        self.assertIn("ok 2", self.ended(stopped))
        self.assertEqual(self.records(), before)

    def test_what_cannot_be_asked_for(self):
        self.write("limited.json", sweep(limits={"memory_mb": 1000}))
        for file, number, words in [("sweep.json", "0", 'found "0", expected an integer of at least 1'),
                                    ("sweep.json", "many", 'found "many", expected an integer of at least 1'),
                                    ("sweep.json", "-4", 'found "-4", expected an integer of at least 1'),
                                    ("sweep.json", "65", "found 65, expected at most 64"),
                                    ("limited.json", "2", "found limits.memory_mb in the sweep file")]:
            text = self.phasor("sweep", file, "--out", "out", "--trials-per-device", number, code=2)
            self.assertIn("--trials-per-device", text)
            self.assertIn(words, text)
            self.assertFalse(os.path.exists(self.path("out")))
        self.assertIn("ok 4", self.phasor("sweep", "limited.json", "--out", "out", "--trials-per-device", "1"))
        self.assertIn("expected to be started by phasor sweep", self.phasor("trials", code=2))


if __name__ == "__main__":
    main()
