"""Reads ctest's JUnit report, and gtest's where one test of ctest is many cases; prints failures and skips with their reasons, and the closing line that counts."""
import os
import re
import sys
import xml.etree.ElementTree as tree


class Case:
    """One test: its name, how it ended, its seconds and what it printed."""

    def __init__(self, name, state, seconds, text):
        self.name, self.state, self.seconds, self.text = name, state, seconds, text

    def reason(self):
        """The line a skipped test printed, from gtest's output or a script's 'skipped: ...'."""
        for pattern in (r"^skipped: (.+)$", r"Skipped\n(.+)$", r"^(.*skip.*)$"):
            found = re.search(pattern, self.text, re.MULTILINE | re.IGNORECASE)
            if found:
                return found.group(1).strip()
        return "no reason given"


def of_ctest(node):
    state = {"fail": "failed", "notrun": "skipped", "disabled": "skipped"}.get(node.get("status"), "passed")
    if state == "passed" and node.find("skipped") is not None:
        state = "skipped"
    return Case(node.get("name"), state, float(node.get("time", 0)), node.findtext("system-out") or "")


def of_gtest(file):
    """The cases in a file that gtest wrote, with their full names."""
    cases = []
    for node in tree.parse(file).getroot().iter("testcase"):
        if node.get("status") != "run":
            continue  # of another part
        failures, skipped = node.findall("failure"), node.find("skipped")
        texts = [failure.get("message", "") for failure in failures]
        if skipped is not None:
            texts.append("Skipped\n" + skipped.get("message", "").partition("\n")[2])
        cases.append(Case(f"{node.get('classname')}.{node.get('name')}", "failed" if failures else "passed" if skipped is None else "skipped",
                          float(node.get("time", 0)), "\n".join(texts)))
    return cases


def cases_of(whole, folder):
    """A part of a binary counts as its cases (phasor_test(... PARTS)); as one that failed, too, when it failed and no case did."""
    file = os.path.join(folder, whole.name + ".xml")
    if not os.path.exists(file):
        return [whole]
    cases = of_gtest(file)
    at_fault = any(case.state == "failed" for case in cases)
    return cases if cases and (whole.state == "passed" or at_fault) else [*cases, whole]


def main(report, output):
    try:
        wholes = [of_ctest(node) for node in tree.parse(report).getroot().iter("testcase")]
        folder = os.path.join(os.path.dirname(os.path.abspath(report)), "test-cases")
        cases = [case for whole in wholes for case in cases_of(whole, folder)]
    except (OSError, tree.ParseError) as error:
        sys.stdout.write(open(output, errors="replace").read())
        print(f"no test report: {error}")
        return 1
    failed = [case for case in cases if case.state == "failed"]
    skipped = [case for case in cases if case.state == "skipped"]
    for case in failed:
        print(f"\nFAILED {case.name}")
        print("\n".join(case.text.splitlines()[-40:]))
    for case in skipped:
        print(f"skipped {case.name}: {case.reason()}")
    slow = sorted(cases, key=lambda case: -case.seconds)[:5]
    print("slowest: " + ", ".join(f"{case.name} {case.seconds:.1f} s" for case in slow))
    print(f"{sum(whole.seconds for whole in wholes):.0f} s of tests")
    passed = len(cases) - len(failed) - len(skipped)
    print(f"{passed} passed, {len(failed)} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if failed or not cases or any(whole.state == "failed" for whole in wholes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
