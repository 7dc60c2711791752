"""Reads ctest's JUnit report; prints failures and skips with their reasons, and the closing line that counts."""
import re
import sys
import xml.etree.ElementTree as tree


def reason(case):
    """The line a skipped test printed, from gtest's output or a script's 'skipped: ...'."""
    text = case.findtext("system-out") or ""
    for pattern in (r"^skipped: (.+)$", r"Skipped\n(.+)$", r"^(.*skip.*)$"):
        found = re.search(pattern, text, re.MULTILINE | re.IGNORECASE)
        if found:
            return found.group(1).strip()
    return "no reason given"


def main(report, output):
    try:
        cases = list(tree.parse(report).getroot().iter("testcase"))
    except (OSError, tree.ParseError) as error:
        sys.stdout.write(open(output, errors="replace").read())
        print(f"no test report: {error}")
        return 1
    failed = [c for c in cases if c.get("status") == "fail"]
    skipped = [c for c in cases if c.find("skipped") is not None or c.get("status") in ("notrun", "disabled")]
    seconds = sum(float(c.get("time", 0)) for c in cases)
    for case in failed:
        print(f"\nFAILED {case.get('name')}")
        print("\n".join((case.findtext("system-out") or "").splitlines()[-40:]))
    for case in skipped:
        print(f"skipped {case.get('name')}: {reason(case)}")
    slow = sorted(cases, key=lambda c: -float(c.get("time", 0)))[:5]
    print("slowest: " + ", ".join(f"{c.get('name')} {float(c.get('time', 0)):.1f} s" for c in slow))
    print(f"{seconds:.0f} s of tests")
    passed = len(cases) - len(failed) - len(skipped)
    print(f"{passed} passed, {len(failed)} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
