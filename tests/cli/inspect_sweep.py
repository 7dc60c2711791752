"""What can be asked of a sweep before, while and after it runs: describe, logs, verify, status --watch."""
import json
import os
import random
import time

import h5py

from harness import Case, experiment, main, sweep


class InspectSweep(Case):
    def make(self, *more, code=0):
        return self.phasor("sweep", "sweep.json", "--out", "out", *more, code=code)

    def manifest(self):
        with open(self.path("out/sweep.json")) as file:
            return json.load(file)

    def test_describe_lists_every_trial(self):
        self.write("sweep.json", sweep(confirm={"seed": [7, 8]}))
        text = self.phasor("describe", "--sweep", "sweep.json", "--out", "out")
        self.assertIn("+ confirm 2 cells x 2 fresh seeds = 4 trials", text)
        for name in ["NoPE / lr 0.01 / seed 0", "NoPE / lr 0.01 / seed 1", "Selective / lr 0.01 / seed 0", "Selective / lr 0.01 / seed 1"]:
            self.assertRegex(text, rf"(?m)^[0-9a-f]{{8}}   to run +[\d,]+ +[\d.e-]+ +\d+:\d\d   {name}$")
        self.assertIn("4 fresh trials of what the selection chooses", text)
        self.assertRegex(text, r"to run +8 of 8, [\d.e-]+ TFLOP, \d+:\d\d on this machine with \d+ jobs")
        self.assertIn("nothing was started", text)
        self.assertFalse(os.path.exists(self.path("out")))
        self.make()
        described = lambda: json.loads(self.phasor("describe", "--sweep", "sweep.json", "--out", "out", "--json"))
        found = described()
        self.assertEqual([t["status"] for t in found["trials"]], ["done"] * 8)
        self.assertTrue(all(t["seconds"] > 0 and t["flops"] > 0 and t["seconds_are"] == "measured" for t in found["trials"]))
        # Without a trial of the selection nobody knows what is confirmed; without a fresh one, it alone is missing.
        for name, expected in [("NoPE / lr 0.01 / seed 0", (3, 1, 4, 5)), ("Selective / lr 0.01 / seed 8", (7, 1, 0, 1))]:
            os.remove(self.path("out/" + next(t["id"] for t in found["trials"] if t["name"] == name) + ".h5"))
            before = self.listing()
            now = described()
            status = [t["status"] for t in now["trials"]]
            self.assertEqual((status.count("done"), status.count("to run"), now["awaiting_selection"], now["to_run"]), expected)
            self.assertEqual(self.listing(), before, "it writes nothing")
            self.make()

    def test_describe_refuses_what_a_sweep_refuses(self):
        bad = sweep()
        bad["axes"][1]["path"] = "optimizer.lrr"
        self.write("sweep.json", bad)
        self.assertIn("axes[1].path", self.phasor("describe", "--sweep", "sweep.json", code=2))
        self.assertIn("expected one of them", self.phasor("describe", "base.json", "--sweep", "sweep.json", code=2))

    def test_a_sweep_given_for_an_experiment_and_the_other_way_round(self):
        def lines(*arguments):
            return [line for line in self.phasor("describe", *arguments).splitlines() if not line.startswith(("to run", "trial "))
                    and "seed" not in line]  # what is measured differs

        self.assertEqual(lines("sweep.json"), lines("--sweep", "sweep.json"))
        self.assertIn("2 variant x 1 lr x 2 seed = 4 cells", self.phasor("describe", "sweep.json"))
        self.write("more.json", {"extends": "sweep.json", "name": "more"})
        self.assertIn("more             2 variant", self.phasor("describe", "more.json"))
        for command in ["run", "bench"]:
            self.assertIn('sweep.json: found a sweep (it has "axes"), expected an experiment; `phasor sweep sweep.json` runs its trials, '
                          "`phasor describe sweep.json` shows them", self.phasor(command, "sweep.json", code=2))
        self.assertIn("--out: found with an experiment, expected with a sweep file", self.phasor("describe", "base.json", "--out", "out", code=2))
        self.assertIn('base.json: found an experiment (it has no "axes"), expected a sweep; `phasor run base.json` trains it',
                      self.phasor("sweep", "base.json", code=2))
        self.assertFalse(os.path.exists(self.path("results")))
        self.assertIn("no file is given", self.phasor("describe", code=2))

    def test_logs(self):
        self.make()
        cell = self.manifest()["trials"][3]
        text = self.phasor("logs", "out", cell["id"][:6])
        self.assertIn(f"trial {cell['id']}", text)
        self.assertEqual(self.phasor("logs", "out", "Selective / lr 0.01 / seed 1"), text)
        self.assertIn('did you mean "Selective / lr 0.01 / seed 1"?', self.phasor("logs", "out", "Selectiv / lr 0.01 / seed 1", code=2))
        self.assertIn("expected more of it", self.phasor("logs", "out", "", code=2))
        self.assertIn("usage", self.phasor("logs", "out", code=2))
        os.remove(self.path(f"out/logs/{cell['id'][:8]}.log"))
        self.assertIn("no such log", self.phasor("logs", "out", cell["id"], code=2))

    def test_verify(self):
        self.make()
        before = self.listing()
        text = self.phasor("verify", "out")
        self.assertIn("4 whole", text)
        self.assertIn("all is whole", text)
        names = sorted(self.records())
        ids = [name[:-3] for name in names]
        of = {cell["id"]: cell for cell in self.manifest()["trials"]}
        self.assertEqual(set(ids), set(of))
        os.remove(self.path(f"out/{names[0]}"))  # lost: it was started
        os.remove(self.path(f"out/{names[1]}"))  # missing: nothing of it is left
        os.remove(self.path(f"out/{ids[1]}.json"))
        with open(self.path(f"out/{names[2]}"), "r+b") as file:
            file.truncate(os.path.getsize(file.name) // 2)
        self.write("out/.half.77.tmp", "x")
        self.phasor("run", "base.json", "--out", "out", "--set", "seed=7")
        before = self.listing()
        text = self.phasor("verify", "out", code=3)
        self.assertIn("1 whole", text)
        self.assertIn("1 more whole ones belong to no cell", text)
        self.assertRegex(text, rf"(?m)^damaged +out/{names[2]}: ")
        self.assertRegex(text, rf"(?m)^lost +.* {ids[0]}\n +log    out/logs/{ids[0][:8]}.log$")
        self.assertRegex(text, rf"(?m)^lost +.* {ids[2]}$")
        self.assertRegex(text, rf"(?m)^missing +.* {ids[1]}$")
        self.assertIn("left behind      out/.half.77.tmp", text)
        self.assertEqual(self.listing(), before, "it writes nothing")
        self.make()
        self.assertIn("all is whole", self.phasor("verify", "out"))
        self.write("out/sweep.json", "{")
        self.assertRegex(self.phasor("verify", "out", code=3), r"damaged +out/sweep.json:1:\d+")
        self.assertIn("no sweep.json", self.phasor("verify", "out/logs", code=2))

    def test_verify_reads_checkpoints(self):
        self.write("base.json", experiment(**{"run.checkpoint_every": 4, "run.keep_checkpoint": True}))
        self.make()
        self.assertIn("4 whole, 4 checkpoints whole", self.phasor("verify", "out"))
        name = sorted(os.listdir(self.path("out/checkpoints")))[0]
        with open(self.path(f"out/checkpoints/{name}"), "r+b") as file:
            file.truncate(2000)
        text = self.phasor("verify", "out", code=3)
        self.assertRegex(text, rf"damaged +out/checkpoints/{name}: .*; the trial would start anew")
        self.assertIn("3 checkpoints whole", text)

    def datasets(self, file):
        """Path of every dataset that has bytes to where they begin in the file, and how many they are."""
        found = {}
        with h5py.File(self.path(file), "r") as opened:
            opened.visititems(lambda name, node: found.update({name: (node.id.get_offset(), node.id.get_storage_size())})
                              if isinstance(node, h5py.Dataset) and node.id.get_storage_size() > 0 else None)
        return found

    def test_verify_notices_a_flipped_byte_in_every_dataset(self):
        self.write("base.json", experiment(**{"run.checkpoint_every": 4, "run.keep_checkpoint": True}))
        self.make()
        name = sorted(self.records())[0]
        chance = random.Random(5)
        for file, least in [(f"out/{name}", 15), (f"out/checkpoints/{name}", 30)]:
            found = self.datasets(file)
            self.assertGreaterEqual(len(found), least, found)
            for path, (begin, size) in found.items():
                at, bit = begin + chance.randrange(size), 1 << chance.randrange(8)
                self.flip(file, at, bit)
                text = self.phasor("verify", "out", code=3)
                self.assertIn(f"damaged: {path} does not match its digest", text)
                self.flip(file, at, bit)
        self.assertIn("all is whole", self.phasor("verify", "out"))
        # What others add carries no digest: it is said that nothing is known of it.
        with h5py.File(self.path(f"out/{name}"), "r+") as opened:
            opened["notes/mine"] = [1.0, 2.0]
        text = self.phasor("verify", "out")
        self.assertIn("not checksummed  1 datasets that carry no digest", text)
        self.assertIn("all is whole", text)

    def flip(self, file, at, bit):
        with open(self.path(file), "r+b") as opened:
            opened.seek(at)
            byte = opened.read(1)[0]
            opened.seek(at)
            opened.write(bytes([byte ^ bit]))

    def test_watch_ends_with_the_sweep(self):
        self.write("base.json", experiment(**{"train.steps": 3000}))
        driver = self.start("sweep", "sweep.json", "--out", "out", "--jobs", "2")
        while not (os.path.isdir(self.path("out/logs")) and os.listdir(self.path("out/logs"))):
            time.sleep(0.02)
        text = self.phasor("status", "out", "--watch")
        driver.communicate(timeout=120)
        self.assertEqual(driver.returncode, 0)
        blocks = text.split("tiny  ")[1:]
        self.assertGreaterEqual(len(blocks), 2)
        self.assertIn("runner           process ", blocks[0])
        self.assertIn("no sweep runs here", blocks[-1])
        self.assertIn("done 4", blocks[-1])
        self.assertIn("expected one of them", self.phasor("status", "out", "--watch", "--json", code=2))


if __name__ == "__main__":
    main()
