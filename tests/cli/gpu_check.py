"""bench/gpu_check where there is no GPU, and beside programs that only say that they have one."""
import os
import re
import stat
import subprocess

import h5py

from harness import Case, PHASOR, ROOT, main

PARTS = ["gpu tests", "cpu against gpu", "captured or eager", "compute-sanitizer", "steps", "mixers", "trials per hour", "torch steps"]

# A program with a device: its trials are records that lie beside it, unless it refuses. A shell script, because one check of
# them starts it thirty times.
FAKE = '''#!/bin/sh
case "$FAKE $1" in
*" doctor") echo "cuda             NVIDIA H200" ;;
"refuses "*) echo "phasor: run.device: cuda cannot be had: no driver; expected cpu, or auto, which takes what there is"; exit 2 ;;
"lacks "*) echo "error: device NVIDIA H200: there is no f32 kernel for gla.forward, which only the processor has"; exit 1 ;;
*" bench")
  case " $* " in *" --against "*) printf "1.000 ms/step   ratio 1.0\\n2.000 ms/step   ratio 2.0\\n" ;; esac
  printf "step             3.000 ms (median)\\narithmetic       67.0 GFLOP\\nmemory           4.8 MB\\n" ;;
*" run")
  record=eager
  case " $* " in *" run.device=cpu "*) record=cpu ;; *" run.capture=true "*) record=captured ;; esac
  while [ "$1" != --out ]; do shift; done
  mkdir -p "$2" && cp "${0%/*}/$record.h5" "$2/x.h5" ;;
esac
'''


