"""The program with --device cuda, where libphasor_cuda.so is the emulation of two devices: sweeps whose trials share one."""
import os
import re
import signal
import sys

import h5py

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
from faults import Faults, children, content, experiment, grid, main  # noqa: E402


class Program(Faults):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("lib"))
        for place in (os.environ["PHASOR_LIBRARIES"], os.environ["PHASOR_EMULATED"]):  # the second takes the place of the first
            for name in os.listdir(place):
                if name.startswith("libphasor_") and ".so" in name:
                    link = self.path("lib/" + name)
                    if os.path.lexists(link):
                        os.remove(link)
                    os.symlink(os.path.join(place, name), link)
        self.write("base.json", experiment(**{"train.steps": 12, "task.valid.rows": 8, "task.test.rows": 8, "train.batch": 4,
                                              "run.checkpoint_every": 3}))
        self.write("sweep.json", grid(4))

    def start(self, *arguments, **environment):
        return super().start(*arguments, LD_LIBRARY_PATH=self.path("lib"), **environment)

    def facts(self, file):
        with h5py.File(file, "r") as record:
            return dict(zip(record["provenance/name"][:], record["provenance/value"][:]))

    def contents(self, folder):
        """Without the name of the device, which says where a trial happened to run."""
        found = {}
        for file in self.files(folder):
            found[os.path.basename(file)] = content(file)
            del found[os.path.basename(file)]["provenance.device.name"]
            self.assertEqual(self.facts(file)[b"device"], b"cuda")
        return found

    def test_same_bits_whatever_shares_a_device(self):
        self.assertIn("cuda             emulation 0", self.phasor("doctor"))
        self.phasor("sweep", "sweep.json", "--device", "cuda", "--out", "alone", "--jobs", "1")
        expected = self.contents("alone")
        self.assertEqual(len(expected), 4)
        text = self.phasor("sweep", "sweep.json", "--device", "cuda", "--out", "one", "--jobs", "1", "--trials-per-device", "4")
        self.assertIn("4 trials, 0 done, 1 jobs of 4 trials\n", text)
        self.assertEqual(self.contents("one"), expected)
        self.assertEqual({self.facts(file)[b"device.name"] for file in self.files("one")}, {b"emulation 0"})
        text = self.phasor("sweep", "sweep.json", "--device", "cuda", "--out", "two", "--trials-per-device", "2")
        self.assertIn("4 trials, 0 done, 2 jobs of 2 trials\n", text)  # a process for each of the two devices
        self.assertEqual(self.contents("two"), expected)
        names = [self.facts(file)[b"device.name"] for file in self.files("two")]
        self.assertEqual(set(names), {b"emulation 0", b"emulation 1"})

    def test_processes_take_turns_at_devices(self):
        self.phasor("sweep", "sweep.json", "--device", "cuda", "--out", "out", "--jobs", "3")
        self.assertEqual({self.facts(file)[b"device.name"] for file in self.files()}, {b"emulation 0", b"emulation 1"})
        self.phasor("run", "base.json", "--device", "cuda", "--out", "single")
        file, = self.files("single")
        self.assertEqual(self.facts(file)[b"device.name"], b"emulation 0")

    def test_one_that_diverges(self):
        spec = grid(1)
        spec["axes"] = [{"name": "variant", "role": "row", "points": [
            {"label": "good", "set": {}}, {"label": "diverges", "set": {"optimizer.lr": 1e30}},
            {"label": "ALiBi", "set": {"model.backbone": {"name": "transformer", "heads": 2}, "model.encoding": {"name": "alibi"}}},
            {"label": "another", "set": {"seed": 7}}]}]
        spec["table"] = {"report": [{"split": "test", "metric": "sequence_accuracy", "slices": [6]}]}
        self.write("sweep.json", spec)
        text = self.phasor("sweep", "sweep.json", "--device", "cuda", "--out", "out", "--jobs", "1", "--trials-per-device", "4")
        self.assertIn("finished 4   ok 3   diverged 1   failed 0   missing 0", text)
        self.phasor("sweep", "sweep.json", "--device", "cuda", "--out", "alone", "--jobs", "1")
        self.assertEqual(self.contents("out"), self.contents("alone"))

    def test_interrupted_and_resumed(self):
        self.write("base.json", experiment(**{"train.steps": 60, "task.valid.rows": 8, "task.test.rows": 8, "train.batch": 4,
                                              "run.checkpoint_every": 3}))
        self.write("sweep.json", grid(2))
        self.phasor("sweep", "sweep.json", "--device", "cuda", "--out", "alone", "--jobs", "1")
        driver = self.drive("--device", "cuda", "--jobs", "1", "--trials-per-device", "2")
        place = self.path("out/checkpoints")
        self.until(lambda: os.path.isdir(place) and sum(name.endswith(".h5") for name in os.listdir(place)) == 2)
        self.assertEqual(len(children(driver.pid)), 1)
        os.kill(driver.pid, signal.SIGINT)
        self.assertIn("missing 2", self.ended(driver, 3))
        self.assertEqual(self.files(), [])
        text = self.phasor("sweep", "sweep.json", "--device", "cuda", "--out", "out", "--jobs", "1", "--trials-per-device", "2")
        self.assertRegex(text, re.compile(r"^finished 2   ok 2", re.M))
        self.assertEqual(self.contents("out"), self.contents("alone"))


if __name__ == "__main__":
    main()
