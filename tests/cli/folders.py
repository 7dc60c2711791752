"""What can be asked of a sweep's folder: status, one merged file; and the doctor."""
import hashlib
import json
import os
import signal
import time

import h5py

from harness import Case, experiment, main, sweep


class Folders(Case):
    def make(self, *more, code=0):
        return self.phasor("sweep", "sweep.json", "--out", "out", *more, code=code)

    def status(self, code=0, folder="out"):
        return json.loads(self.phasor("status", folder, "--json", code=code))

    def test_status_of_a_finished_sweep(self):
        spec = sweep()
        spec["axes"][1]["values"] = [0.01, 1e30]
        self.write("sweep.json", spec)
        self.make()
        before = self.listing()
        text = self.phasor("status", "out")
        self.assertIn("trials           8   queued 0   running 0   done 4   diverged 4   failed 0   missing 0", text)
        self.assertIn("no sweep runs here", text)
        self.assertEqual(text.count("rerun  phasor run out/"), 4)
        self.assertIn("diverged  NoPE / lr 1e30 / seed 0   step ", text)
        found = self.status()
        self.assertEqual((found["done"], found["diverged"], found["sweep_is_running"], found["eta_seconds"]), (4, 4, False, None))
        self.assertTrue(all(os.path.exists(self.path(t["log"])) for t in found["troubles"]))
        self.assertEqual(self.listing(), before, "it writes nothing")

    def kept(self, path, *arguments, code=2):
        """What the command said; the file is what it was."""
        with open(self.path(path), "rb") as file:
            before = file.read()
        text = self.phasor(*arguments, code=code)
        with open(self.path(path), "rb") as file:
            self.assertEqual(file.read(), before, path)
        return text

    def test_outputs_replace_no_records_and_no_experiments(self):
        self.make()
        record = "out/" + sorted(self.records())[0]
        for format in ["csv", "markdown", "latex"]:
            self.assertIn("is an HDF5 file", self.kept(record, "table", "out", "--format", format, "--out", record))
        self.assertIn("is an HDF5 file", self.kept(record, "report", "out", "--out", record))
        self.assertIn("is a JSON file", self.kept("out/sweep.json", "report", "out", "--out", "out/sweep.json"))
        self.assertIn("is a JSON file", self.kept("base.json", "table", "out", "--format", "csv", "--out", "base.json"))
        self.phasor("table", "out", "--format", "csv", "--out", "t.csv")
        self.phasor("table", "out", "--format", "csv", "--out", "t.csv")

    def test_what_a_later_version_wrote_is_not_replaced(self):
        self.make()
        record = "out/" + sorted(self.records())[0]
        with h5py.File(self.path(record), "r+") as file:
            file.attrs.modify("format", file.attrs["format"] + 1)
        self.assertIn("it is not replaced", self.kept(record, "sweep", "sweep.json", "--out", "out"))
        self.phasor("run", "base.json", "--out", "alone")
        alone, = (name for name in os.listdir(self.path("alone")) if name.endswith(".h5"))
        with h5py.File(self.path("alone/" + alone), "r+") as file:
            file.attrs.modify("format", file.attrs["format"] + 1)
        self.assertIn("it is not replaced", self.kept("alone/" + alone, "run", "base.json", "--out", "alone"))
        with open(self.path("out/sweep.json")) as file:
            manifest = json.load(file)
        manifest["format"] = 99
        self.write("out/sweep.json", manifest)
        self.assertIn("format 99", self.kept("out/sweep.json", "sweep", "sweep.json", "--out", "out"))

    def test_a_failure_does_not_replace_a_result(self):
        self.write("base.json", experiment(**{"model.dim": 512, "train.steps": 1}))
        self.phasor("run", "base.json", "--out", "alone")
        record, = (name for name in os.listdir(self.path("alone")) if name.endswith(".h5"))
        text = self.kept("alone/" + record, "run", "base.json", "--out", "alone", "--force", "--memory-mb", "10", code=1)
        self.assertIn("stays", text)

    def test_status_counts_what_is_not_there(self):
        self.make()
        names = sorted(self.records())
        os.remove(self.path(f"out/{names[0]}"))
        with open(self.path(f"out/{names[1]}"), "r+b") as file:
            file.truncate(100)
        self.phasor("run", "base.json", "--out", "out", "--set", "seed=7")
        found = self.status(code=3)
        self.assertEqual([found[k] for k in ["trials", "done", "missing", "damaged", "others"]], [4, 2, 2, 1, 1])
        self.assertIn("missing 2", self.phasor("status", "out", code=3))
        self.assertIn("sweep.json", self.phasor("status", ".", code=2))
        self.assertIn("nowhere", self.phasor("status", "nowhere", code=2))

    def test_status_of_a_running_sweep(self):
        spec = sweep()
        spec["axes"][0]["points"].pop(0)
        spec["axes"][2]["values"] = list(range(8))
        spec["table"].pop("baseline")
        self.write("sweep.json", spec)
        self.write("base.json", experiment(**{"train.steps": 1500}))
        driver = self.start("sweep", "sweep.json", "--out", "out", "--jobs", "1")
        while not (os.path.isdir(self.path("out")) and len(self.records()) >= 3):
            time.sleep(0.02)
        found = self.status(code=3)
        asked = time.time()
        self.assertTrue(found["sweep_is_running"])
        self.assertEqual((found["jobs"], found["missing"]), (1, 0))
        self.assertEqual([(runner["process"], runner["jobs"], runner["trials"]) for runner in found["runners"]], [(driver.pid, 1, 1)])
        self.assertLessEqual(found["running"], 1)
        self.assertEqual(found["queued"] + found["running"] + found["done"], 8)
        self.assertGreaterEqual(found["done"], 3)
        self.assertRegex(self.phasor("status", "out", code=3), r"ETA +\d+:\d\d, by the \d trials measured here")
        driver.communicate(timeout=600)
        self.assertEqual(self.status()["done"], 8)

    def test_a_failed_trial_in_status(self):
        self.write("base.json", experiment(**{"train.steps": 100000}))
        driver = self.start("sweep", "sweep.json", "--out", "an out", "--jobs", "1")
        while not (os.path.isdir(self.path("an out/logs")) and os.listdir(self.path("an out/logs"))):
            time.sleep(0.02)
        time.sleep(0.3)
        with open(f"/proc/{driver.pid}/task/{driver.pid}/children") as file:
            os.kill(int(file.read().split()[0]), signal.SIGSEGV)
        while not self.records("an out"):
            time.sleep(0.02)
        driver.send_signal(signal.SIGTERM)
        driver.communicate(timeout=20)
        text = self.phasor("status", "an out", code=3)
        self.assertIn("failed 1   missing 3", text)
        self.assertIn("killed by signal 11", text)
        self.assertRegex(text, r"rerun  phasor run 'an out/[0-9a-f-]+\.json' --out 'an out' --force")

    def test_merge(self):
        self.make()
        self.assertIn("4 trials", self.phasor("merge", "out"))
        with open(self.path("out.h5"), "rb") as file:
            once = hashlib.sha256(file.read()).hexdigest()
        self.phasor("merge", "out/")
        self.phasor("merge", "out", "--out", "other.h5")
        for name in ["out.h5", "other.h5"]:
            with open(self.path(name), "rb") as file:
                self.assertEqual(hashlib.sha256(file.read()).hexdigest(), once, "the same bytes when repeated")
        with h5py.File(self.path("out.h5"), "r") as merged:
            self.assertEqual((merged.attrs["format"], merged.attrs["kind"], merged.attrs["complete"]), (1, b"sweep", 1))
            with open(self.path("out/sweep.json")) as file:
                self.assertEqual(json.loads(merged["manifest"][0]), json.load(file))
            self.assertEqual(sorted(merged["trials"]), [name[:-3] for name in sorted(self.records())])
            for name, group in merged["trials"].items():
                with h5py.File(self.path(f"out/{name}.h5"), "r") as single:
                    self.same(single, group)

    def same(self, single, group):
        """Every group, dataset and attribute of one is in the other, with the same values and types."""
        self.assertEqual(dict(single.attrs), dict(group.attrs))
        self.assertEqual(sorted(single), sorted(group))
        for name, item in single.items():
            if isinstance(item, h5py.Group):
                self.same(item, group[name])
                continue
            self.assertEqual(item.dtype, group[name].dtype)
            self.assertEqual(item[()].tobytes(), group[name][()].tobytes(), name)
            self.assertEqual(dict(item.attrs), dict(group[name].attrs))

    def test_merge_tells_what_is_not_there(self):
        self.make()
        names = sorted(self.records())
        os.remove(self.path(f"out/{names[0]}"))
        with open(self.path(f"out/{names[1]}"), "r+b") as file:
            file.truncate(100)
        with h5py.File(self.path(f"out/{names[2]}"), "r+") as file:
            file["notes/mine"] = [1.0, 2.0]  # what others add stays
        self.phasor("run", "base.json", "--out", "out", "--set", "seed=7")
        text = self.phasor("merge", "out")
        self.assertIn("2 trials", text)
        self.assertIn("missing          2 trials", text)
        self.assertIn(f"damaged          out/{names[1]}", text)
        self.assertIn("left out         1 records", text)
        with h5py.File(self.path("out.h5"), "r") as merged:
            self.assertEqual(sorted(merged["trials"]), [name[:-3] for name in names[2:]])
            self.assertEqual(list(merged["trials"][names[2][:-3]]["notes/mine"]), [1.0, 2.0])
        self.assertIn("expected a file outside that folder", self.phasor("merge", "out", "--out", "out/all.h5", code=2))
        self.assertIn("cannot be written", self.phasor("merge", "out", "--out", "absent/all.h5", code=2))
        self.assertIn("sweep.json", self.phasor("merge", ".", code=2))

    def test_doctor(self):
        text = self.phasor("doctor")
        for words in ["processor ", "instructions     built for x86-64", "AVX-512 ", "threads ", "GB available", "GB free there",
                      "libraries        gemm", "cuda             no", "locale ", "results          results/data can be written",
                      "all is well"]:
            self.assertIn(words, text)
        self.assertFalse(os.path.exists(self.path("results")), "looking makes nothing")
        self.write("file", "not a folder")
        self.write("bad.so", "not a library")
        text = self.phasor("doctor", "--out", "file/below", "--plugin", "bad.so", code=3, PHASOR_PLUGIN_PATH="nowhere")
        ill = [line for line in text.splitlines() if "   ! " in line]
        self.assertEqual(len(ill), 3, text)
        self.assertIn('3 lines with "!"', text)
        for words in ["file/below", "bad.so", "nowhere"]:
            self.assertTrue(any(words in line for line in ill), text)


if __name__ == "__main__":
    main()
