"""Trained parameters for other programs: a safetensors file, read back here by the format's own description."""
import json
import os
import struct

import h5py
import numpy

from harness import Case, experiment, main

GLA = ["attn_norm.weight", "mlp_norm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight"] + [
    f"attn.{name}" for name in ["q_proj.weight", "k_proj.weight", "v_proj.weight", "g_proj.weight", "gk_proj.0.weight", "gk_proj.1.weight",
                                "gk_proj.1.bias", "q_conv1d.weight", "k_conv1d.weight", "v_conv1d.weight", "g_norm_swish_gate.weight",
                                "o_proj.weight"]]


def read(path):
    """Name to array, and the metadata: eight bytes of length, a header in JSON, the values."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        start, data = file.tell(), file.read()
    assert start % 8 == 0
    metadata = header.pop("__metadata__")
    spans = sorted(tensor["data_offsets"] for tensor in header.values())
    assert [0, *[end for _, end in spans]] == [*[begin for begin, _ in spans], len(data)], "no holes, no overlaps"
    kinds = {"F32": "<f4", "F64": "<f8"}
    return {name: numpy.frombuffer(data[slice(*tensor["data_offsets"])], kinds[tensor["dtype"]]).reshape(tensor["shape"])
            for name, tensor in header.items()}, metadata


class Export(Case):
    def trained(self, **changes):
        self.write("base.json", experiment(**{"run.keep_checkpoint": True, **changes}))
        self.phasor("run", "base.json", "--out", "out", "--force")
        (name,) = os.listdir(self.path("out/checkpoints"))
        return os.path.join("out/checkpoints", name)

    def exported(self, checkpoint):
        self.phasor("export", checkpoint, "--weights", "w.safetensors")
        return read(self.path("w.safetensors"))

    def test_it_does_not_replace_what_it_reads(self):
        checkpoint = self.trained()
        with open(self.path(checkpoint), "rb") as file:
            before = file.read()
        self.assertIn("is an HDF5 file", self.phasor("export", checkpoint, "--weights", checkpoint, code=2))
        with open(self.path(checkpoint), "rb") as file:
            self.assertEqual(file.read(), before)

    def test_names_shapes_and_values(self):
        checkpoint = self.trained()
        weights, metadata = self.exported(checkpoint)
        names = {"lm_head.weight", "model.embeddings.weight", "model.norm.weight", *[f"model.layers.0.{name}" for name in GLA]}
        self.assertEqual({name for name in weights if ".encoding." not in name}, names)
        self.assertEqual(weights["model.layers.0.attn.q_conv1d.weight"].shape, (8, 1, 4))
        self.assertEqual(weights["model.layers.0.attn.q_proj.weight"].shape, (8, 8))
        self.assertEqual(weights["model.layers.0.mlp.down_proj.weight"].shape, (8, 16))
        with h5py.File(self.path(checkpoint), "r") as file:
            kept = {}
            file["values"].visititems(lambda name, node: kept.update({name: node[()]}) if isinstance(node, h5py.Dataset) else None)
            self.assertEqual(metadata["phasor.id"], file.attrs["id"].decode())
        self.assertEqual(json.loads(metadata["phasor.spec"])["model"]["backbone"]["name"], "gla")
        self.assertEqual(len(weights), len(kept))
        for name, values in kept.items():
            name = name.replace("g_norm.", "g_norm_swish_gate.") if "attn" in name else name
            found = weights[name if name.startswith("lm_head") else "model." + name]
            self.assertEqual(found.dtype, values.dtype)
            self.assertEqual(found.tobytes(), values.tobytes(), name)

    def test_double_precision_and_a_norm_without_gate(self):
        weights, _ = self.exported(self.trained(**{"train.precision": "f64", "model.backbone.output_gate": False}))
        self.assertEqual({values.dtype for values in weights.values()}, {numpy.dtype("<f8")})
        self.assertIn("model.layers.0.attn.g_norm.weight", weights)
        self.assertNotIn("model.layers.0.attn.g_proj.weight", weights)

    def test_what_cannot_be_exported(self):
        checkpoint = self.trained()
        (record,) = [name for name in os.listdir(self.path("out")) if name.endswith(".h5")]
        self.assertIn("run.keep_checkpoint", self.phasor("export", "out/" + record, "--weights", "w.safetensors", code=2))
        self.assertIn("--weights", self.phasor("export", checkpoint, code=2))
        self.assertIn("none.h5", self.phasor("export", "none.h5", "--weights", "w.safetensors", code=2))
        with open(self.path(checkpoint), "r+b") as file:
            file.truncate(os.path.getsize(self.path(checkpoint)) // 2)
        self.assertIn("expected a whole checkpoint", self.phasor("export", checkpoint, "--weights", "w.safetensors", code=2))
        self.assertFalse(os.path.exists(self.path("w.safetensors")))


if __name__ == "__main__":
    main()
