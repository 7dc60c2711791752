"""tests/summary.py, which reads what ctest and gtest wrote: a part of a binary counts as its cases, and no failure is lost."""
import os
import subprocess

from harness import Case, ROOT, main

WHOLE = '<testcase name="{name}" status="{status}" time="2.0"><system-out>{text}</system-out></testcase>'
ONE = '<testcase name="{name}" classname="Ops" status="run" result="completed" time="0.5">{inside}</testcase>'
FAILURE = '<failure message="off by 3"></failure>'
SKIPPED = '<skipped message="ops_test.cpp:7&#x0A;there is no device"></skipped>'


class Summary(Case):
    def summary(self, wholes, parts, code):
        self.write("test-report.xml", "<testsuite>" + "".join(WHOLE.format(name=name, status=status, text=text) for name, status, text in wholes) + "</testsuite>")
        os.makedirs(self.path("test-cases"), exist_ok=True)
        for file in os.listdir(self.path("test-cases")):
            os.remove(self.path("test-cases/" + file))
        for name, cases in parts.items():
            inside = "".join(ONE.format(name=case, inside=what) for case, what in cases)
            self.write(f"test-cases/{name}.xml", f'<testsuites><testsuite name="Ops">{inside}</testsuite></testsuites>')
        done = subprocess.run(["/usr/bin/python3", os.path.join(ROOT, "tests/summary.py"), self.path("test-report.xml"), "no output"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def test_a_part_counts_as_its_cases(self):
        text = self.summary([("ops.1", "run", ""), ("cli.bits", "run", "")], {"ops.1": [("add", ""), ("scale", ""), ("on_device", SKIPPED)]}, 0)
        self.assertIn("3 passed, 0 failed, 1 skipped\n", text)
        self.assertIn("skipped Ops.on_device: there is no device\n", text)
        self.assertIn("slowest: cli.bits 2.0 s, Ops.add 0.5 s", text)

    def test_a_case_that_fails_is_named(self):
        text = self.summary([("ops.1", "fail", "all of it")], {"ops.1": [("add", ""), ("scale", FAILURE)]}, 1)
        self.assertIn("\nFAILED Ops.scale\noff by 3\n", text)
        self.assertIn("1 passed, 1 failed\n", text)

    def test_a_part_that_fails_otherwise(self):
        """One that crashes writes no cases; one that crashes after the last case, or finds none, has written them."""
        text = self.summary([("ops.1", "fail", "a segmentation fault")], {}, 1)
        self.assertIn("\nFAILED ops.1\na segmentation fault\n", text)
        self.assertIn("0 passed, 1 failed\n", text)
        text = self.summary([("ops.1", "fail", "it leaks")], {"ops.1": [("add", "")]}, 1)
        self.assertIn("\nFAILED ops.1\nit leaks\n", text)
        self.assertIn("1 passed, 1 failed\n", text)

    def test_what_ctest_did_not_run(self):
        text = self.summary([("cli.browser", "notrun", "skipped: no chromium")], {}, 0)
        self.assertIn("skipped cli.browser: no chromium\n", text)
        self.assertIn("0 passed, 0 failed, 1 skipped\n", text)


if __name__ == "__main__":
    main()
