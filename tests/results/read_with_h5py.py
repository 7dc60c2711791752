"""Reads the record of sample_record() as layout.md says, then adds things this version does not know."""
import json
import math
import sys

import h5py
import numpy

name = sys.argv[1]
with h5py.File(name, "r") as f:
    assert f.attrs["format"] == 1 and f.attrs["complete"] == 1
    assert f.attrs["status"].decode() == "diverged", f.attrs["status"]
    assert f.attrs["message"].decode() == "loss nan at step 20"
    spec = json.loads(f["spec"][0])
    assert spec["seed"] == 2**53 + 1 and spec["optimizer"]["lr"] == 0.001
    assert spec["note"] == 'S\u00e9lective "quoted"'
    assert list(f["steps/step"][:]) == list(range(1, 21))
    assert f["steps/loss"].dtype == "<f8" and f["steps/loss"].attrs["unit"].decode() == "nats per token"
    assert math.isnan(f["steps/loss"][19]) and math.isinf(f["steps/grad_norm"][19])
    assert list(f["steps/clipped"][:4]) == [0, 0, 1, 0]
    keep = (f["evals/split"].asstr()[:] == "test") & (f["evals/metric"].asstr()[:] == "loss")
    assert list(f["evals/slice"][:][keep]) == [128]
    assert f["evals/value"][:][keep][0] == -math.inf
    assert f["parameters/name"].asstr()[1] == "layers.0.encoding.temperature"
    facts = dict(zip(f["provenance/name"].asstr()[:], f["provenance/value"].asstr()[:]))
    assert facts == {"commit": "76cea72", "flags": "", "data.test": "c41e77"}, facts
    digest = 14695981039346656037
    for byte in f["evals/value"][:].tobytes():
        digest = (digest ^ byte) * 1099511628211 % 2**64
    assert f["evals/value"].attrs["digest"] == digest

with h5py.File(name, "a") as f:
    f["steps/tokens_per_second"] = numpy.arange(20.0)
    f.create_group("probes/attention")["map"] = numpy.zeros((3, 4, 5))
    f.attrs["reviewed_by"] = "someone"
