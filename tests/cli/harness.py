"""Runs the phasor binary as a user does, in a scratch folder, on experiments of a second or less."""
import json
import os
import re
import subprocess
import tempfile
import unittest

PHASOR = os.environ["PHASOR"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def experiment(**changes):
    """A small parity experiment; changes as {"train.steps": 5} are patched in."""
    spec = {
        "seed": 0,
        "task": {"name": "state_tracking", "group": "S2", "train": {"rows": 500, "length": 6},
                 "valid": {"rows": 40, "length": 6}, "test": {"rows": 40, "lengths": [6, 9]}},
        "model": {"dim": 8, "layers": 1, "init_std": 0.1, "mlp": {"width": 16},
                  "backbone": {"name": "gla", "heads": 2, "expand_k": 1.0, "short_conv": 4},
                  "encoding": {"name": "selective_rope", "projection": {"kind": "low_rank", "rank": 2}, "bias": True,
                               "temperature": {"theta": 1.0}}},
        "optimizer": {"name": "adamw", "lr": 0.01, "schedule": {"name": "cosine"}},
        "train": {"steps": 8, "batch": 8, "lanes": 4, "micro_batch": 1},
        "run": {"threads": 1, "log_every": 2},
    }
    for path, value in changes.items():
        at = spec
        *parents, last = path.split(".")
        for key in parents:
            at = at.setdefault(key, {})
        at[last] = value
    return spec


def sweep(**changes):
    """Two variants, one learning rate, two seeds."""
    spec = {
        "name": "tiny",
        "base": "base.json",
        "axes": [
            {"name": "variant", "role": "row", "points": [
                {"label": "NoPE", "set": {"model.encoding": {"name": "nope"}}},
                {"label": "Selective", "set": {}}]},
            {"name": "lr", "role": "select", "path": "optimizer.lr", "values": [0.01]},
            {"name": "seed", "role": "replicate", "path": "seed", "values": [0, 1]},
        ],
        "table": {
            "select": {"split": "valid", "metric": "sequence_accuracy", "slice": 6},
            "report": [{"split": "test", "metric": "sequence_accuracy", "slices": [6, 9]}],
            "baseline": "NoPE",
        },
    }
    spec.update(changes)
    return spec


class Case(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="phasor_cli_")
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.write("base.json", experiment())
        self.write("sweep.json", sweep())

    def path(self, name):
        return os.path.join(self.folder, name)

    def listing(self, folder="out"):
        """Every file in the folder, with its time and size: what shows that a command wrote nothing."""
        found = {}
        for place, _, names in os.walk(self.path(folder)):
            for name in names:
                state = os.stat(os.path.join(place, name))
                found[os.path.join(place, name)] = (state.st_mtime_ns, state.st_size)
        return found

    def write(self, name, content):
        with open(self.path(name), "w") as file:
            file.write(content if isinstance(content, str) else json.dumps(content, indent=2))
        return name

    def start(self, *arguments, **environment):
        return subprocess.Popen([PHASOR, *arguments], cwd=self.folder, env={**os.environ, **environment}, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def phasor(self, *arguments, code=0, **environment):
        """Standard output and error together; fails on another exit code."""
        process = self.start(*arguments, **environment)
        out, error = process.communicate(timeout=300)
        self.assertEqual(process.returncode, code, f"phasor {' '.join(arguments)}\n{out}{error}")
        return out + error

    def records(self, folder="out"):
        """File name to the moment of its last change."""
        return {name: os.stat(os.path.join(self.path(folder), name)).st_mtime_ns
                for name in os.listdir(self.path(folder)) if name.endswith(".h5")}

    def bits_of(self, record):
        """The hash of the numbers in a record's file, read by the system's h5py."""
        read = "import h5py, sys; print(h5py.File(sys.argv[1], 'r').attrs['bits'].decode())"
        return subprocess.run(["/usr/bin/python3", "-c", read, self.path(record)], check=True, capture_output=True, text=True).stdout

    def bits(self, file, folder, *more):
        """The hash of a trial's numbers, from its record."""
        found = re.search(r"^bits\s+(\w+)$", self.phasor("run", file, "--out", folder, *more), re.MULTILINE)
        self.assertIsNotNone(found)
        return found.group(1)


def main():
    unittest.main(verbosity=2)
