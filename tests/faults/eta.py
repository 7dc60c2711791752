"""`phasor status` says within 30 % when a sweep of equal trials will be done (acceptance L48)."""
import json
import os
import time

from faults import Faults, grid, main

BOOM = os.environ["PHASOR_BOOM"]


class Eta(Faults):
    def test_equal_trials(self):
        """Trials that sleep take equally long however busy the machine is. What is compared is the middle of all moments."""
        for jobs, trials in [("1", 4), ("2", 5)]:
            spec = grid(trials)
            spec["axes"][0]["points"][0]["set"]["model.encoding"] = {"name": "boom", "where": "create", "what": "nap"}
            self.write("sweep.json", spec)
            said = self.said_while_it_runs(jobs)
            wrong = sorted(abs(eta / took - 1.0) for eta, took in said)
            print(f"{jobs} jobs, {len(said)} moments: off by {100 * wrong[len(wrong) // 2]:.0f} % in the middle, {100 * wrong[-1]:.0f} % at most")
            self.assertGreater(len(said), 5)
            self.assertLess(wrong[len(wrong) // 2], 0.3, said)

    def said_while_it_runs(self, jobs):
        """The ETA and what it took then, from the first measured trial until little is left."""
        folder, moments = "out" + jobs, []
        driver = self.drive("--jobs", jobs, "--plugin", BOOM, folder=folder)
        while driver.poll() is None:
            if os.path.exists(self.path(folder + "/sweep.json")):
                asked = time.time()
                found = json.loads(self.start("status", folder, "--json").communicate()[0])
                moments.append((asked, found["eta_seconds"]))
            time.sleep(0.05)
        end = time.time()
        self.ended(driver)
        said = [(eta, end - when) for when, eta in moments if eta is not None]
        most = max(took for _, took in said)
        return [(eta, took) for eta, took in said if took > 0.2 * most]


if __name__ == "__main__":
    main()
