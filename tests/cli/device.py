"""Where an experiment trains: run.device and --device."""
import os
import re
import subprocess

from harness import Case, experiment, main, sweep

REFUSED = r"^phasor(?: \w+)?: run\.device: cuda cannot be had: .*(not built|no device|driver|not supported yet|loaded).*; expected cpu, or auto"


class Device(Case):
    def refused(self, *arguments):
        """One line, exit code 2, and nothing that a trial leaves behind."""
        lines = [line for line in self.phasor(*arguments, code=2).splitlines() if line]
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], REFUSED)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_cuda_that_cannot_be_had(self):
        self.write("cuda.json", experiment(**{"run.device": "cuda"}))
        self.refused("run", "cuda.json", "--out", "out")
        self.refused("run", "base.json", "--set", "run.device=cuda", "--out", "out")
        self.refused("run", "base.json", "--device", "cuda", "--out", "out")
        self.refused("run", "base.json", "--set", "run.device=auto", "--device", "cuda", "--out", "out")
        self.refused("bench", "base.json", "--steps", "1", "--set", "run.device=cuda")
        self.refused("bench", "base.json", "--steps", "1", "--against", "run.device=cuda")
        self.refused("sweep", "sweep.json", "--set", "run.device=cuda", "--out", "out")
        self.write("axis.json", sweep(axes=sweep()["axes"][:2] + [
            {"name": "where", "role": "replicate", "path": "run.device", "values": ["cuda", "cpu"]}]))
        self.phasor("sweep", "axis.json", "--out", "out", code=2)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_commands_that_only_look_say_so(self):
        reason = r"(?m)^device +! run\.device: cuda cannot be had: .*; expected cpu, or auto, which takes what there is"
        for command in [("describe", "base.json"), ("describe", "sweep.json"), ("sweep", "sweep.json", "--dry-run")]:
            self.assertRegex(self.phasor(*command, "--set", "run.device=cuda"), reason)
            self.assertNotRegex(self.phasor(*command), r"(?m)^device ")

    def test_an_option_without_its_text(self):
        for command in [("run", "base.json"), ("sweep", "sweep.json"), ("sweep", "sweep.json", "--dry-run")]:
            for option, words in [("--device", "expected cpu, cuda, or auto"), ("--out", "expected folder of records")]:
                text = self.phasor(*command, option, "", code=2)
                self.assertRegex(text, rf"^phasor: {option}: found an empty text, {words}.*; or leave the option out$")
        self.assertEqual(sorted(os.listdir(self.folder)), ["base.json", "sweep.json"])

    def test_cudnn_wants_a_device_and_bf16(self):
        self.write("cudnn.json", experiment(**{"train.attention": "cudnn", "train.precision": "bf16", "run.device": "auto"}))
        for words, error in [((), r"train\.attention: cudnn cannot be had: .*processor; expected own$"),
                             (("--device", "cpu"), r"train\.attention: .*run\.device is cpu: expected cuda there, or own here"),
                             (("--set", "train.precision=f32"), r"train\.attention: .*train\.precision is f32: expected bf16 there, or own here")]:
            text = self.phasor("run", "cudnn.json", *words, "--out", "out", code=2)
            self.assertRegex(text, re.compile(error, re.M))
            self.assertFalse(os.path.exists(self.path("out")))

    def test_our_own_attention_keeps_the_names_of_trials(self):
        def name(*words):
            return re.search(r"^trial (\S+)", self.phasor("run", "base.json", *words, "--out", "out"), re.M).group(1)
        self.assertEqual(name(), name("--set", "train.attention=own"))

    def test_what_may_be_asked_for(self):
        text = self.phasor("run", "base.json", "--device", "gpu", "--out", "out", code=2)
        for word in ["run.device", "gpu", "auto", "cpu", "cuda"]:
            self.assertIn(word, text)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_auto_says_what_it_takes(self):
        text = self.phasor("run", "base.json", "--device", "auto", "--out", "auto")
        self.assertRegex(text, re.compile(r"^device cpu \(auto; cuda: .+\)$", re.M))
        plain = self.phasor("run", "base.json", "--device", "cpu", "--out", "cpu")
        self.assertNotRegex(plain, re.compile(r"^device", re.M))
        record, = self.records("auto")
        self.assertEqual([record], list(self.records("cpu")))  # the request is no part of the id
        self.assertEqual(self.bits_of("auto/" + record), self.bits_of("cpu/" + record))
        read = "import h5py, sys; facts = h5py.File(sys.argv[1])['provenance']; print(dict(zip(facts['name'][:], facts['value'][:]))[b'device'].decode())"
        found = subprocess.run(["/usr/bin/python3", "-c", read, self.path("auto/" + record)], check=True, capture_output=True, text=True)
        self.assertEqual(found.stdout.strip(), "cpu")

    def test_auto_in_sweep_and_bench(self):
        text = self.phasor("sweep", "sweep.json", "--set", "run.device=auto", "--out", "out")
        self.assertEqual(len(re.findall(r"^device +cpu \(auto; cuda: .+\)$", text, re.M)), 1)
        self.assertEqual(len(self.records()), 4)
        text = self.phasor("bench", "base.json", "--steps", "1", "--set", "run.device=auto")
        self.assertRegex(text, re.compile(r"^device +cpu \(auto; cuda: .+\)$", re.M))


if __name__ == "__main__":
    main()
