"""What ./run and ./test say while they compile: each step when it has ended, and how long the rest takes once that can be known."""
import os
import pty
import select
import subprocess
import time
import unittest

from harness import ROOT, main


class BuildProgress(unittest.TestCase):
    def setUp(self):
        self.screen, terminal = pty.openpty()
        command = f". '{ROOT}/cmake/prepare.sh'; build_progress"
        self.process = subprocess.Popen(["bash", "-c", command], stdin=subprocess.PIPE, stdout=terminal, text=True)
        os.close(terminal)
        self.addCleanup(os.close, self.screen)

    def step(self, line, wanted):
        """Feeds one line; what is on the screen once `wanted` is."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        seen, end = "", time.time() + 60
        while wanted not in seen:
            ready, _, _ = select.select([self.screen], [], [], max(0.0, end - time.time()))
            self.assertTrue(ready, f"{line}: a line is shown when it comes, not with later ones")
            seen += os.read(self.screen, 4096).decode()
        return seen

    def test_lines(self):
        begun = time.time()
        self.assertNotIn("ETA", self.step("[1/223] Building a large file", "compiled 1 of 223"))
        self.assertNotIn("ETA", self.step("[19/223] Building", "compiled 19 of 223"))
        time.sleep(max(0.0, begun + 13 - time.time()))
        self.assertNotIn("ETA", self.step("[19/223] Building", "compiled 19 of 223"))  # too few
        self.process.stdin.write("no progress of a build\n")
        shown = self.step("[100/200] Building", "ETA")
        self.assertRegex(shown, r"compiled 100 of 200   ETA 0:\d\d")
        self.process.stdin.close()
        self.assertEqual(self.process.wait(60), 0)


if __name__ == "__main__":
    main()
