"""The same command goes on: what is finished stays as it is to the byte, what is missing or damaged runs, nothing else (acceptance
A2; L23, L25)."""
import os

import h5py

from faults import Faults, digest, experiment, grid, main


class Resume(Faults):
    def stamps(self, folder="out"):
        """File to its hash and the moment of its last change."""
        return {file: (digest(file), os.stat(file).st_mtime_ns) for file in self.files(folder)}

    def sweep(self, *more, code=0):
        return self.phasor("sweep", "sweep.json", "--out", "out", *more, code=code)

    def test_killed_at_forty_percent_then_one_rate_more_then_another_width(self):
        rates = (0.01, 0.02, 0.03)
        self.write("base.json", experiment(**{"train.steps": 100}))
        self.write("sweep.json", grid(3, rates))
        driver = self.drive("--jobs", "1")
        self.until(lambda: len(self.files()) >= 4)
        driver.kill()
        driver.communicate()
        before = self.stamps()
        self.assertLess(len(before), 9, "killed too late to show anything")
        started = {name for name in os.listdir(self.path("out")) if name.endswith(".json")}
        text = self.sweep("--jobs", "8")
        self.assertEqual(self.started(text), 9 - len(before))
        self.assertIn("ok 9   diverged 0   failed 0   missing 0", text)
        whole = self.stamps()
        self.assertEqual(len(whole), 9)
        self.assertEqual({file: whole[file] for file in before}, before)
        self.assertTrue(started <= set(os.listdir(self.path("out"))), "the same ids")

        self.write("sweep.json", grid(3, (*rates, 0.04)))
        self.assertEqual(self.started(self.sweep("--jobs", "8")), 3)
        more = self.stamps()
        self.assertEqual(len(more), 12)
        self.assertEqual({file: more[file] for file in whole}, whole)
        with_new = {file for file in more if file not in whole}
        self.assertEqual({self.rate(file) for file in with_new}, {"0.04"})

        text = self.sweep("--set", "model.dim=16", code=2)
        self.assertIn("model.dim: 8 there, 16 now", text)
        self.assertIn("--out", text)  # which starts a new one
        self.assertEqual(self.stamps(), more)
        self.assertIn("finished 12", self.phasor("sweep", "sweep.json", "--out", "wide", "--set", "model.dim=16"))

    def rate(self, file):
        with h5py.File(file, "r") as record:
            return record["spec"][0].decode().split('"lr":')[1].split(",")[0]

    def test_three_deleted_and_one_cut_off(self):
        rates = (0.01, 0.02, 0.03, 0.04, 0.05)
        self.write("sweep.json", grid(8, rates))
        self.assertIn("finished 40   ok 40", self.sweep("--jobs", "2"))
        self.assertIn("no sweep runs here", self.phasor("status", "out"))
        before = self.stamps()
        cells = [f"out/{cell['id']}.h5" for cell in self.manifest()["trials"]]
        for name in (cells[0], cells[20], cells[39]):
            os.remove(self.path(name))
        os.truncate(self.path(cells[7]), os.path.getsize(self.path(cells[7])) * 2 // 3)
        self.assertIn("missing 4", self.phasor("status", "out", code=3))
        text = self.phasor("verify", "out", code=3)
        self.assertIn("36 whole", text)
        self.assertIn(f"damaged          {cells[7]}: ", text)
        text = self.sweep("--jobs", "2")
        self.assertEqual(self.started(text), 4)
        self.assertIn("ok 40   diverged 0   failed 0   missing 0", text)
        self.assertIn("done 40   diverged 0   failed 0   missing 0", self.phasor("status", "out"))
        self.assertIn("all is whole", self.phasor("verify", "out"))
        after = self.stamps()
        changed = {file for file in before if after[file] != before[file]}
        self.assertEqual(changed, {self.path(cells[i]) for i in (0, 7, 20, 39)})
        self.assertEqual(self.started(self.sweep()), 0)


if __name__ == "__main__":
    main()
