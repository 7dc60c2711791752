"""The life of a sweep: run, rerun, damage, kill, divergence, failure; and its table."""
import json
import os
import re
import signal
import subprocess
import time

import h5py

from harness import Case, experiment, main, sweep


class SweepLife(Case):
    def run_sweep(self, *more, code=0):
        return self.phasor("sweep", "sweep.json", "--out", "out", *more, code=code)

    def test_table(self):
        text = self.run_sweep("--jobs", "2")
        self.assertIn("finished 4   ok 4   diverged 0   failed 0   missing 0", text)
        table = self.phasor("table", "out", "--require-complete")
        for words in ["Selective", "NoPE", "table.long.csv"]:
            self.assertIn(words, table)
        with open(self.path("out/table.long.csv")) as file:
            head, *rows = file.read().splitlines()
        self.assertTrue(head.startswith("variant,metric,split,slice,optimizer.lr,n,"), head)
        self.assertEqual(len(rows), 4)  # 2 variants at 2 lengths
        self.assertEqual(self.phasor("table", "out", "--format", "csv", "--form", "long").split("csv  ")[0].strip(),
                         "\n".join([head, *rows]))
        self.assertIn("| ", self.phasor("table", "out", "--format", "markdown"))
        self.assertIn("optimizer.lr", self.phasor("table", "out", "--format", "csv", "--form", "trials"))

    def test_forms_of_a_table(self):
        self.run_sweep()
        for form in ["long", "trials", "candidates"]:
            csv = self.phasor("table", "out", "--format", "csv", "--form", form)
            self.assertEqual(self.phasor("table", "out", "--form", form), csv)
            self.assertIn(f"--form {form} --format terminal: the terminal shows the wide form alone",
                          self.phasor("table", "out", "--form", form, "--format", "terminal", code=2))
        self.assertEqual(self.phasor("table", "out", "--form", "wide"), self.phasor("table", "out"))

    def test_records_of_another_revision(self):
        self.run_sweep()
        before = self.records()
        changed = [name for name in sorted(before) if self.raise_revision(name)]
        self.assertEqual(len(changed), 2)  # NoPE's two seeds
        text = self.run_sweep("--dry-run")
        told = "other revision   2 records were made by other code (numerics.encoding.nope 7, now 1); --retry-stale"
        self.assertIn(told, text)
        self.assertIn(told, self.phasor("describe", "sweep.json", "--out", "out"))
        self.assertIn("done 4   to run 0", text)
        self.assertIn("4 trials, 4 done", self.run_sweep())
        self.assertIn("finished 2   ok 4", self.run_sweep("--retry-stale"))
        self.assertEqual(sorted(n for n, t in self.records().items() if t != before[n] and n not in changed), [])
        self.assertNotIn("other revision", self.run_sweep("--dry-run"))

    def test_a_record_of_another_revision_is_not_shown_as_this_ones(self):
        nope = ("run", "base.json", "--set", 'model.encoding={"name": "nope"}', "--out", "out")
        self.phasor(*nope)
        self.assertIn("there is a record of it already; --force runs it again", self.phasor(*nope))
        self.assertTrue(self.raise_revision(list(self.records())[0]))
        text = self.phasor(*nope)
        self.assertIn("there is a record of it that was made by other code (numerics.encoding.nope 7, now 1)", text)
        self.assertIn("--force runs it again", text)
        self.phasor(*nope, "--force")
        self.assertIn("there is a record of it already; --force runs it again", self.phasor(*nope))

    def one_stale(self, **changes):
        """A sweep of two trials, of which NoPE's was made by another revision; its record."""
        spec = sweep()
        spec["axes"][2]["values"] = [0]
        self.write("sweep.json", spec)
        self.write("base.json", experiment(**changes))
        self.run_sweep()
        name, = [name for name in sorted(self.records()) if self.raise_revision(name)]
        return name

    def standing(self):
        """What status and verify say of the trials."""
        found = json.loads(self.phasor("status", "out", "--json"))
        self.assertIn("2 whole", self.phasor("verify", "out"))
        return [found[key] for key in ["done", "missing", "running_again"]]

    def test_a_rerun_that_is_interrupted_loses_nothing(self):
        name = self.one_stale(**{"train.steps": 4000})
        before = self.records()
        for number, code in [(signal.SIGKILL, -9), (signal.SIGTERM, 130)]:
            log = self.path(f"out/logs/{name[:8]}.log")
            os.remove(log)
            driver = self.start("sweep", "sweep.json", "--out", "out", "--retry-stale")
            while not (os.path.exists(log) and os.path.getsize(log) > 0):  # until it trains
                time.sleep(0.002)
            child = self.child_of(driver)
            os.kill(child, signal.SIGSTOP)  # so that it does not end meanwhile
            self.assertEqual(self.standing(), [2, 0, 1])
            self.assertIn("run again        1 of these", self.phasor("status", "out"))
            driver.send_signal(number)
            if number == signal.SIGTERM:
                os.kill(child, signal.SIGCONT)
            out, error = driver.communicate(timeout=60)
            self.assertEqual(driver.returncode, code, out + error)
            if number == signal.SIGTERM:
                self.assertIn("stopped after 1   ok 2   diverged 0   failed 0   missing 0", out)
                self.assertIn("not replaced     1 trials that were to run again have the record of before", out)
            self.assertEqual(self.records(), before)
            self.assertEqual(self.standing(), [2, 0, 0])
            self.assertIn("other revision   1 records", self.run_sweep("--dry-run"))
        self.assertIn("finished 1   ok 2   diverged 0   failed 0   missing 0", self.run_sweep("--retry-stale"))
        self.assertEqual([n for n, t in self.records().items() if t != before[n]], [name])
        self.assertNotIn("other revision", self.run_sweep("--dry-run"))

    def child_of(self, driver):
        with open(f"/proc/{driver.pid}/task/{driver.pid}/children") as file:
            return int(file.read().split()[0])

    def test_a_rerun_that_fails_replaces_no_result(self):
        self.one_stale(**{"model.dim": 512, "train.steps": 1})
        before = self.records()
        spec = sweep(limits={"memory_mb": 12})
        spec["axes"][2]["values"] = [0]
        self.write("sweep.json", spec)
        text = self.run_sweep("--retry-stale", code=3)
        self.assertIn("  oom ", text)
        self.assertIn("holds stays", text)
        self.assertIn("finished 1   ok 2   diverged 0   failed 0   missing 0", text)
        self.assertIn("not replaced     1 trials", text)
        self.assertEqual(self.records(), before)
        self.assertEqual(self.standing(), [2, 0, 0])

    def raise_revision(self, name):
        """Whether the record has the encoding nope; it then says that it was made by revision 7 of it."""
        with h5py.File(self.path(f"out/{name}"), "r") as file:  # opened for writing, a file changes its time
            names = list(file["provenance/name"][:])
        if b"numerics.encoding.nope" not in names:
            return False
        with h5py.File(self.path(f"out/{name}"), "r+") as file:
            values = file["provenance/value"][:]
            values[names.index(b"numerics.encoding.nope")] = b"7"
            file["provenance/value"][:] = values
            del file["provenance/value"].attrs["digest"]
            return True

    def test_a_rerun_runs_nothing(self):
        self.run_sweep()
        before = self.records()
        self.assertIn("4 trials, 4 done", self.run_sweep())
        self.assertEqual(self.records(), before)
        self.assertIn("to run 0", self.run_sweep("--dry-run"))

    def test_what_is_missing_or_damaged_runs_again(self):
        self.run_sweep()
        before = self.records()
        names = sorted(before)
        os.remove(self.path(f"out/{names[0]}"))
        with open(self.path(f"out/{names[1]}"), "r+b") as file:
            file.truncate(1000)
        text = self.run_sweep()
        self.assertIn("finished 2   ok 4", text)
        self.assertIn("damaged", text)
        after = self.records()
        self.assertEqual(sorted(after), names)
        for name in names[2:]:
            self.assertEqual(after[name], before[name])

    def test_one_more_value_runs_only_new_cells(self):
        self.run_sweep()
        before = self.records()
        spec = sweep()
        spec["axes"][1]["values"] = [0.01, 0.02]
        self.write("sweep.json", spec)
        self.assertIn("finished 4   ok 8", self.run_sweep())
        self.assertEqual({name: self.records()[name] for name in before}, before)
        self.write("sweep.json", sweep())
        self.assertIn("4 records in out belong to no cell", self.run_sweep())

    def test_another_base_is_refused_with_its_differences(self):
        self.run_sweep()
        before, names = self.records(), sorted(os.listdir(self.path("out")))
        self.write("base.json", experiment(**{"optimizer.clip": 0.5, "optimizer.lr": 0.7, "seed": 9, "note": "x", "run.threads": 2}))
        for more in [(), ("--dry-run",), ("--set", "model.dim=16")]:
            text = self.run_sweep(*more, code=2)
            self.assertIn("out: its trials are of another base experiment:", text)
            self.assertIn("optimizer.clip: null there, 0.5 now", text)
            self.assertEqual("model.dim: 8 there, 16 now" in text, "--set" in more)
            for quiet in ["optimizer.lr", "seed", "note", "threads"]:  # axes set them in every cell, or they change no bit
                self.assertNotIn(f"  {quiet}", text)
        self.assertEqual((self.records(), sorted(os.listdir(self.path("out")))), (before, names))
        self.write("base.json", experiment(**{"optimizer.clip": None, "optimizer.lr": 0.7, "run.threads": 2}))  # the default
        self.assertIn("4 trials, 4 done", self.run_sweep())
        self.write("base.json", experiment(**{"optimizer.clip": 0.5}))
        self.phasor("sweep", "sweep.json", "--out", "other")
        os.remove(self.path("out/sweep.json"))
        self.assertIn("4 records in out belong to no cell", self.run_sweep())

    def test_dry_run_writes_nothing(self):
        text = self.run_sweep("--dry-run")
        for words in ["2 variant x 1 lr x 2 seed = 4 cells", "to run 4", "nothing was started"]:
            self.assertIn(words, text)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_equal_trials_run_once(self):
        spec = sweep()
        spec["axes"][0]["points"].append({"label": "Same", "set": {"model.encoding.bias": True}})
        self.write("sweep.json", spec)
        self.assertIn("2 cells are the same trial as another", self.run_sweep("--dry-run"))
        self.assertIn("finished 4   ok 4", self.run_sweep())
        self.assertIn("Same", self.phasor("table", "out"))

    def test_killed_driver(self):
        self.write("base.json", experiment(**{"train.steps": 2000}))
        driver = self.start("sweep", "sweep.json", "--out", "out", "--jobs", "1")
        deadline = time.time() + 120
        while time.time() < deadline and not (os.path.isdir(self.path("out")) and self.records()):
            time.sleep(0.02)
        time.sleep(0.1)  # into the second trial
        driver.kill()
        driver.communicate()
        time.sleep(1)  # its child is gone by then and writes nothing more
        before = self.records()
        self.assertIn(len(before), (1, 2, 3))
        text = self.run_sweep("--jobs", "2")
        self.assertIn(f"finished {4 - len(before)}   ok 4", text)
        self.assertEqual({name: self.records()[name] for name in before}, before)
        self.assertFalse([name for name in os.listdir(self.path("out")) if name.endswith(".tmp")])

    def test_kill_delete_truncate_and_grow(self):
        spec = sweep()
        spec["axes"][1]["values"], spec["axes"][2]["values"] = [0.01, 0.02], [0, 1, 2]
        self.write("sweep.json", spec)
        driver = self.start("sweep", "sweep.json", "--out", "out", "--jobs", "2")
        while not (os.path.isdir(self.path("out")) and len(self.records()) >= 5):
            time.sleep(0.005)
        driver.kill()
        driver.communicate()
        time.sleep(0.5)
        finished = len(self.records())
        self.assertIn(f"finished {12 - finished}   ok 12", self.run_sweep("--jobs", "8"))
        before = self.records()
        names = sorted(before)
        for name in (names[0], names[5], names[11]):
            os.remove(self.path(f"out/{name}"))
        with open(self.path(f"out/{names[3]}"), "r+b") as file:
            file.truncate(os.path.getsize(self.path(f"out/{names[3]}")) // 2)
        spec["axes"][1]["values"] = [0.01, 0.02, 0.03]
        self.write("sweep.json", spec)
        self.assertIn("finished 10   ok 18   diverged 0   failed 0   missing 0", self.run_sweep("--jobs", "8"))
        after = self.records()
        self.assertEqual(len(after), 18)
        for i, name in enumerate(names):
            if i not in (0, 3, 5, 11):
                self.assertEqual(after[name], before[name])

    def test_killed_trials_go_on_from_their_checkpoints(self):
        self.write("base.json", experiment(**{"train.steps": 600, "run.checkpoint_every": 20}))
        self.run_sweep("--jobs", "2")
        whole = {name: self.bits_of("out/" + name) for name in self.records()}
        self.assertFalse(os.path.exists(self.path("out/checkpoints")))  # trials that have ended leave none
        kept = self.path("again/checkpoints")
        kills = 0
        for _ in range(12):
            before = self.stamps(kept)
            driver = self.start("sweep", "sweep.json", "--out", "again", "--jobs", "2", "--attempts", "100")
            while driver.poll() is None and self.stamps(kept) == before:
                time.sleep(0.01)  # until it got somewhere
            if driver.poll() is None:
                driver.kill()
                kills += 1
            driver.communicate()
            if driver.returncode == 0:
                break
        self.assertGreater(kills, 3)
        self.phasor("sweep", "sweep.json", "--out", "again", "--attempts", "100")
        self.assertEqual({name: self.bits_of("again/" + name) for name in self.records("again")}, whole)

    def stamps(self, folder):
        """File to the moment of its last change, of the checkpoints that are there."""
        found = {}
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            try:
                found[name] = os.stat(os.path.join(folder, name)).st_mtime_ns
            except FileNotFoundError:
                pass  # its trial has ended
        return found

    def test_interrupted_driver(self):
        self.write("base.json", experiment(**{"train.steps": 2000}))
        driver = self.start("sweep", "sweep.json", "--out", "out", "--jobs", "1")
        while not (os.path.isdir(self.path("out/logs")) and os.listdir(self.path("out/logs"))):
            time.sleep(0.02)
        driver.send_signal(signal.SIGINT)
        out, error = driver.communicate(timeout=120)
        self.assertEqual(driver.returncode, 3)
        self.assertIn("running trials finish", error)
        self.assertIn("stopped after 1   ok 1   diverged 0   failed 0   missing 3", out)
        driver = self.start("sweep", "sweep.json", "--out", "long", "--jobs", "1", "--set", "train.steps=100000")
        while not (os.path.isdir(self.path("long/logs")) and os.listdir(self.path("long/logs"))):
            time.sleep(0.02)
        time.sleep(0.2)
        driver.send_signal(signal.SIGINT)
        time.sleep(0.3)
        driver.send_signal(signal.SIGINT)
        out, error = driver.communicate(timeout=20)
        self.assertEqual(driver.returncode, 130)
        self.assertIn("missing 4", out)
        self.assertEqual(len(self.records("long")), 0)

    def test_asked_to_end(self):
        self.write("base.json", experiment(**{"train.steps": 100000, "run.checkpoint_every": 50000}))
        for number, code in [(signal.SIGTERM, 130), (signal.SIGINT, 3)]:
            driver = self.start("sweep", "sweep.json", "--out", "out", "--jobs", "2")
            while not (os.path.isdir(self.path("out/logs")) and len(os.listdir(self.path("out/logs"))) >= 2):
                time.sleep(0.02)
            time.sleep(0.5)
            driver.send_signal(number)
            out, error = driver.communicate(timeout=600)
            self.assertEqual(driver.returncode, code, out + error)
            self.assertIn("stopped after 2   ok 0   diverged 0   failed 0   missing 4", out)
            self.assertEqual(len(os.listdir(self.path("out/checkpoints"))), 2)
            self.assertEqual(os.listdir(self.path("out/leases")), [])

    def test_the_time_to_end_is_limited(self):
        self.write("base.json", experiment(**{"train.steps": 100000}))
        driver = self.start("sweep", "sweep.json", "--out", "out", "--jobs", "1", "--grace", "1")
        while not (os.path.isdir(self.path("out/logs")) and os.listdir(self.path("out/logs"))):
            time.sleep(0.02)
        with open(f"/proc/{driver.pid}/task/{driver.pid}/children") as file:
            os.kill(int(file.read().split()[0]), signal.SIGSTOP)  # as one whose step lasts for ever
        driver.send_signal(signal.SIGTERM)
        out, error = driver.communicate(timeout=600)
        self.assertEqual(driver.returncode, 130)
        self.assertIn("failed 0   missing 4", out)

    def test_divergence_is_a_result(self):
        spec = sweep()
        spec["axes"][1]["values"] = [0.01, 1e30]
        self.write("sweep.json", spec)
        text = self.run_sweep("--jobs", "2")
        self.assertIn("ok 4   diverged 4   failed 0   missing 0", text)
        self.assertIn("diverged  NoPE / lr 1e+30", text.replace("1e30", "1e+30"))
        self.assertIn("rerun  phasor run out/", text)
        table = self.phasor("table", "out")
        self.assertIn("4 diverged", table)
        trials = self.phasor("table", "out", "--format", "csv", "--form", "trials")
        self.assertEqual(trials.count(",diverged,"), 4, trials)
        self.assertIn("diverged", self.phasor("run", "base.json", "--set", "optimizer.lr=1e30", "--out", "one", code=4))

    def test_a_crash_is_a_record(self):
        self.write("base.json", experiment(**{"train.steps": 100000}))
        driver = self.start("sweep", "sweep.json", "--out", "out", "--jobs", "1")
        while not (os.path.isdir(self.path("out/logs")) and os.listdir(self.path("out/logs"))):
            time.sleep(0.02)
        time.sleep(0.3)
        with open(f"/proc/{driver.pid}/task/{driver.pid}/children") as file:
            child = int(file.read().split()[0])
        os.kill(child, signal.SIGSEGV)
        while not self.records():
            time.sleep(0.02)
        driver.send_signal(signal.SIGTERM)
        out, error = driver.communicate(timeout=20)
        self.assertEqual(driver.returncode, 130)
        self.assertIn("killed by signal 11", error)
        self.assertIn("failed 1   missing 3", out)
        # Terminal, until asked for; then it is run and replaced.
        self.assertIn("to run 3", self.run_sweep("--dry-run"))
        self.assertIn("to run 4", self.run_sweep("--dry-run", "--retry-failed"))

    def test_a_finished_trial_is_not_run_again(self):
        self.phasor("run", "base.json", "--out", "one")
        before = self.records("one")
        self.assertIn("there is a record of it already", self.phasor("run", "base.json", "--out", "one"))
        self.assertEqual(self.records("one"), before)
        self.phasor("run", "base.json", "--out", "one", "--force")
        self.assertNotEqual(self.records("one"), before)

    def test_bench(self):
        text = self.phasor("bench", "base.json", "--steps", "3", "--warmup", "1")
        for words in ["tokens/s", "GFLOP/s", "kernel", "gla"]:
            self.assertIn(words, text)

    def test_bench_against_a_variant(self):
        text = self.phasor("bench", "base.json", "--steps", "4", "--warmup", "1", "--against", "model.dim=32", "--against", "seed=5")
        lines = text.splitlines()
        self.assertEqual([line.split()[-1] for line in lines], ["it", "model.dim=32", "seed=5"], text)
        self.assertIn("ratio 1.000 (quartiles 1.000 to 1.000, 4 rounds)", lines[0])
        for line in lines[1:]:
            low, high = re.search(r"quartiles ([\d.]+) to ([\d.]+)", line).groups()
            middle = re.search(r"ratio ([\d.]+)", line).group(1)
            self.assertTrue(0 < float(low) <= float(middle) <= float(high), line)


if __name__ == "__main__":
    main()