class GpuCheck(Case):
    def check(self, code=0, **environment):
        """The lines of the table, by part."""
        environment = {"PHASOR": PHASOR, "OUT": self.path("out"), "CUDA_VISIBLE_DEVICES": "", **environment}
        done = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "bench/gpu_check")], capture_output=True, text=True,
                              env={**os.environ, **environment}, timeout=480)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        table = done.stdout[done.stdout.index("\ndevice "):].splitlines()[1:]
        self.assertEqual(len(table), len(PARTS) + 2)
        rows = {}
        for line in table[1:-1]:
            found = re.fullmatch(r"(.{18}) (passed|failed|skipped|not built yet) +(.+)", line)
            self.assertIsNotNone(found, line)
            rows[found.group(1).strip()] = found.group(2, 3)
        self.assertEqual(list(rows), PARTS)
        states = [state for state, _ in rows.values()]
        self.assertEqual(table[-1], ", ".join(f"{states.count(state)} {state}" for state in ("passed", "failed", "skipped", "not built yet")))
        return rows

    def fake(self, what, code=0, **environment):
        os.makedirs(self.path("build"), exist_ok=True)  # without tests
        sanitizer = "#!/bin/sh\necho '========= ERROR SUMMARY: 5 errors'\nexit ${FAULTS:-0}\n"
        for name, text in [("build/fake", FAKE), ("build/compute-sanitizer", sanitizer)]:
            os.chmod(self.path(self.write(name, text)), stat.S_IRWXU)
        self.write_records(what, float(environment.pop("OFF", 0)))
        return self.check(code, PHASOR=self.path("build/fake"), PHASOR_BUILD=self.path("build"), FAKE=what,
                          PATH=self.path("build") + ":/usr/bin:/bin", **environment)

    def write_records(self, what, off):
        """Of a trial on the processor, on the device, and on the device with steps that are replayed."""
        for name, device in [("cpu", "cpu"), ("eager", "cuda"), ("captured", "cuda")]:
            with h5py.File(self.path(f"build/{name}.h5"), "w") as file:
                file["provenance/name"] = [b"device"]
                file["provenance/value"] = [b"cpu" if what == "lies" else device.encode()]
                file["steps/loss"] = [(1.0 + (off if device == "cuda" else 0.0)) * 2.0 / (1 + step) for step in range(200)]
                file["steps/grad_norm"] = [1.0 if what != "drifts" or name != "captured" else 1.0 + 1e-15] * 200

    def test_without_a_gpu_every_part_is_skipped(self):
        before = sorted(os.listdir(os.path.join(ROOT, "bench/results")))
        for state, why in self.check().values():
            self.assertEqual(state, "skipped")
            self.assertRegex(why, r"^cuda: (not built|no driver|no device|.+)")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["gpu_check_none.txt", "gpu_check_none_output.txt"])
        self.assertEqual(sorted(os.listdir(os.path.join(ROOT, "bench/results"))), before)

    def test_what_the_program_cannot_do_is_never_passed(self):
        for what, code, ends in [("refuses", 1, ("failed", "exit code 2: phasor: run.device: cuda cannot be had: no driver; expected cpu, or auto, which takes what there is")),
                                 ("lacks", 0, ("not built yet", "there is no f32 kernel for gla.forward"))]:
            rows = self.fake(what, code=code)
            for part in ["cpu against gpu", "captured or eager", "compute-sanitizer", "steps", "trials per hour"]:
                self.assertEqual(rows[part], ends)
            self.assertEqual(rows["gpu tests"], ("not built yet", "no test has the label gpu"))
            self.assertEqual(rows["torch steps"][0], "skipped")

    def test_losses_are_compared(self):
        rows = self.fake("trains", OFF="1e-7")
        self.assertEqual(rows["cpu against gpu"][0], "passed")
        self.assertEqual(rows["steps"], ("passed", "3.0 to 3.0 times the larger floor"))
        self.assertEqual(rows["mixers"], ("not built yet", "no mixer_times in the build"))
        self.assertTrue(os.path.exists(self.path("out/gpu_check_nvidia_h200.txt")))
        for off in ["3e-6", "nan"]:
            self.assertEqual(self.fake("trains", code=1, OFF=off)["cpu against gpu"][0], "failed")
        self.assertEqual(self.fake("trains", code=1, FAULTS="9")["compute-sanitizer"],
                         ("failed", "memcheck: ERROR SUMMARY: 5 errors"))
        self.assertEqual(rows["captured or eager"], ("passed", "the same bits in 200 steps; 1.000 ms/step captured, 2.000 ms/step eager"))
        self.assertEqual(self.fake("drifts", code=1)["captured or eager"], ("failed", "200 steps: losses or gradient norms are not the same bits"))
        self.assertEqual(self.fake("lies", code=1)["cpu against gpu"], ("failed", "asked for cuda, ran on cpu"))

    def test_mixers_stand_beside_what_is_published(self):
        text = "#!/bin/sh\n[ $1 = cuda ] || exit 9\necho \"$2 $3 B$4 T$5 H$6 D$7: forward 1.000 ms, with backward 5.000 ms, captured ${MS:-3.42} ms\"\n"
        os.makedirs(self.path("build/bin"))
        os.chmod(self.path(self.write("build/bin/mixer_times", text)), stat.S_IRWXU)
        self.assertEqual(self.fake("trains", OFF="1e-7")["mixers"],
                         ("passed", "captured, with backward: 0.34 to 2.00 times what is published for a GB200; no cuDNN"))
        with open(self.path("out/gpu_check_nvidia_h200_output.txt"), encoding="utf-8") as file:
            output = file.read()
        self.assertIn("gated_delta_rule f32 B8 T1024 H8 D64: forward 1.000 ms, with backward 5.000 ms, captured 3.42 ms   "
                      "published for a GB200: 0.63 and 1.97 ms", output)
        self.assertIn("attention bf16 B16 T2048 H8 D64", output)
        self.assertEqual(self.fake("trains", code=1, OFF="1e-7", MS="x")["mixers"][0], "failed")

    def test_mixer_times_runs_on_the_processor(self):
        program = os.path.join(os.path.dirname(PHASOR), "mixer_times")
        for name in ("gla", "delta_rule", "gated_delta_rule", "attention"):
            done = subprocess.run([program, "cpu", name, "f32", "2", "33", "2", "8", "3"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, rf"^{name} f32 B2 T33 H2 D8 on one thread of the processor: "
                                          r"forward [\d.]+ ms, with backward [\d.]+ ms \(median of 3\)\n$")
        for words, error in [(["cpu", "gru", "f32", "1", "1", "1", "1"], 'found "gru", expected one of: gla, delta_rule'),
                             (["cpu", "gla", "f32", "1", "0", "1", "1"], 'found "0", expected a whole number from 1'),
                             (["cuda", "gla", "f32", "1", "1", "1", "1"], "cuda: "), (["cpu", "gla"], "usage: mixer_times")]:
            done = subprocess.run([program, *words], capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(error, done.stderr)

    def test_without_a_program(self):
        done = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "bench/gpu_check")], capture_output=True, text=True,
                              env={**os.environ, "PHASOR": self.path("none"), "OUT": self.path("out")})
        self.assertEqual(done.returncode, 2)
        self.assertIn("build first", done.stderr)


if __name__ == "__main__":
    main()
