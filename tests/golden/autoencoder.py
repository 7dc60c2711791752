"""Makes data/autoencoder__*.h5: a model read at its last position, written down plainly in PyTorch.

    python3 tests/golden/autoencoder.py          needs torch, numpy and h5py; the tests do not

Nothing of the project is used. Encoder: embedding, blocks of causal softmax attention with RoPE and SwiGLU, each behind an
RMSNorm. Decoder (MAD; Poli et al. 2024): the state of the last position and row p of a table of sines and cosines, then twice
RMSNorm, linear map with bias and the exact GELU; RMSNorm; head. The gradients are those of autograd, in float64. PyTorch's
own rms_norm, gelu, attention and cross entropy are used, so that no formula here can share a mistake with the kernels.
"""

import json
import math
import pathlib

import h5py
import numpy
import torch
import torch.nn.functional as F

IGNORED = -100


def parameters(o, positions, random):
    """Values large enough that every path carries something: matrices N(0, 0.5^2), norms near one, no bias zero."""
    dim, inner, vocabulary = o["hidden_size"], o["intermediate_size"], o["vocab_size"]
    make = lambda *shape: 0.5 * torch.randn(*shape, generator=random, dtype=torch.float64)
    near_one = lambda: 1.0 + 0.2 * make(dim)
    p = {"embeddings.weight": make(vocabulary, dim)}
    for i in range(o["num_layers"]):
        layer = f"layers.{i}."
        p |= {layer + "attn_norm.weight": near_one(), layer + "mlp_norm.weight": near_one()}
        p |= {layer + f"attn.{name}_proj.weight": make(dim, dim) for name in "qkvo"}
        p |= {layer + f"mlp.{name}_proj.weight": make(inner, dim) for name in ("gate", "up")}
        p[layer + "mlp.down_proj.weight"] = make(dim, inner)
    half = dim // 2
    frequency = torch.exp(-torch.arange(half, dtype=torch.float64) * math.log(10000.0) / (half - 1))
    angle = torch.arange(positions, dtype=torch.float64)[:, None] * frequency
    p["decoder.positions"] = torch.cat([angle.sin(), angle.cos()], dim=1)
    for i in range(2):
        p |= {f"decoder.{i}.norm.weight": near_one(), f"decoder.{i}.weight": make(dim, dim), f"decoder.{i}.bias": make(dim)}
    return p | {"norm.weight": near_one(), "lm_head.weight": make(vocabulary, dim)}


def rotate(x, theta):
    """RoPE on [batch, heads, time, width], pairs (i, i + width / 2), positions from 0."""
    half = x.shape[-1] // 2
    angle = torch.outer(torch.arange(x.shape[-2]).double(), theta ** (-torch.arange(half).double() / half)).to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


