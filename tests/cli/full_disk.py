"""Output that cannot be written never ends with exit code 0, and a trial without room for any record is told, and missing."""
import os
import resource
import signal
import stat
import subprocess

import harness
from harness import Case, experiment, main, sweep


class FullDisk(Case):
    def setUp(self):
        super().setUp()
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode), "/dev/full is no device on this machine: mknod it (1, 7)")

    def to_full(self, *arguments):
        """Exit code and standard error with a full disk behind standard output."""
        with open("/dev/full", "w") as full:
            process = subprocess.run([harness.PHASOR, *arguments], cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
                                     stdout=full, stderr=subprocess.PIPE, timeout=120)
        return process.returncode, process.stderr

    def with_room(self, size, *arguments):
        """No file can grow beyond `size` bytes: what a full disk looks like to a program."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        process = subprocess.run([harness.PHASOR, *arguments], cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, preexec_fn=limit)
        return process.returncode, process.stdout + process.stderr

    def test_standard_output(self):
        self.phasor("sweep", "sweep.json", "--out", "out")
        for arguments in [("--help",), ("--version",), ("describe", "base.json"), ("describe", "base.json", "--json"),
                          ("plugins",), ("plugins", "selective_rope"), ("table", "out"), ("table", "out", "--form", "trials"),
                          ("table", "out", "--format", "markdown"), ("sweep", "sweep.json", "--out", "out"),
                          ("sweep", "sweep.json", "--dry-run"), ("run", "base.json", "--out", "one"), ("schema",),
                          ("schema", "sweep"), ("status", "out"), ("status", "out", "--json"), ("merge", "out"), ("doctor",),
                          ("bench", "base.json", "--steps", "1"), ("run", "--help")]:
            code, error = self.to_full(*arguments)
            self.assertEqual(code, 1, f"{arguments} {error}")
            self.assertRegex(error, "cannot be written|No space left", arguments)

    def test_named_files(self):
        self.phasor("sweep", "sweep.json", "--out", "out")
        for arguments in [("table", "out"), ("merge", "out")]:
            text = self.phasor(*arguments, "--out", "/dev/full", code=2)
            self.assertIn("/dev/full: cannot be written, no space left on device", text)
            self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode), "a device is written to, never replaced")

    def test_a_sweep(self):
        self.write("base.json", experiment(**{"train.steps": 400, "run.log_every": 1}))
        code, text = self.with_room(8000, "sweep", "sweep.json", "--out", "out", "--jobs", "1")
        self.assertEqual(code, 3, text)
        self.assertIn("ok 0   diverged 0   failed 0   missing 4", text)
        self.assertIn("failed 0   missing 4", self.phasor("status", "out", code=3))
        failed = [line for line in text.splitlines() if line.startswith("  error ")]
        self.assertEqual(len(failed), 4, text)
        for line in failed:
            self.assertRegex(line, r"cannot be written, (file too large|no space left)")
        self.assertFalse([name for name in os.listdir(self.path("out")) if name.endswith(".tmp")])
        self.assertIn("finished 4   ok 4", self.phasor("sweep", "sweep.json", "--out", "out"))

    def test_a_single_run(self):
        self.write("base.json", experiment(**{"train.steps": 400, "run.log_every": 1}))
        code, text = self.with_room(8000, "run", "base.json", "--out", "out")
        self.assertEqual(code, 2, text)
        self.assertIn("cannot be written, file too large", text)


if __name__ == "__main__":
    main()
