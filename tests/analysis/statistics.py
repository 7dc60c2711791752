"""Statistics of random data against SciPy, to 1e-10."""
import itertools
import os
import subprocess
import unittest

import numpy as np
from scipy import special, stats

VALUES = os.environ["PHASOR_VALUES"]
rng = np.random.default_rng(20261130)


def ask(questions):
    """One list of numbers for each (what, values)."""
    lines = "".join(" ".join([what, *(repr(float(v)) for v in values)]) + "\n" for what, values in questions)
    answers = subprocess.run([VALUES], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(answers) == len(questions)
    return [[float(word) for word in answer.split()] for answer in answers]


def half_width(values):
    """Of the 95 % t interval. The quantile from the incomplete beta function: stats.t.ppf of this SciPy is only good to 4e-10."""
    freedom = len(values) - 1
    return np.sqrt(freedom * (1.0 / special.betaincinv(freedom / 2, 0.5, 0.05) - 1.0)) * stats.sem(values)


class Statistics(unittest.TestCase):
    def check(self, questions, expected, tolerance=1e-10):
        for (what, values), found, right in zip(questions, ask(questions), expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance, err_msg=f"{what} {values}")

    def test_describe(self):
        samples = [rng.normal(rng.normal(), rng.exponential(), n) for n in range(2, 60) for _ in range(5)]
        self.check([("describe", v) for v in samples],
                   [[np.mean(v), np.std(v, ddof=1), half_width(v), np.median(v), v.min(), v.max()] for v in samples])

    def test_perplexities(self):
        samples = [np.exp(rng.normal(3.0, 0.5, n)) for n in range(2, 30) for _ in range(5)]
        expected = []
        for v in samples:
            mean, half = stats.gmean(v), half_width(np.log(v))
            expected.append([mean, np.log(v).std(ddof=1) * mean, np.exp(np.median(np.log(v))), mean * np.exp(-half), mean * np.exp(half)])
        self.check([("logarithmic", v) for v in samples], expected)

    def test_wilson(self):
        pairs = [(k, n) for n in (1, 2, 3, 5, 8, 20, 150) for k in range(n + 1)]
        expected = []
        for k, n in pairs:
            interval = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
            expected.append([interval.low, interval.high])
        self.check([("wilson", pair) for pair in pairs], expected)

    def test_sign_flip(self):
        # Whole multiples of 1/64 have sums without rounding, and many that are equal.
        samples = [f(n) for n in range(2, 14) for f in (lambda n: rng.normal(0.5, 1.0, n), lambda n: rng.integers(-6, 20, n) / 64.0)]
        expected = [[stats.permutation_test((v,), np.sum, permutation_type="samples", n_resamples=np.inf).pvalue] for v in samples]
        self.check([("sign_flip", v) for v in samples], expected)

    def test_sign_flip_of_many(self):
        # Beyond what can be counted one by one: differences of one size are a binomial test.
        questions, expected = [], []
        for n in range(14, 31):
            up = int(rng.integers(n // 2, n + 1))
            questions.append(("sign_flip", [1.0] * up + [-1.0] * (n - up)))
            expected.append([stats.binomtest(up, n).pvalue])
        self.check(questions, expected)

    def test_holm(self):
        samples = [rng.uniform(0.0, 0.2, n) for n in range(1, 30)]
        expected = []
        for p in samples:
            order = np.argsort(p)
            stepped = np.minimum(1.0, np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order]))
            corrected = np.empty_like(p)
            corrected[order] = stepped
            expected.append(corrected)
        self.check([("holm", p) for p in samples], expected)

    def test_bootstrap(self):
        samples = [rng.normal(0.2, 1.0, n) for n in range(2, 8) for _ in range(2)]
        expected = []
        for v in samples:  # every draw there is
            means = np.sort(np.array(list(itertools.product(v, repeat=len(v)))).mean(axis=1))
            tail = int(np.ceil(0.025 * len(means))) - 1
            expected.append([means[tail], means[len(means) - 1 - tail]])
        self.check([("bootstrap", v) for v in samples], expected)

    def test_a_large_bootstrap_agrees_with_another(self):
        samples = [rng.normal(0.2, 1.0, n) for n in (12, 20, 40)]
        for v, found in zip(samples, ask([("bootstrap", v) for v in samples])):
            interval = stats.bootstrap((v,), np.mean, method="percentile", n_resamples=20000, random_state=1).confidence_interval
            np.testing.assert_allclose(found, [interval.low, interval.high], atol=0.05 * v.std())


if __name__ == "__main__":
    unittest.main(verbosity=2)
