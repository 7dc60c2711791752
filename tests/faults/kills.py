"""Runners and trials killed at random moments: every file opens with stock tools, no finished trial is lost (acceptance A1, L31)."""
import os
import random
import signal
import time

from faults import Faults, children, count, digest, experiment, grid, kill, main, status_of


class Kills(Faults):
    def look(self, folder, done):
        """Every file opens; what was done is as it was. `done`: file to hash, gets what is done now."""
        found = {file: status_of(file) for file in self.files(folder)}
        for file, before in done.items():
            self.assertIn(file, found, "a finished trial is lost")
            self.assertEqual(digest(file), before, "a finished trial was changed")
        for file, status in found.items():
            self.assertIn(status, ("done", "crashed", "lost"), file)
            if status == "done":
                done[file] = digest(file)
        if os.path.exists(self.path(folder + "/sweep.json")):
            self.verify(folder, len(found))

    def verify(self, folder, least):
        """`phasor verify` finds no file damaged, and states of every trial whether it is there."""
        process = self.start("verify", folder)
        text, error = process.communicate()
        self.assertIn(process.returncode, (0, 3), text + error)
        self.assertFalse([line for line in text.splitlines() if line.startswith("damaged ")], text)
        whole = int(text.split(" whole")[0].split()[-1])
        self.assertGreaterEqual(whole, least, text)  # a runner may work on
        without = [line for line in text.splitlines() if line.startswith(("lost ", "missing "))]
        self.assertEqual(whole + len(without), 12, text)

    def test_random_kills(self):
        seed = random.randrange(1 << 30)
        print(f"kills with the seed {seed}")
        chance = random.Random(seed)
        self.write("base.json", experiment(**{"train.steps": 60}))
        self.write("sweep.json", grid(6, (0.01, 0.02)))
        kills, sweeps = count(10, 200), 0
        while kills > 0:
            folder, done, sweeps = f"out{sweeps}", {}, sweeps + 1
            while True:
                driver = self.drive("--jobs", "2", "--retry-failed", folder=folder)
                while driver.poll() is None and kills > 0:
                    time.sleep(chance.uniform(0.02, 0.5))
                    victims = children(driver.pid)
                    of_trial = chance.random() < 0.4 and victims
                    if driver.poll() is None and kill(chance.choice(victims) if of_trial else driver.pid):
                        kills -= 1
                    if not of_trial:
                        driver.communicate()
                    self.look(folder, done)
                driver.communicate()
                if driver.returncode == 0:
                    break
            self.look(folder, done)
            self.assertEqual(len(done), 12)
            # A runner that was killed after its trial stored a record leaves a lease, which means nothing.
            self.assertIn("no sweep runs here", self.phasor("status", folder))

    def test_a_trial_that_is_lost_again_and_again(self):
        self.write("base.json", experiment(**{"train.steps": 100000}))
        self.write("sweep.json", grid(1))
        for _ in range(2):
            driver = self.drive()
            self.until(lambda: children(driver.pid))
            driver.kill()
            driver.communicate()
        text = self.ended(self.drive("--attempts", "2", "--jobs", "1"), code=3)
        self.assertIn("  lost      NoPE / lr 0.01 / seed 0   2 attempts in a row did not come back, the last by process", text)
        self.assertIn("lost             2 attempts", self.phasor("status", "out", code=3))
        self.assertEqual(len([n for n in os.listdir(self.path("out/logs")) if n.endswith(".lost1.log")]), 1)
        self.assertIn("to run 0", self.phasor("sweep", "sweep.json", "--out", "out", "--dry-run"))
        # Asked for, it runs again, and starts with a clean record.
        driver = self.drive("--attempts", "2", "--retry-failed")
        self.until(lambda: children(driver.pid))
        driver.kill()
        driver.communicate()
        driver = self.drive("--attempts", "2", "--retry-failed")  # the record of before stands until then
        self.until(lambda: children(driver.pid))
        driver.send_signal(signal.SIGTERM)
        self.ended(driver, code=130)


if __name__ == "__main__":
    main()