def logits_of(o, p, ids):
    dim, heads, eps = o["hidden_size"], o["attn"]["num_heads"], o["norm_eps"]
    norm = lambda x, name: F.rms_norm(x, (dim,), p[name + ".weight"], eps)
    split = lambda x: x.unflatten(-1, (heads, dim // heads)).transpose(1, 2)
    x = p["embeddings.weight"][ids]
    for i in range(o["num_layers"]):
        layer = f"layers.{i}."
        q, k, v = (split(norm(x, layer + "attn_norm") @ p[layer + f"attn.{name}_proj.weight"].T) for name in "qkv")
        theta = o["attn"]["position_embedding"]["theta"]
        mixed = F.scaled_dot_product_attention(rotate(q, theta), rotate(k, theta), v, is_causal=True)
        x = x + mixed.transpose(1, 2).flatten(-2) @ p[layer + "attn.o_proj.weight"].T
        read = norm(x, layer + "mlp_norm")
        inner = F.silu(read @ p[layer + "mlp.gate_proj.weight"].T) * (read @ p[layer + "mlp.up_proj.weight"].T)
        x = x + inner @ p[layer + "mlp.down_proj.weight"].T
    y = x[:, -1:, :] + p["decoder.positions"][: ids.shape[1]]
    for i in range(2):
        y = F.gelu(F.linear(norm(y, f"decoder.{i}.norm"), p[f"decoder.{i}.weight"], p[f"decoder.{i}.bias"]))
    return norm(y, "norm") @ p["lm_head.weight"].T


def run(o, p, ids, target, cotangents, dtype):
    p = {name: value.to(dtype).detach().clone().requires_grad_(name != "decoder.positions") for name, value in p.items()}
    logits = logits_of(o, p, ids)
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=IGNORED).reshape(1)
    outputs = {"logits": logits, "loss": loss}
    total = sum((outputs[name] * cotangents[name].to(dtype)).sum() for name in outputs)
    total.backward()
    numbers = lambda tensors: {name: value.detach().double().numpy() for name, value in tensors.items()}
    return numbers(outputs), numbers({n: value.grad for n, value in p.items() if value.requires_grad}), total.item()


def drift(single, double):
    return max(abs(single[name] - double[name]).max() / abs(double[name]).max() for name in double)


def write(case, seed, dim, heads, layers, rows, time, positions, ignored):
    o = {"attn": {"alibi": False, "hidden_size": dim, "num_heads": heads, "num_kv_heads": heads, "qk_norm": False,
                  "position_embedding": {"theta": 10000.0, "type": "rope"}, "qkv_bias": False, "window_size": None},
         "hidden_size": dim, "ignore_index": IGNORED, "intermediate_size": 11, "mixer": "attention", "norm_eps": 1e-5,
         "num_layers": layers, "tie_word_embeddings": False, "vocab_size": 7}
    random = torch.Generator().manual_seed(seed)
    p = parameters(o, positions, random)
    ids = torch.randint(0, o["vocab_size"] - 1, (rows, time), generator=random)
    ids[:, -1] = o["vocab_size"] - 1
    target = ids.clone()
    target[torch.rand(rows, time, generator=random) < ignored] = IGNORED
    cotangents = {"logits": torch.randn(rows, time, o["vocab_size"], generator=random, dtype=torch.float64),
                  "loss": torch.randn(1, generator=random, dtype=torch.float64)}
    outputs, grads, total = run(o, p, ids, target, cotangents, torch.float64)
    single = run(o, p, ids, target, cotangents, torch.float32)
    groups = {"inputs": {"ids": ids.double().numpy(), "target": target.double().numpy()},
              "params": {name: value.numpy() for name, value in p.items()}, "outputs": outputs,
              "cotangents": {name: value.numpy() for name, value in cotangents.items()}, "grads": grads}
    folder = pathlib.Path(__file__).parent / "data"
    with h5py.File(folder / f"autoencoder__{case}.h5", "w") as file:
        for group, tensors in groups.items():
            for name, value in tensors.items():
                file.require_group(group).create_dataset(name, data=value)
        shapes = {group: {name: list(value.shape) for name, value in tensors.items()} for group, tensors in groups.items()}
        texts = {"unit": "autoencoder", "case": case, "set": "own", "options": json.dumps(o), "shapes": json.dumps(shapes),
                 "index_datasets": json.dumps(["inputs/ids", "inputs/target"])}
        for name, text in texts.items():
            file.attrs[name] = numpy.bytes_(text)
        file.attrs["loss"] = total
        file.attrs["fp32_rel_err"] = [float(f"{drift(single[i], (outputs, grads)[i]):.2e}") for i in range(2)]
        print(case, file.attrs["fp32_rel_err"])


if __name__ == "__main__":
    write("whole", seed=1, dim=8, heads=2, layers=2, rows=3, time=9, positions=9, ignored=0.0)
    write("shorter_odd", seed=2, dim=6, heads=1, layers=1, rows=5, time=7, positions=13, ignored=0.3)
