"""What the tests of faults share: runners that are watched, killed and compared."""
import hashlib
import json
import os
import signal
import sys
import time

import h5py

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import harness  # noqa: E402
from harness import Case, experiment, main, sweep  # noqa: E402,F401

FULL = os.environ.get("PHASOR_FULL") == "1"  # the counts of the acceptance tests; else a few of each


def count(reduced, full):
    return full if FULL else reduced


def grid(seeds, rates=(0.01,), **more):
    """A sweep of NoPE alone: rates x seeds."""
    spec = sweep(**more)
    spec["axes"] = [{"name": "variant", "role": "row", "points": [{"label": "NoPE", "set": {"model.encoding": {"name": "nope"}}}]},
                    {"name": "lr", "role": "select", "path": "optimizer.lr", "values": list(rates)},
                    {"name": "seed", "role": "replicate", "path": "seed", "values": list(range(seeds))}]
    spec["table"].pop("baseline", None)
    return spec


def children(process):
    try:
        with open(f"/proc/{process}/task/{process}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def kill(process):
    """False when it had ended by itself meanwhile."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def state_of(process):
    """A letter of proc(5), T for stopped; X when it is gone."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def content(file):
    """What a record holds, but for times and the command: dataset or attribute to its bytes. Read by the system's h5py."""
    found = {}
    with h5py.File(file, "r") as record:
        assert record.attrs["complete"] == 1, file
        found.update({f"@{name}": str(value) for name, value in record.attrs.items()})
        record.visititems(lambda name, node: found.update({name: node[()].tobytes()}) if isinstance(node, h5py.Dataset) else None)
        for group in ("summary", "provenance"):
            names, values = record[f"{group}/name"][()], record[f"{group}/value"][()]
            del found[f"{group}/name"], found[f"{group}/value"]
            for name, value in zip(names, values):
                if not name.startswith((b"seconds", b"step_ms", b"resumed", b"command")):
                    found[f"{group}.{name.decode()}"] = value.tobytes() if hasattr(value, "tobytes") else value
    return found


def status_of(file):
    with h5py.File(file, "r") as record:
        assert record.attrs["complete"] == 1, file
        return record.attrs["status"].decode()


def digest(file):
    with open(file, "rb") as stream:
        return hashlib.sha256(stream.read()).hexdigest()


class Faults(Case):
    def files(self, folder="out"):
        place = self.path(folder)
        names = sorted(name for name in os.listdir(place) if name.endswith(".h5")) if os.path.isdir(place) else []
        return [os.path.join(place, name) for name in names]

    def manifest(self, folder="out"):
        with open(self.path(folder + "/sweep.json")) as file:
            return json.load(file)

    def until(self, what, seconds=600):
        """Waits for something to be true; long, because machines of tests stand still now and then."""
        end = time.time() + seconds
        while not what():
            self.assertLess(time.time(), end, "it did not happen")
            time.sleep(0.01)

    def leases(self, folder="out"):
        place = self.path(folder + "/leases")
        names = os.listdir(place) if os.path.isdir(place) else []
        return sorted(name for name in names if not name.startswith("."))

    def drive(self, *more, folder="out", **environment):
        return self.start("sweep", "sweep.json", "--out", folder, *more, **environment)

    def ended(self, driver, code=0):
        out, error = driver.communicate(timeout=1800)
        self.assertEqual(driver.returncode, code, out + error)
        return out + error

    def started(self, text):
        """How many trials a runner says that it started."""
        line = [line for line in text.splitlines() if line.startswith(("finished ", "stopped after "))]
        self.assertEqual(len(line), 1, text)
        return int(line[0].removeprefix("finished ").removeprefix("stopped after ").split()[0])

    def stop(self, *processes):
        for process in processes:
            os.kill(process, signal.SIGSTOP)

    def go_on(self, *processes):
        for process in processes:
            os.kill(process, signal.SIGCONT)
