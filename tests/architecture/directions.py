"""The direction of dependencies, and where heavy headers may stand (docs/decisions.md; one line per breach)."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])

below_analysis = ["core/base/", "core/spec/", "results/", "analysis/text.h"]
to_the_table = [*below_analysis, "analysis/frame/", "analysis/selection/", "analysis/table/"]
# folder of the includer -> prefixes it may include; the longest matching folder counts
allowed = {
    "core/base": ["core/base/"],
    "core/spec": ["core/base/", "core/spec/"],
    "core": ["core/"],
    "plugins": ["core/", "plugins/"],
    "results": ["core/base/", "core/spec/", "results/"],
    "analysis": below_analysis,
    "analysis/frame": [*below_analysis, "analysis/frame/"],
    "analysis/selection": [*below_analysis, "analysis/frame/", "analysis/selection/"],
    "analysis/table": [*to_the_table],
    "analysis/writers": [*to_the_table, "analysis/writers/"],
    "analysis/reference": [*to_the_table, "analysis/writers/", "analysis/reference/"],
    "analysis/charts": [*below_analysis, "analysis/charts/"],
    "analysis/theory": [*below_analysis, "analysis/theory/"],
    "analysis/figures": [*to_the_table, "analysis/writers/", "analysis/charts/", "analysis/theory/", "analysis/figures/"],
    "analysis/report": [*below_analysis, "analysis/"],
    "experiments": ["core/", "results/", "experiments/"],
    "sweeps": ["core/base/", "core/spec/", "core/plugin/", "experiments/spec.h", "results/", "sweeps/"],
    "cli": ["core/", "results/", "experiments/", "sweeps/", "analysis/", "cli/"],
}
# header -> the only files that may include it (outside tests)
heavy = {
    "nlohmann/": ["core/spec/strict_json.cpp"],
    "hdf5.h": ["results/h5.cpp"],
    "boost/program_options": ["cli/"],
    "boost/asio": ["cli/serve.cpp"],
    "boost/beast": ["cli/serve.cpp"],
    "boost/uuid": ["core/base/hash.cpp"],
    "dnnl.h": ["core/ops/gemm.cpp", "experiments/provenance.cpp"],
    "omp.h": ["core/ops/gemm.cpp"],
    "dlfcn.h": ["core/plugin/loader.cpp", "core/graph/device.cpp", "core/cuda/cudnn.cpp"],
}
libm = re.compile(r"std::(exp|log|log1p|sin|cos|tan|tanh|pow|expm1|sincos)\(")


def owner(path):
    folders = [f for f in allowed if path.startswith(f + "/")]
    return max(folders, key=len) if folders else None


def breaches(path, text):
    folder = owner(path)
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{path}:{number}"
        found = re.match(r'\s*#include [<"]([^>"]+)[>"]', line)
        if found:
            name = found.group(1)
            if folder and re.match(r"(core|plugins|results|analysis|experiments|sweeps|cli|tests|bench)/", name):
                if not any(name.startswith(prefix) for prefix in allowed[folder]):
                    yield f"{place}: {folder} may not include {name}"
            for header, places in heavy.items():
                if name.startswith(header) and not any(path.startswith(p) for p in places):
                    yield f"{place}: {header} belongs in {', '.join(places)}"
        if path.endswith("/cpu.cpp") and libm.search(line):
            yield f"{place}: libm in a kernel; use core/ops/vector_math.h"


def scan(files):
    return [b for path, text in files for b in breaches(path, text)]


def main():
    files = [(str(p.relative_to(root)), p.read_text()) for folder in sorted({f.split("/")[0] for f in allowed})
             for p in sorted((root / folder).rglob("*")) if p.suffix in (".h", ".cpp", ".cu")]
    planted = [("analysis/x.cpp", '#include "core/tensor/tensor.h"'), ("core/base/x.h", '#include "core/nn/model.h"'),
               ("plugins/tasks/x.cpp", "#include <nlohmann/json.hpp>"), ("core/ops/x/cpu.cpp", "y = std::exp(x);"),
               ("sweeps/x.cpp", '#include "experiments/trainer.h"'), ("analysis/frame/x.cpp", '#include "analysis/table/table.h"'),
               ("analysis/charts/x.h", '#include "analysis/frame/frame.h"')]
    if len(scan(planted)) != len(planted):
        sys.exit(f"a planted breach was missed: {scan(planted)}")
    flags = [str(p) for p in [root / "CMakeLists.txt", *root.glob("cmake/*.cmake"), *root.glob("*/CMakeLists.txt")]
             if re.search(r"-ffast-math|-Ofast", p.read_text())]
    rooms = [p.name for p in (root / "core/ops").iterdir() if p.is_dir() and not (p / "cases.cpp").exists()]
    found = scan(files) + [f"{f}: fast-math" for f in flags] + [f"core/ops/{r}: no cases.cpp" for r in rooms]
    macros = sorted({m for _, text in files for m in re.findall(r"^#define (PHASOR_\w+)", text, re.MULTILINE)})
    if len(macros) > 4:
        found.append(f"more than four macros: {', '.join(macros)}")
    others = sorted({m for path, text in files if path.endswith(".h") for m in re.findall(r"^#define (\w+)", text, re.MULTILINE)
                     if not m.startswith("PHASOR_")})
    found += [f"macro without prefix in a header: {m}" for m in others]
    print(f"{len(files)} files, {len(found)} breaches")
    print("\n".join(found))
    return 1 if found or len(files) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
