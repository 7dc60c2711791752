"""Sweeps on a real Slurm of one node: every cell once whatever happens to its task, and only what is missing is submitted."""
import json
import os
import re
import signal
import sys
import tempfile
import unittest

import h5py

import cluster
from faults import Faults, content, experiment, grid, main, status_of


class Slurm(Faults):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory(prefix="phasor_slurm_")
        cls.addClassCleanup(place.cleanup)
        cls.cluster = cluster.Cluster(place.name)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()

    def setUp(self):
        super().setUp()
        self.addCleanup(self.cluster.cancel_all)

    def submit(self, *more, folder="out", code=0, sweep="sweep.json"):
        return self.phasor("sweep", sweep, "--out", folder, "--launcher", "slurm", *more, code=code, **self.cluster.environment)

    def status(self, folder="out", code=0):
        return self.phasor("status", folder, code=code, **self.cluster.environment)

    def job(self, text):
        return re.search(r"^submitted +job (\d+): ", text, re.MULTILINE).group(1)

    def wait_for_the_queue(self):
        self.cluster.until("the end of all tasks", lambda: not self.cluster.tasks())

    def text(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def holder(self, folder, task):
        """The lease of a trial that has a checkpoint and is held by a task of Slurm: id and process, or nothing."""
        for name in self.leases(folder):
            try:
                owner = json.loads(self.text(f"{folder}/leases/{name}").split("\n", 1)[1])
            except (OSError, IndexError, ValueError):
                continue  # it ended meanwhile
            trial = name.split(".")[0]
            if owner.get("task") == task and os.path.exists(self.path(f"{folder}/checkpoints/{trial}.h5")):
                return trial, owner["process"]
        return None

    def midway(self, folder, task):
        """Waits until the task is in the middle of a trial."""
        found = []
        self.until(lambda: found.append(self.holder(folder, task)) or found[-1])
        return found[-1]

    def resumed(self, file):
        with h5py.File(file, "r") as record:
            return dict(zip(record["summary/name"][()], record["summary/value"][()]))[b"resumed"] == 1

    def test_a_grid_whose_task_is_killed_and_requeued(self):
        folder = "out 50%"
        self.write("base.json", experiment(**{"train.steps": 1000, "run.checkpoint_every": 100}))
        self.write("sweep.json", grid(3, (0.005, 0.01, 0.02)))
        text = self.submit("--slurm", "time=5", "partition=short", "--chunk", "2", folder=folder)
        job = self.job(text)
        self.assertIn(f"job {job}: 9 trials as 5 tasks of 2, 1 side by side in each", text)
        trial, runner = self.midway(folder, f"{job}_0")
        os.kill(runner, signal.SIGKILL)
        self.cluster.until("the end of the task", lambda: f"{job}_0" not in self.cluster.tasks())
        self.assertFalse(os.path.exists(self.path(f"{folder}/{trial}.h5")))
        self.assertEqual(self.cluster.run("scontrol", "requeue", f"{job}_0").stderr, "")
        self.cluster.start_now(f"{job}_0")
        self.wait_for_the_queue()
        self.assertIn("9   queued 0   running 0   done 9", self.status(folder))
        self.assertEqual([status_of(file) for file in self.files(folder)], ["done"] * 9)
        self.assertTrue(self.resumed(self.path(f"{folder}/{trial}.h5")))
        # Each once: a runner says what it started at its end, and the one that was killed said nothing.
        logs = [self.text(f"{folder}/slurm/1/{task}.log") for task in range(5)]
        self.assertEqual(sum(self.started(log) for log in logs), 9, "\n".join(logs))
        self.assertEqual(self.leases(folder), [f"{trial}.1.lost"])
        self.ended(self.drive("--jobs", "2", folder="local"))
        here = {os.path.basename(file): content(file) for file in self.files("local")}
        self.assertEqual({os.path.basename(file): content(file) for file in self.files(folder)}, here)

        self.assertIn("submitted        nothing: no trial that is known is missing", self.submit(folder=folder))
        self.assertEqual(os.listdir(self.path(folder + "/slurm")), ["1"])
        before = self.records(folder)
        gone = sorted(before)[4]
        os.remove(self.path(f"{folder}/{gone}"))
        self.assertIn(": 1 trial as 1 task of 1", self.submit(folder=folder))
        self.wait_for_the_queue()
        self.assertEqual(self.started(self.text(f"{folder}/slurm/2/0.log")), 1)
        after = self.records(folder)
        self.assertNotEqual(after.pop(gone), before.pop(gone))
        self.assertEqual(after, before)

    def test_what_waits_in_slurm_is_not_submitted_again(self):
        self.write("sweep.json", grid(2))
        job = self.job(self.submit("--slurm", "begin=now+1hour"))
        self.assertRegex(self.status(code=3), f"out   in Slurm\nin Slurm +job {job}: 2 tasks wait[^\n]*\ntrials +2   queued 2   running 0 .*missing 0")
        text = self.submit()
        self.assertIn("nothing: the 2 missing trials are in Slurm already", text)
        self.cluster.until("a reason", lambda: set(self.cluster.ask("squeue", "-h", "-r", "-o", "%r").split()) == {"BeginTime"})
        self.write("sweep.json", grid(3))  # one more
        self.assertIn(f"job {job}: 2 tasks wait (BeginTime)", self.submit("--dry-run"))
        self.assertIn(": 1 trial as 1 task of 1", self.submit("--slurm", "begin=now+1hour"))
        self.cluster.run("scancel", f"{job}_1")
        self.cluster.until("the end of the task", lambda: f"{job}_1" not in self.cluster.tasks())
        self.assertRegex(self.status(code=3), "queued 2   running 0 .*missing 1")
        self.assertIn(": 1 trial as 1 task of 1", self.submit("--slurm", "begin=now+1hour"))
        self.assertEqual(self.ended(self.drive("--jobs", "2")).count("finished 3"), 1)  # anybody may take what waits
        self.assertIn("done 3", self.status())
        self.assertIn("nothing: no trial", self.submit())

    def test_a_task_that_is_asked_to_end(self):
        """By a signal to its script, as Slurm sends before the time of a task is over; by a job that preempts it; by a user."""
        self.write("base.json", experiment(**{"train.steps": 1000000, "run.checkpoint_every": 100}))
        self.write("sweep.json", grid(1))
        job = self.job(self.submit("--slurm", "time=5", "cpus-per-task=4"))  # the whole node
        task, log = f"{job}_0", "out/slurm/1/0.log"
        trial, _ = self.midway("out", task)
        self.cluster.run("scancel", "--batch", "--signal=TERM", task)
        self.cluster.until("the task waiting", lambda: self.cluster.tasks().get(task) == "PENDING")
        self.assertRegex(self.text(log), "stopped after 1   ok 0   diverged 0   failed 0   missing 1 .*\ntask +queued again")
        self.assertRegex(self.status(code=3), "queued 1   running 0")
        self.cluster.start_now(task)
        self.midway("out", task)
        self.cluster.run("sbatch", "--partition=urgent", "--output=/dev/null", "--wrap", "true")
        self.cluster.start_now(task)
        self.assertIn("Slurm ends this task itself", self.text(log))
        self.midway("out", task)
        self.cluster.run("scancel", task)
        self.wait_for_the_queue()
        self.assertEqual(self.text(log).count("queued again"), 1)
        self.assertFalse(self.files())
        self.assertRegex(self.status(code=3), "queued 0   running 0 .*missing 1")
        self.assertTrue(os.path.exists(self.path(f"out/checkpoints/{trial}.h5")))

    def test_a_failure_that_is_asked_for_again_runs_once(self):
        """A task that is queued again must not take what it has just made for what it is to replace."""
        self.write("sweep.json", grid(1, limits={"memory_mb": 1}))
        self.ended(self.drive(), code=3)
        self.assertEqual([status_of(file) for file in self.files()], ["oom"])
        self.assertIn("failed           1; --retry-failed", self.submit(code=3))
        self.assertIn(": 1 trial as 1 task", self.submit("--retry-failed", "--slurm", "begin=now+1hour"))
        for started in [1, 0]:
            text = self.phasor("sweep", "out/slurm/1/trials.json", "--task", "0", code=3)
            self.assertEqual(self.started(text), started)
            self.assertIn("failed 1   missing 0", text)
        self.assertIn("has the tasks 0 to 0", self.phasor("sweep", "out/slurm/1/trials.json", "--task", "1", code=2))

    def test_confirmation_comes_with_the_same_command(self):
        self.write("sweep.json", grid(2, (0.01, 0.02), confirm={"seed": [7, 8]}))
        self.assertIn("confirm          2 trials await the selection", self.submit("--chunk", "2", "--jobs", "2"))
        self.wait_for_the_queue()
        self.assertIn(": 2 trials as 1 task of 2, 2 side by side", self.submit("--chunk", "2", "--jobs", "2"))
        self.wait_for_the_queue()
        self.assertIn("6   queued 0   running 0   done 6", self.status())

    def test_what_slurm_refuses(self):
        text = self.submit("--slurm", "partition=nowhere", code=2)
        self.assertRegex(text, "^(phasor: [^\n]*nowhere[^\n]*; nothing was submitted\n|[^\n]*0 done\n)+$")
        self.assertEqual(os.listdir(self.path("out/slurm")), [])
        text = self.phasor("sweep", "sweep.json", "--out", "out", "--launcher", "slurm", code=2, PATH="/nowhere")
        self.assertIn("sbatch is not installed here", text)
        self.assertEqual(os.listdir(self.path("out/slurm")), [])


if __name__ == "__main__":
    if why := cluster.what_is_missing():
        print("skipped: " + why)
        sys.exit(77)
    main()
