"""What stands at the ends of a command: readers that go away, pipes for files, limits on the size of files."""
import os
import resource
import signal
import subprocess
import threading

import harness
from harness import Case, experiment, main


class Streams(Case):
    def closed_early(self, *arguments, both=False):
        """Runs with an output of which the reader has gone before the first byte; exit code and standard error."""
        read, write = os.pipe()
        os.close(read)
        try:
            process = subprocess.run([harness.PHASOR, *arguments], cwd=self.folder, text=True, stdin=subprocess.DEVNULL, stdout=write,
                                     stderr=write if both else subprocess.PIPE, timeout=120,
                                     preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
        finally:
            os.close(write)
        return process.returncode, process.stderr or ""

    def test_work_outlives_its_readers(self):
        code, error = self.closed_early("sweep", "sweep.json", "--out", "out")
        self.assertEqual(code, 0, error)
        self.assertEqual(error.count("nobody reads standard output any more; the work goes on"), 1, error)
        self.assertEqual(len(self.records()), 4)
        self.assertEqual(self.closed_early("sweep", "sweep.json", "--out", "both", both=True)[0], 0)
        self.assertEqual(len(self.records("both")), 4)
        self.assertEqual(self.closed_early("run", "base.json", "--out", "one")[0], 0)
        self.assertEqual(len(self.records("one")), 1)
        # What only prints ends with its reader, as every program.
        self.assertEqual(self.closed_early("table", "out")[0], -signal.SIGPIPE)

    def test_a_limit_on_the_size_of_files(self):
        self.write("base.json", experiment(**{"train.steps": 400, "run.log_every": 1}))
        process = subprocess.run([harness.PHASOR, "run", "base.json", "--out", "out"], cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000)))
        self.assertEqual(process.returncode, 2, process.stdout)
        self.assertRegex(process.stdout, r"\.h5: cannot be written, file too large; raise the limit on the size of files \(ulimit -f\)")

    def from_pipe(self, name, *arguments, code=0):
        with open(self.path(name)) as file:
            process = subprocess.run([harness.PHASOR, *arguments], cwd=self.folder, text=True, input=file.read(), stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, timeout=120)
        self.assertEqual(process.returncode, code, process.stdout)
        return process.stdout

    def test_a_file_from_a_pipe(self):
        def told(text):
            return [line for line in text.splitlines() if not line.startswith("time ")]  # it is measured

        self.assertEqual(told(self.from_pipe("base.json", "describe", "/dev/stdin")), told(self.phasor("describe", "base.json")))
        self.assertIn("record", self.from_pipe("base.json", "run", "/dev/stdin", "--out", "out"))
        self.assertEqual(len(self.records()), 1)
        self.write("absolute.json", {**harness.sweep(), "base": self.path("base.json")})
        self.assertIn("finished 4   ok 4", self.from_pipe("absolute.json", "sweep", "/dev/stdin", "--out", "swept"))
        self.assertIn("4 cells", self.from_pipe("absolute.json", "describe", "/dev/stdin"))
        self.write("bad.json", '{"seed": ')
        self.assertIn("/dev/stdin:1:", self.from_pipe("bad.json", "describe", "/dev/stdin", code=2))

    def test_a_pipe_with_a_name_is_refused(self):
        os.mkfifo(self.path("named"))
        writer = threading.Thread(target=self.feed, daemon=True)
        writer.start()
        self.assertIn("named: is a pipe, which can be read only once, expected a file", self.phasor("describe", "named", code=2))
        with open(self.path("named")) as pipe:  # lets the writer go
            pipe.read()
        writer.join(10)

    def feed(self):
        with open(self.path("named"), "w") as pipe, open(self.path("base.json")) as file:
            pipe.write(file.read())


if __name__ == "__main__":
    main()
