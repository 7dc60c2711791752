"""Plugins that throw while a trial runs: that trial has status error, with the plugin's name, the phase and the text; the
sweep goes on (vapoursynth/bestsource 114: the process ended)."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
from harness import ROOT, Case, experiment, main, sweep  # noqa: E402

BOOM = os.environ["PHASOR_BOOM"]
PHASES = ["create", "forward", "backward", "destructor"]
TEXTS = {"runtime_error": "boom and more", "own_type": "a value of type", "int": "a value of type int"}


class Throws(Case):
    def test_in_a_sweep(self):
        points = [{"label": "good", "set": {"model.encoding": {"name": "boom"}}}]
        points += [{"label": f"{where} {what}", "set": {"model.encoding": {"name": "boom", "where": where, "what": what}}}
                   for where in PHASES for what in TEXTS]
        points.append({"label": "good too", "set": {"model.encoding": {"name": "nope"}}})
        spec = sweep()
        spec["axes"] = [{"name": "variant", "role": "row", "points": points}]
        spec["table"] = {"report": [{"split": "test", "metric": "sequence_accuracy", "slices": [6]}]}
        self.write("sweep.json", spec)
        text = self.phasor("sweep", "sweep.json", "--out", "out", "--jobs", "1", "--plugin", BOOM, code=3)
        self.assertIn("finished 14   ok 2   diverged 0   failed 12   missing 0", text)
        for where in PHASES:
            for what, words in TEXTS.items():
                lines = [line for line in text.splitlines() if line.startswith(f"  {'crashed' if where == 'destructor' else 'error  '}   {where} {what} ")]
                self.assertEqual(len(lines), 1, text)
                self.assertIn(f'encoding "boom": {where}: {words}', lines[0])
                self.assertEqual(lines[0].count("boom\""), 1, "the plugin is named once")
        trials = self.phasor("table", "out", "--format", "csv", "--form", "trials")
        self.assertEqual((trials.count(",error,"), trials.count(",crashed,")), (9, 3), trials)
        self.assertIn("--plugin", text)  # the rerun command brings the plugin

    def test_every_method_is_passed_on(self):
        # One that is forgotten would be its default for all plugins, without a word from the compiler.
        with open(os.path.join(ROOT, "core/plugin/guard.cpp")) as file:
            guards = dict(re.findall(r"class Guarded(\w+) final(.*?)\n};", file.read(), re.DOTALL))
        for interface, header in [("Encoding", "nn/encoding"), ("Mixer", "nn/mixer"), ("Task", "nn/task"),
                                  ("EncodingPlugin", "plugin/registry"), ("BackbonePlugin", "plugin/registry"),
                                  ("TaskPlugin", "plugin/registry")]:
            with open(os.path.join(ROOT, f"core/{header}.h")) as file:
                body = re.search(rf"class {interface} {{(.*?)\n}};", file.read(), re.DOTALL).group(1)
            methods = set(re.findall(r"virtual [^;{]*?(\w+)\(", body)) - {interface}
            passed = set(re.findall(r"(\w+)\([^{};]*?\) const override", guards[interface]))
            self.assertEqual(methods, passed, interface)

    def test_one_trial(self):
        for where in ["create", "forward", "backward"]:
            for threads in ["1", "3"]:
                self.write("boom.json", experiment(**{"model.encoding": {"name": "boom", "where": where}}))
                arguments = ["run", "boom.json", "--out", f"{where}{threads}", "--plugin", BOOM, "--set", f"run.threads={threads}"]
                text = self.phasor(*arguments, code=1)
                self.assertIn(f'error: encoding "boom": {where}: boom and more', text)
                self.assertIn(f'error: encoding "boom": {where}: boom and more', self.phasor(*arguments, code=1))  # stored
        for where in ["create", "forward", "backward", "destructor"]:
            self.write("boom.json", experiment(**{"model.encoding": {"name": "boom", "where": where, "what": "segfault"}}))
            text = self.phasor("run", "boom.json", "--out", "out", "--plugin", BOOM, code=-11)
            self.assertEqual([line for line in text.splitlines() if line.startswith("phasor: ")],
                             [f'phasor: encoding "boom": {where}: ended by an address that is not its own (signal 11, segmentation fault); '
                              "`gdb --args` before the command shows where in that plugin"])
        self.write("boom.json", experiment(**{"model.encoding": {"name": "boom", "where": "destructor"}}))
        text = self.phasor("run", "boom.json", "--out", "out", "--plugin", BOOM, code=-6)
        self.assertEqual(text.splitlines()[-1], 'phasor: encoding "boom": destructor: boom and more')


if __name__ == "__main__":
    main()
