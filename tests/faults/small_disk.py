"""A disk that fills up (a file system of 1 MB): whole files or none, the last good checkpoint stays (acceptance L33, L35)."""
import os
import subprocess
import sys
import tempfile

import h5py

from faults import Faults, children, content, count, digest, experiment, grid, main, state_of, status_of


def mount(place):
    os.makedirs(place, exist_ok=True)
    return subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], capture_output=True).returncode == 0


def unmount(place):
    subprocess.run(["umount", "-l", place], check=True)


class SmallDisk(Faults):
    def setUp(self):
        super().setUp()
        self.assertTrue(mount(self.path("out")))
        self.addCleanup(unmount, self.path("out"))

    def leave(self, room):
        """Takes all of the disk but so many bytes."""
        disk = os.statvfs(self.path("out"))
        with open(self.path("out/filler"), "wb") as file:
            file.write(b"x" * (disk.f_bavail * disk.f_bsize - room))

    def stopped_between_checkpoints(self, driver, folder):
        """Stops the trial while it writes nothing; its checkpoint."""
        def names():
            return os.listdir(folder) if os.path.isdir(folder) else []
        while True:
            self.until(lambda: any(name.endswith(".h5") for name in names()))
            self.stop(*children(driver.pid))
            self.until(lambda: all(state_of(child) == "T" for child in children(driver.pid)))
            if len(names()) == 1:
                return os.path.join(folder, names()[0])
            self.go_on(*children(driver.pid))

    def says(self, log, words):
        with open(log) as file:
            return words in file.read()

    def test_results(self):
        self.write("base.json", experiment(**{"train.steps": 400, "run.log_every": 1}))
        self.write("sweep.json", grid(10))
        os.makedirs(self.path("out/logs"))
        self.leave(150_000)
        text = self.ended(self.drive("--jobs", "2"), code=3)
        done = {file: digest(file) for file in self.files() if status_of(file) == "done"}
        recorded = len(self.files()) - len(done)  # the disk may take the record of a failure, which is smaller
        counts = f"diverged 0   failed {recorded}   missing {10 - len(done) - recorded}"
        self.assertIn(f"ok {len(done)}   {counts}", text)
        self.assertIn(f"done {len(done)}   {counts}", self.phasor("status", "out", code=3))
        self.assertTrue(0 < len(done) < 10, text)
        failed = [line for line in text.splitlines() if line.startswith("  error ")]
        self.assertEqual(len(failed), 10 - len(done), text)
        for line in failed:
            self.assertIn("no space left on device", line)
        self.assertFalse([name for name in os.listdir(self.path("out")) if name.endswith(".tmp")])
        os.remove(self.path("out/filler"))
        self.ended(self.drive("--jobs", "2", "--retry-failed"))
        self.assertEqual([status_of(file) for file in self.files()], ["done"] * 10)
        self.assertEqual({file: digest(file) for file in done}, done)

    def test_checkpoints(self):
        changes = {"train.steps": 1500, "model.dim": 32, "run.log_every": 1000}
        self.write("base.json", experiment(**changes))
        self.write("sweep.json", grid(1))
        self.ended(self.drive(folder="whole"))
        whole = content(self.files("whole")[0])
        self.write("base.json", experiment(**changes, **{"run.checkpoint_every": 5}))
        driver = self.drive()
        kept = self.path("out/checkpoints")
        file = self.stopped_between_checkpoints(driver, kept)
        self.leave(os.path.getsize(file) // 2)  # the next one has no room beside it
        self.go_on(*children(driver.pid))
        before = digest(file)
        logs = self.path("out/logs")
        log = os.path.join(logs, os.listdir(logs)[0])
        os.truncate(log, 0)  # room for a word
        self.until(lambda: self.says(log, "no checkpoint at step"))
        driver.kill()
        driver.communicate()
        self.assertEqual(digest(file), before)
        with h5py.File(file, "r") as checkpoint:  # stock tools open it
            self.assertEqual(checkpoint.attrs["complete"], 1)
        os.remove(self.path("out/filler"))
        self.ended(self.drive())
        after = content(self.files()[0])
        self.assertEqual({name: value for name, value in after.items() if name != "spec"},
                         {name: value for name, value in whole.items() if name != "spec"})
        self.assertFalse(os.path.exists(kept))

    def test_reruns_grow_nothing(self):
        sizes = set()
        for _ in range(count(4, 500)):
            self.phasor("run", "base.json", "--out", "out", "--force")
            sizes.add(os.path.getsize(self.files()[0]) // 1024)
            self.assertEqual(len(os.listdir(self.path("out"))), 1)
        self.assertLessEqual(len(sizes), 2)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        if not mount(os.path.join(scratch, "disk")):
            print("skipped: a small tmpfs cannot be mounted here (needs root)")
            sys.exit(77)
        unmount(os.path.join(scratch, "disk"))
    main()
