"""What a user can get wrong: every mistake in one report, exit code 2, nothing started."""
import json
import os
import shutil
import subprocess

import harness
from harness import Case, experiment, main, sweep


class Mistakes(Case):
    def lines(self, *arguments):
        return [line for line in self.phasor(*arguments, code=2).splitlines() if line]

    def test_seven_mistakes_in_one_file(self):
        self.write("bad.json", '''{
  // a comment
  "learnig_rate": 0.001,
  "lr": 0.001,
  "task": {"name": "state_tracking"},
  "model": {
    "backbone": {"name": "gla", "num-heads": 2},
    "encoding": {"name": "rope", "bias": true},
    "dim": 16,
    "dim": 32,
  },
  "seed": "1e-3"
}
''')
        report = self.lines("run", "bad.json", "--out", "out")
        text = "\n".join(report)
        for place, words in [("bad.json:2:3", "comment"), ("bad.json:3:3", 'unknown key "learnig_rate"'),
                             ("bad.json:4:3", 'unknown key "lr"'), ("bad.json:7:33", 'unknown key "num-heads"'),
                             ("bad.json:8:34", 'unknown key "bias"'), ("bad.json:10:5", "dim"),
                             ("bad.json:10:14", "comma"), ("bad.json:12:11", "quotes")]:
            self.assertTrue(any(place + ":" in line and words in line for line in report), f"{place} {words}\n{text}")
        self.assertIn("optimizer.lr", text)  # where "lr" belongs
        self.assertFalse(os.path.exists(self.path("out")))

    def test_both_files_of_a_sweep_and_the_command_line(self):
        bad = sweep()
        bad["axes"][1]["path"] = "optimizer.lrr"
        bad["axes"][0]["points"][1]["set"] = {"model.encoding.gate.kind": "standrd"}
        bad["table"]["baseline"] = "Nope"
        self.write("sweep.json", bad)
        self.write("base.json", experiment(**{"train.step": 5}))
        text = self.phasor("sweep", "sweep.json", "--out", "out", "--set", "train.batch=many", code=2)
        for words in ["axes[1].path", "optimizer.lrr", "standrd", "table.baseline", "train.step", "--set", "many"]:
            self.assertIn(words, text)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_seven_mistakes_in_files_that_extend_each_other(self):
        os.makedirs(self.path("more"))
        self.write("more/base.json", '''{
  "learnig_rate": 0.001,
  "task": {"name": "state_tracking"},
  "model": {"backbone": {"name": "gla", "num-heads": 2}, "encoding": {"name": "rope"}, },
  "seed": "1e-3"
}
''')
        self.write("bad.json", '''{
  // a comment
  "extends": "more/base.json",
  "lr": 0.001,
  "model": {"dim": 16, "dim": 32, "encoding": {"bias": true}}
}
''')
        report = self.lines("run", "bad.json", "--out", "out")
        for place, words in [("bad.json:2:3", "comment"), ("bad.json:4:3", 'unknown key "lr"'), ("bad.json:5:24", "dim"),
                             ("bad.json:5:48", 'unknown key "bias"'), ("more/base.json:2:3", 'unknown key "learnig_rate"'),
                             ("more/base.json:4:41", 'unknown key "num-heads"'), ("more/base.json:4:86", "comma"),
                             ("more/base.json:5:11", "quotes")]:
            self.assertTrue(any(place + ":" in line and words in line for line in report), f"{place} {words}\n" + "\n".join(report))
        self.assertEqual(len(report), 8)
        self.assertFalse(os.path.exists(self.path("out")))
        self.write("sweep.json", sweep(base="bad.json"))
        text = "\n".join(self.lines("sweep", "sweep.json", "--out", "out"))
        for line in report:
            self.assertIn(line, text)

    def test_extending(self):
        os.makedirs(self.path("more"))
        os.rename(self.path("base.json"), self.path("more/base.json"))
        self.write("base.json", {"extends": "more/base.json", "optimizer": {"name": "adamw", "clip": 0.5}, "task": {"test": {"lengths": [9]}}})
        spec = json.loads(self.phasor("describe", "base.json", "--json"))["spec"]
        self.assertEqual(spec["optimizer"]["lr"], 0.01)  # of the file below
        self.assertEqual(spec["optimizer"]["clip"], 0.5)
        self.assertEqual(spec["task"]["test"], {"rows": 40, "lengths": [9]})  # a list is replaced
        self.assertEqual(spec["model"]["encoding"]["projection"]["rank"], 2)
        self.assertNotIn("extends", spec)
        whole = experiment(**{"optimizer.clip": 0.5, "task.test.lengths": [9]})
        self.write("whole.json", whole)
        of = {name: self.phasor("describe", name).split()[1] for name in ["base.json", "whole.json"]}
        self.assertEqual(of["base.json"], of["whole.json"])
        self.write("more/base2.json", {"extends": "../base.json"})
        os.rename(self.path("sweep.json"), self.path("more/sweep.json"))  # its base is beside it
        self.write("other.json", {"extends": "more/sweep.json", "name": "other", "table": {"report": [
            {"split": "test", "metric": "loss", "slices": [6]}]}})
        self.assertIn("other            2 variant x 1 lr x 2 seed = 4 cells", self.phasor("sweep", "other.json", "--dry-run"))
        self.write("base.json", {"extends": "more/base2.json"})
        self.assertIn("found a circle, base.json -> more/base2.json -> base.json", self.phasor("run", "base.json", code=2))
        self.assertIn("--set: extends: only a file can extend another", self.phasor("run", "whole.json", "--set", "extends=x.json", code=2))

    def test_a_default_name_that_is_set_keeps_the_settings(self):
        self.write("base.json", experiment(**{"optimizer": {"lr": 0.5, "clip": 0.25}}))
        spec = json.loads(self.phasor("describe", "base.json", "--json", "--set", "optimizer.name=adamw"))["spec"]
        self.assertEqual((spec["optimizer"]["lr"], spec["optimizer"]["clip"]), (0.5, 0.25))

    def test_settings_obey_the_rules_of_files(self):
        for setting, words in [("optimizer.lr=\"1e-3\"", "quotes"), ("train.steps=3.5", "integer"),
                               ("model.tie_head=False", "true or false"), ("optimizer.lrr=1", "optimizer.lrr"),
                               ("optimizer.lr", "expected path=value"), ("seed=1e400", "seed")]:
            self.assertIn(words, self.phasor("run", "base.json", "--set", setting, code=2))

    def test_a_bad_setting_is_told_at_its_option(self):
        for option, command in [("--set", "bench"), ("--against", "bench"), ("--set", "run"), ("--set", "describe")]:
            for setting, words in [("optimizer.lrr=1", "optimizer.lrr"), ("train.steps=3.5", "integer"), ("seed", "expected path=value"),
                                   ("seed=1e400", "seed"), ("seed=[", "seed"), ("a..b=1", "a..b")]:
                lines = self.lines(command, "base.json", option, setting)
                self.assertEqual(len(lines), 1, lines)
                self.assertTrue(lines[0].startswith(f"phasor: {option}") and words in lines[0], lines)

    def test_names_of_plugins(self):
        text = self.phasor("run", "base.json", "--set", "model.encoding.name=foo", code=2)
        self.assertIn('model.encoding.name: found "foo", expected ', text)
        self.assertIn('"nope"', text)

    def test_files_that_are_no_plugins_of_this_build(self):
        # A copy of the program looks for plugins beside itself.
        os.makedirs(self.path("bin"))
        shutil.copy(harness.PHASOR, self.path("bin/phasor"))
        good = os.path.join(os.path.dirname(harness.PHASOR), "../lib/phasor/plugins")
        here = self.path("lib/phasor/plugins")
        shutil.copytree(good, here)
        with open(f"{here}/rope.so", "r+b") as file:
            content = file.read()
            file.seek(content.index(b"PHASOR1\0") + 12)
            file.write(b"another build\0")
        with open(f"{here}/text.so", "w") as file:
            file.write("not a library")
        self.addCleanup(setattr, harness, "PHASOR", harness.PHASOR)
        harness.PHASOR = self.path("bin/phasor")
        text = self.phasor("plugins")
        self.assertRegex(text, "encoding +nope")
        self.assertNotRegex(text, "encoding +rope ")
        for name in ["rope.so", "text.so"]:
            self.assertEqual(len([line for line in text.splitlines() if line.startswith("phasor: ") and name in line]), 1, text)
        self.assertIn("another build", text)
        self.phasor("run", "base.json", "--out", "out")  # needs none of them
        text = self.phasor("run", "base.json", "--set", 'model.encoding={"name": "rope"}', "--out", "out", code=2)
        self.assertRegex(text, 'model.encoding.name: found "rope", expected .*"nope".* or "selective_rope"')
        self.assertIn("rope.so", text)

    def test_one_name_in_two_files(self):
        rope = os.path.realpath(os.path.join(os.path.dirname(harness.PHASOR), "../lib/phasor/plugins/rope.so"))
        os.makedirs(self.path("more"))
        other = shutil.copy(rope, self.path("more/other.so"))
        both = f'encoding "rope": found in {rope} and in {other}'
        for arguments, environment in [(("--plugin", other), {}), ((), {"PHASOR_PLUGIN_PATH": self.path("more")})]:
            text = self.phasor("plugins", *arguments, **environment)
            self.assertRegex(text, "encoding +nope")
            self.assertNotRegex(text, "encoding +rope ")
            self.assertIn(both, text)
            self.assertIn(both, self.phasor("plugins", "rope", *arguments, code=2, **environment))
            self.phasor("describe", "base.json", *arguments, **environment)  # does not use it
            self.write("rope.json", experiment(**{"model.encoding": {"name": "rope", "theta": 7.0, "thta": 1}}))
            for command in ["run", "describe", "bench"]:
                text = self.phasor(command, "rope.json", *arguments, code=2, **environment)
                self.assertIn(f"rope.json:", text)
                self.assertIn(f"model.encoding.name: {both}", text)
            spec = sweep()
            spec["axes"][0]["points"][0]["set"]["model.encoding"]["name"] = "rope"
            self.write("sweep.json", spec)
            self.assertIn(both, self.phasor("sweep", "sweep.json", "--out", "out", *arguments, code=2, **environment))
            self.assertFalse(os.path.exists(self.path("out")))
        self.phasor("describe", "base.json", "--set", 'model.encoding={"name": "rope"}', "--plugin", rope)  # the same file

    def test_no_plugins_at_all(self):
        os.makedirs(self.path("bin"))
        shutil.copy(harness.PHASOR, self.path("bin/phasor"))
        self.addCleanup(setattr, harness, "PHASOR", harness.PHASOR)
        harness.PHASOR = self.path("bin/phasor")
        text = self.phasor("run", "base.json", code=2)
        self.assertIn("lib/phasor/plugins: cannot be read (No such file or directory)", text)
        self.assertIn('model.encoding.name: found "selective_rope", there is none to choose from', text)
        self.assertIn('no plugin is called "rope", there is none', self.phasor("plugins", "rope", code=2))

    def test_what_a_plugin_refuses_is_told_at_the_option(self):
        self.assertIn("phasor: --set task.group: task: state_tracking: ",
                      self.phasor("describe", "base.json", "--set", "task.group=S8", code=2))
        self.write("base.json", experiment(**{"task.group": "S8"}))
        self.assertIn("phasor: base.json:3:11: task: state_tracking: ", self.phasor("describe", "base.json", code=2))

    def test_messages_of_odd_sizes(self):
        text = self.phasor("describe", "base.json", "--set", "model.backbone.expand_k=1e300", code=2)
        self.assertIn("8e300", text)
        self.assertLess(len(text), 300)
        text = self.phasor("describe", "base.json", "--set", "model.backbone.heads=8", "--set", 'model.encoding={"name": "rope"}', code=2)
        self.assertIn("found heads of 1 components, expected an even number", text)
        self.assertNotIn("below 1", text)

    def test_a_pair_that_does_not_fit(self):
        text = self.phasor("run", "base.json", "--set", "model.backbone.heads=8", code=2)
        self.assertIn("even", text)

    def test_pairs_of_a_sweep(self):
        spec = sweep()
        spec["axes"].insert(1, {"name": "heads", "role": "column", "path": "model.backbone.heads", "values": [2, 8]})
        self.write("sweep.json", spec)
        text = self.phasor("sweep", "sweep.json", "--out", "out", code=2)
        self.assertIn('{"variant": "Selective", "heads": "8"}', text)
        self.assertEqual(text.count("points[1]: does not fit"), 1)
        spec["exclude"] = [{"variant": "Selective", "heads": 8, "reason": "one component per head"}]
        self.write("sweep.json", spec)
        self.assertIn("2 cells by exclude", self.phasor("sweep", "sweep.json", "--dry-run"))

    def test_options_and_commands(self):
        self.assertIn('did you mean "sweep"', self.phasor("swep", code=2))
        self.assertIn("did you mean --force", self.phasor("run", "base.json", "--forse", code=2))
        self.assertIn("expected an integer of at least 1", self.phasor("sweep", "sweep.json", "--jobs", "0", code=2))
        self.assertIn("experiment file", self.phasor("run", code=2))
        self.assertIn("absent.json", self.phasor("run", "absent.json", code=2))
        self.assertIn('"no_such"', self.phasor("plugins", "no_such", code=2))
        self.phasor(code=2)

    def test_options_of_launchers(self):
        def told(*more):
            return self.phasor("sweep", "sweep.json", "--out", "out", *more, code=2)

        self.assertIn('found "slrm", expected "local" or "slurm"', told("--launcher", "slrm"))
        for more in [("--slurm", "time=5"), ("--chunk", "2"), ("--max-tasks", "2"), ("--chunk", "2", "--launcher", "local")]:
            self.assertIn("expected --launcher slurm beside them", told(*more))
        lines = told("--launcher", "slurm", "--slurm", "partion=short", "array=0-3", "time=1", "time=2", "--slurm", "mem").splitlines()
        self.assertEqual(len(lines), 4, lines)
        for words in ['did you mean "partition"?', "the launcher sets it: --chunk says", "found twice", "expected KEY=VALUE"]:
            self.assertEqual(len([line for line in lines if words in line]), 1, lines)
        self.assertIn("expected an integer of at least 1", told("--launcher", "slurm", "--chunk", "0"))
        self.assertFalse(os.path.exists(self.path("out")))
        # Without Slurm a submission is refused, and what it would be is shown.
        text = self.phasor("sweep", "--launcher", "slurm", "--slurm", "time=5", "partition=short", "sweep.json", "--out", "out",
                           "--chunk", "3", "--max-tasks", "1", "--dry-run", PATH="/nowhere")
        for words in ["4 trials as 2 tasks of 3, 1 side by side in each", "#SBATCH --array=0-1%1\n", "#SBATCH --time=5\n",
                      "#SBATCH --partition=short\n", "out/slurm/1/trials.json", "nothing was submitted"]:
            self.assertIn(words, text)
        self.assertFalse(os.path.exists(self.path("out")))
        text = self.phasor("sweep", "sweep.json", "--out", "out", "--launcher", "slurm", code=2, PATH="/nowhere")
        self.assertIn("sbatch is not installed here; give the command on a machine that submits to Slurm", text)
        self.assertIn("out/slurm/1/trials.json", self.phasor("sweep", "out/slurm/1/trials.json", "--task", "0", code=2))

    def test_help_of_every_command(self):
        self.assertIn("sweep", self.phasor("--help"))
        self.assertIn("version", self.phasor("--help"))
        self.assertIn("commit", self.phasor("--version"))
        for command in ["run", "sweep", "table", "describe", "plugins", "bench", "status", "logs", "verify", "merge", "doctor", "schema"]:
            self.assertIn("exit codes", self.phasor(command, "--help"))

    def test_an_output_that_cannot_be_written(self):
        self.write("file", "not a folder")
        for command in [("run", "base.json"), ("sweep", "sweep.json")]:
            lines = self.lines(*command, "--out", "file/below")
            self.assertEqual(len(lines), 1, lines)
            self.assertIn("file/below: results cannot be written there", lines[0])

    def test_a_table_of_nothing(self):
        for command in [("table",), ("status",), ("merge",), ("report",), ("plot", "--figure", "length", "--out", "x.svg")]:
            self.assertIn("nowhere/sweep.json: cannot be read, no such folder; expected the folder of a sweep, which `phasor sweep` makes",
                          self.phasor(*command, "nowhere", code=2))
        os.makedirs(self.path("empty"))
        self.assertIn("empty/sweep.json: cannot be read, no such file; expected the folder of a sweep", self.phasor("table", "empty", code=2))
        self.assertIn("base.json/sweep.json: cannot be read, that is no folder", self.phasor("table", "base.json", code=2))

    def test_what_messages_list(self):
        for seed in ["-1", "9210000000000000000"]:
            self.assertIn(f"--set: seed: found {seed}, expected an integer 0 to 9200000000000000000",
                          self.phasor("run", "base.json", "--set", f"seed={seed}", code=2))
        self.assertIn('found "base.json" and "base.json", expected one experiment file', self.phasor("run", "base.json", "base.json", code=2))
        spec = sweep()
        spec["axes"] = [{"name": "seed", "role": "replicate", "path": "seed", "values": [0, 1]}]
        self.write("rowless.json", spec)
        self.assertRegex(self.phasor("sweep", "rowless.json", "--out", "out", code=2),
                         r'table\.baseline: found "NoPE", and no axis has the role "row"; give one that role, or leave the baseline out')
        self.phasor("sweep", "sweep.json", "--out", "out")
        self.assertIn('"sensitivity" or "spectra"', self.phasor("plot", "out", "--figure", "foo", "--out", "x.svg", code=2))

    def test_a_folder_in_the_place_of_a_record(self):
        trial = self.phasor("run", "base.json", "--out", "out").split()[1]
        os.remove(self.path(f"out/{trial}.h5"))
        os.makedirs(self.path(f"out/{trial}.h5/more"))
        for command in [("run", "base.json"), ("sweep", "sweep.json"), ("sweep", "sweep.json", "--dry-run")]:
            self.assertIn(f"out/{trial}.h5: is a folder, expected the record of that trial or nothing; move it away",
                          self.phasor(*command, "--out", "out", code=2))
        self.assertEqual(os.listdir(self.path(f"out/{trial}.h5")), ["more"])

    def german(self):
        """The environment of somebody whose decimal point is a comma; nothing where such a locale cannot be made."""
        place = self.path("locales")
        os.makedirs(place, exist_ok=True)
        if shutil.which("localedef") is not None:
            subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", place + "/de_DE.UTF-8"], capture_output=True)
        if not os.listdir(place):
            return None  # most containers have the sources of locales, some have not
        there = {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "LOCPATH": place}
        probe = "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.localeconv()['decimal_point'])"
        found = subprocess.run(["/usr/bin/python3", "-c", probe], env={**os.environ, **there}, capture_output=True, text=True)
        self.assertEqual(found.stdout.strip(), ",", "the locale is not in force: " + found.stderr)
        return there

    def test_locale(self):
        def described(**environment):
            text = self.phasor("describe", "base.json", "--set", "optimizer.lr=0.0015", **environment)
            return [line for line in text.splitlines() if not line.startswith("time ")]  # it is measured

        there = self.german()
        if there is None:
            self.skipTest("no locale with a decimal comma, and localedef makes none")
        self.assertEqual(described(), described(**there))
        self.phasor("run", "base.json", "--out", "here")
        self.phasor("run", "base.json", "--out", "there", **there)
        self.assertEqual([self.bits_of(f"here/{name}") for name in self.records("here")],
                         [self.bits_of(f"there/{name}") for name in self.records("there")])

    def test_numbers_and_booleans(self):
        """L47: equal values are one trial, whatever their spelling; what is no number is told with its path; nothing is narrowed."""
        def text_of(path, value):
            parents = path.split(".")
            for key in reversed(parents):
                value = f'{{"{key}": {value}}}'
            return '{"extends": "base.json", ' + value[1:]

        good = [("optimizer.lr", ["0.001", "1e-3", "1E-3", "1.0e-03", "0.00100"]), ("train.steps", ["3", "3.0", "3e0"]),
                ("seed", ["0", "-0", "0.0", "-0.0"]), ("seed", ["9007199254740993"]), ("seed", ["9007199254740992"]),
                ("model.tie_head", ["true"]), ("model.tie_head", ["false"])]
        bad = [("optimizer.lr", [".001", '"1e-3"', "1e400", "1_000", "true", "NaN"]), ("train.steps", ["3.5", '"3"', "true"]),
               ("seed", ["9007199254740993.0", "1e30"]), ("model.tie_head", ['"true"', '"False"', "False", "1"])]
        ids = []
        for there in [{}, self.german() or {}]:
            ids.append([])
            for path, spellings in good:
                found = set()
                for value in spellings:
                    self.write("file.json", text_of(path, value))
                    found |= {self.phasor("describe", "file.json", **there).split()[1],
                              self.phasor("describe", "base.json", "--set", f"{path}={value}", **there).split()[1]}
                self.assertEqual(len(found), 1, (path, spellings))
                ids[-1] += found
            for path, spellings in bad:
                for value in spellings:
                    self.write("file.json", text_of(path, value))
                    for arguments in (("file.json",), ("base.json", "--set", f"{path}={value}")):
                        report = self.phasor("run", *arguments, "--out", "out", code=2, **there)
                        self.assertIn(path, report, value)
                        self.assertNotIn("trial ", report)
        self.assertEqual(ids[0], ids[1])
        self.assertEqual(ids[0][2], ids[0][6], "seed 0 and no tied head are what the base has")
        self.assertEqual(len(set(ids[0][2:])), 4, "other seeds and booleans are other trials")
        self.assertFalse(os.path.exists(self.path("out")))

    def test_a_swept_member_leaves_its_neighbours(self):
        """L45: a patch of one member keeps the others, and what a trial became is stored; a list is replaced."""
        spec = sweep()
        spec["axes"][0] = {"name": "rank", "role": "row", "path": "model.encoding.projection.rank", "values": [2, 4]}
        spec["table"].pop("baseline")
        spec["axes"].append({"name": "lengths", "role": "column", "points": [{"label": "one", "set": {"task.test.lengths": [6]}}]})
        spec["table"]["report"][0]["slices"] = [6]
        self.write("sweep.json", spec)
        self.phasor("sweep", "sweep.json", "--out", "out")
        found = []
        for name in self.records():
            with open(self.path("out/" + name.removesuffix(".h5") + ".json")) as file:
                found.append(json.load(file))
        self.assertEqual(sorted(each["model"]["encoding"]["projection"]["rank"] for each in found), [2, 2, 4, 4])
        for each in found:
            self.assertEqual(each["model"]["encoding"]["projection"]["kind"], "low_rank")
            self.assertEqual((each["model"]["encoding"]["name"], each["model"]["encoding"]["bias"], each["model"]["dim"]), ("selective_rope", True, 8))
            self.assertEqual(each["task"]["test"], {"rows": 40, "lengths": [6]})
        spec["axes"][0]["path"] = "model.encoding.projection.rnk"
        self.write("sweep.json", spec)
        self.assertIn("model.encoding.projection.rnk", self.phasor("sweep", "sweep.json", "--out", "out", code=2))

    def test_spellings_of_a_number_are_one_trial(self):
        ids = {self.phasor("describe", "base.json", "--set", f"optimizer.lr={text}").split()[1]
               for text in ["0.001", "1e-3", "1E-3", "1.0e-3"]}
        self.assertEqual(len(ids), 1)

    def test_describe(self):
        text = self.phasor("describe", "base.json", "--set", "model.encoding.gate.kind=standard")
        for line in [r"shared rows +valid +6: \d+ of 40 are in train too \([\d.e-]+ by chance\)",
                     r"arithmetic +[\d.e-]+ GFLOP per step, [\d.e-]+ TFLOP in all",
                     r"memory +[\d.]+ [kM]B: parameters", r"time +about \d+:\d\d on this machine with 1 thread: [\d.]+ ms per step"]:
            self.assertRegex(text, line)
        self.assertRegex(text, r"model\.encoding\.gate\.kind = standard +\(default none\) +from --set")
        self.assertRegex(text, r"model\.dim = 8 +\(default 128\) +from file")
        self.assertIn("against nope", text)
        self.assertIn("above 5 %", text)
        self.assertNotIn("micro_batch = 2", text)

    def test_plugins(self):
        text = self.phasor("plugins")
        for name in ["state_tracking", "gla", "nope", "rope", "selective_rope"]:
            self.assertRegex(text, rf"(task|backbone|encoding) +{name} +\d")
        self.assertIn("temperature", self.phasor("plugins", "selective_rope"))


if __name__ == "__main__":
    main()
