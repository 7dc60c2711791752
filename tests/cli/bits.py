"""The promise about bits: same spec, same bits, whatever threads, jobs, logging, evaluation frequency, or company."""
from harness import Case, experiment, main, sweep


class Bits(Case):
    def setUp(self):
        super().setUp()
        self.write("base.json", experiment(**{"train.steps": 30, "train.batch": 13, "train.micro_batch": 2}))
        self.runs = 0

    def run_alone(self, *settings, **environment):
        self.runs += 1
        arguments = [part for setting in settings for part in ("--set", setting)]
        folder = f"alone{self.runs}"
        self.phasor("run", "base.json", "--out", folder, *arguments, **environment)
        return self.bits("base.json", folder, *arguments)

    def test_threads(self):
        self.assertEqual(len({self.run_alone(f"run.threads={n}") for n in (1, 2, 3, 7)}), 1)

    def test_twice_and_another_seed(self):
        self.assertEqual(self.run_alone(), self.run_alone())
        self.assertNotEqual(self.run_alone(), self.run_alone("seed=1"))

    def test_logging(self):
        self.assertEqual(len({self.run_alone(f"run.log_every={n}") for n in (1, 2, 7, 100)}), 1)

    def test_evaluation_frequency(self):
        self.assertEqual(len({self.run_alone(f"train.eval_every={n}") for n in (0, 1, 5, 13)}), 1)

    def test_openmp_environment(self):
        plain = self.run_alone("run.threads=2")
        for threads in ("1", "5"):
            self.assertEqual(plain, self.run_alone("run.threads=2", OMP_NUM_THREADS=threads))

    def test_f64(self):
        self.assertEqual(len({self.run_alone("train.precision=f64", f"run.threads={n}") for n in (1, 3)}), 1)

    def test_alone_and_in_sweeps(self):
        alone = self.run_alone("seed=1")
        for jobs in ("1", "2"):
            self.phasor("sweep", "sweep.json", "--out", f"jobs{jobs}", "--jobs", jobs)
            self.assertEqual(alone, self.bits("base.json", f"jobs{jobs}", "--set", "seed=1"))
            self.assertEqual(len(self.records(f"jobs{jobs}")), 4)


if __name__ == "__main__":
    main()
