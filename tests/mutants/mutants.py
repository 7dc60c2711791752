"""Mistakes planted in shipped sources, one at a time: the tests that ship with them must fail for each, and pass without.

usage: mutants.py NAME, one of `suites`; its mistakes are in NAME.txt
"""
import os
import shutil
import subprocess
import sys
import tempfile

import plant

BINARIES = os.environ["PHASOR_BINARIES"]  # the test programs
PLUGINS = os.environ["PHASOR_PLUGINS"]    # that are shipped
MUTATED = os.environ["PHASOR_MUTATED"]    # what plant.py wrote, built
HERE = os.path.dirname(os.path.abspath(__file__))

# The plugin that is mistaken, or None for an op of the core; tests that must see it: enough of them, as each costs time.
suites = {
    "delta_rule": (None, [("conformance_ops", "*delta_rule_gated_time_*:*delta_rule_gated_packed_chunk_5:*delta_rule_packed_grouped")]),
    "linear_attention": (None, [("conformance_ops", "*linear_attention_plain_*:*linear_attention_normalised_time_*")]),
    "feature_map": (None, [("conformance_ops", "*feature_map*")]),
    "retnet": ("retnet", [("golden", "*retnet*"), ("conformance_layers", "*Probe*retnet*")]),
    "language_modeling": ("language_modeling", [("plugins_language_modeling", "-*Pieces*")]),
}


def prepare(folder, program, plugin):
    """The program beside a folder of plugins, where it looks for them, one of them mutated."""
    for part in ("bin", "lib/phasor/plugins"):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
    shutil.copy(os.path.join(BINARIES, program), os.path.join(folder, "bin", program))
    for file in os.listdir(PLUGINS):
        target = os.path.join(folder, "lib/phasor/plugins", file)
        if not os.path.exists(target):
            own = plugin is not None and file == plugin + ".so"
            shutil.copy(os.path.join(MUTATED, "mutated_" + file) if own else os.path.join(PLUGINS, file), target)
    return os.path.join(folder, "bin", program)


def run(program, tests, plugin, name):
    """The process, in which the mistake of that name is alive ("" for none)."""
    environment = {**os.environ, "PHASOR_PLANTED": name}
    if plugin is None:
        environment["LD_PRELOAD"] = os.path.join(MUTATED, "mutated_ops.so")
    return subprocess.run([program, "--gtest_filter=" + tests, "--gtest_fail_fast", "--gtest_brief=1"], env=environment,
                          text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def main(suite):
    plugin, tests = suites[suite]
    names = [name for name, _, _ in plant.read(os.path.join(HERE, suite + ".txt"))]
    if len(set(names)) != len(names):
        sys.exit(f"a name twice: {names}")
    survivors = []
    with tempfile.TemporaryDirectory(prefix="phasor_mutants_") as folder:
        programs = [(prepare(folder, program, plugin), chosen) for program, chosen in tests]
        for program, chosen in programs:
            process = run(program, chosen, plugin, "")
            if process.returncode != 0:
                sys.exit(f"fails without a mistake: {program} {chosen}\n{process.stdout}")
        for name in names:
            codes = []
            for program, chosen in programs:
                codes.append(run(program, chosen, plugin, name).returncode)
                if codes[-1] != 0:
                    break
            if codes[-1] != 1:  # a test that fails; not a crash
                survivors.append(f"{name}: exit codes {codes}")
    print(f"{len(names)} mistakes, {len(names) - len(survivors)} noticed")
    if survivors:
        sys.exit("not noticed by a test that fails:\n" + "\n".join(survivors))


if __name__ == "__main__":
    main(sys.argv[1])
