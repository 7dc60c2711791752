"""The report and its live form in headless Chromium: it loads without an error, figures are drawn, clicks open what they say,
what a sweep adds arrives; and what the server refuses."""
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from harness import Case, experiment, main, sweep

try:
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = None

HOSTILE = "<script>window.hacked = 1</script>&\"'"


def missing():
    if webdriver is None:
        return "python3-selenium is not installed"
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None


def start_browser(profile):
    options = Options()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,900", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


class Browser(Case):
    @classmethod
    def setUpClass(cls):
        cls.profile = tempfile.TemporaryDirectory(prefix="phasor_chromium_", ignore_cleanup_errors=True)
        cls.browser = start_browser(cls.profile.name)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.profile.cleanup()

    def setUp(self):
        super().setUp()
        self.browser.get("about:blank")  # the page of the test before would go on asking
        self.browser.get_log("browser")

    def make(self, *more, code=0):
        return self.phasor("sweep", "sweep.json", "--out", "out", *more, code=code)

    def open(self, address):
        self.browser.get(address)

    def find(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def wait(self, done, seconds=60):
        end = time.monotonic() + seconds
        while not done():
            self.assertLess(time.monotonic(), end, "it did not happen in time")
            time.sleep(0.1)

    def no_errors(self):
        found = [entry["message"] for entry in self.browser.get_log("browser") if "favicon" not in entry["message"]]
        self.assertEqual(found, [])

    def open_report(self):
        self.phasor("report", "out", "--out", "report.html")
        self.open("file://" + self.path("report.html"))

    def click(self, element):
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()


class Report(Browser):
    def hostile_sweep(self):
        """Labels and notes that would be markup, and a trial that fails."""
        spec = sweep(note=f"Is {HOSTILE} harmless?")
        spec["axes"][0]["points"][1]["label"] = f"Sel {HOSTILE}"
        spec["axes"].insert(1, {"name": "task", "role": "column", "points": [
            {"label": "S2", "set": {}}, {"label": "</script><b id=hacked>A3", "set": {"task.group": "A3"}}]})
        spec["axes"][2]["values"] = [0.01, 0.02]
        self.write("base.json", experiment(**{"train.steps": 60, "train.eval_every": 15, "run.log_every": 1}))
        self.write("sweep.json", spec)

    def test_report(self):
        self.hostile_sweep()
        self.make()
        before = self.listing()
        self.open_report()
        self.assertEqual(self.listing(), before, "it writes nothing in the folder")
        self.no_errors()
        self.assertIsNone(self.browser.execute_script("return window.hacked || document.getElementById('hacked')"))
        self.assertIn(HOSTILE, self.one(".question").text)
        # Nothing but the file itself was asked for.
        self.assertEqual(self.browser.execute_script("return performance.getEntriesByType('resource').length"), 0)
        with open(self.path("report.html")) as file:
            self.assertEqual(re.findall(r"""(?:src|href)=["']?(?:https?:)?//[^"' >]*""", file.read()), [])

        # Figures are drawn: every one has lines or cells inside its own box.
        names = [figure.get_attribute("id") for figure in self.find("figure")]
        self.assertEqual(names, ["length", "heatmap", "curves", "progress", "sensitivity"])
        for name in ["length", "curves", "progress", "sensitivity"]:
            self.assertEqual(len(self.find(f"#{name} .panel")), 2)
            self.assertEqual(len(self.find(f"#{name} path.line")), 4, name)
        self.assertEqual(len(self.find("#heatmap .mark")), 4)

        # From a number to a trial in two clicks.
        button = self.one("#table button[data-cell='1,1']")
        shown = button.text
        self.click(button)
        rows = self.find("#trial-table tbody tr")
        self.assertEqual(len(rows), 2, "the two seeds of what was chosen")
        self.click(rows[0])
        self.assertFalse(self.one("#drawer").get_property("hidden"))
        title = self.one("#drawer h2").text
        self.assertTrue(title.startswith(f"Sel {HOSTILE}"), title)
        self.assertGreaterEqual(len(self.find("#drawer .trial-curve path")), 4)
        drawer = self.one("#drawer").text
        for text in ["model.encoding.name", "its number is in the table", "phasor run out/", "data.test.6", "trial "]:
            self.assertIn(text, drawer)
        # And the mean of these trials is the number of the table.
        values = [float(row.find_elements(By.TAG_NAME, "td")[5].text) for row in self.find("#trial-table tbody tr")]
        self.assertAlmostEqual(float(shown.split(" ")[0]), sum(values) / len(values), delta=6e-5)

        # The trial has an address of its own, and its log is where the link says.
        address = self.browser.current_url
        link = self.one("#drawer a[href*='logs']").get_attribute("href")
        self.assertTrue(os.path.isfile(link.removeprefix("file://")), link)
        self.open("about:blank")
        self.open(address)
        self.assertEqual(self.one("#drawer h2").text, title)

        self.one("#drawer .close").click()
        # So do the choice, to all that it was made of, and what is said of a whole row.
        self.assertEqual([cell.text for cell in self.find("#chosen button")], [cell.text for cell in self.find("#chosen td")[1:3] + self.find("#chosen td")[4:6]])
        self.click(self.find("#chosen button")[3])
        self.assertEqual(len(self.find("#trial-table tbody tr")), 4, "two learning rates, two seeds")
        self.assertIn("all candidates", self.one("#cell-filter").text)
        row = self.find("#table button[data-cell='1,*']")
        self.assertEqual(len(row), 2, "parameters and time of a step")
        self.click(row[1])
        self.assertEqual(len(self.find("#trial-table tbody tr")), 4, "two seeds of each of two tasks")
        self.assertTrue(all(cell.text.startswith("Sel ") for cell in self.find("#trial-table tbody td:first-child")))
        self.no_errors()

    def test_nothing_is_cut_off(self):
        """A wide table folds its cells, on a screen and on paper; commands to rerun are lines."""
        spec = sweep()
        labels = ["compress", "fuzzy recall", "recall", "memorise", "noisy recall", "copying"]
        spec["axes"].insert(1, {"name": "task", "role": "column", "points": [{"label": label, "set": {"task.group": group}} for label, group in
                                                                             zip(labels, ["S2", "A3", "S3", "Z4", "Z5", "Z6"])]})
        self.write("base.json", experiment(**{"train.steps": 4, "run.log_every": 1}))
        self.write("sweep.json", spec)
        self.make()
        self.open_report()
        self.assertRegex(self.one("#rerun + pre").text, r"\A(git checkout .*\n)*\./run +# builds\nphasor sweep .*\nphasor table out\nphasor report out --out report\.html\Z")
        self.assertIn("\u00b1\u00a0", self.one("#table").get_property("textContent"))
        fits = "const r = document.getElementById('table').getBoundingClientRect(); return r.right <= document.documentElement.clientWidth"
        overflow = "const w = document.getElementById('table').parentElement; return w.scrollWidth - w.clientWidth"
        self.assertLessEqual(self.browser.execute_script(overflow), 0)
        try:
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
            self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False})
            self.assertTrue(self.browser.execute_script(fits), "on A4 with margins of 10 mm")
        finally:
            self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

        # Labels below panels side by side do not touch.
        for figure in ("curves", "progress"):
            for panel in self.browser.execute_script("return [...document.querySelectorAll('#' + arguments[0] + ' svg')].map((svg) => "
                                                     "[...svg.querySelectorAll('.xaxis text')].map((t) => { const r = t.getBoundingClientRect(); return [r.top, r.left, r.right]; }))", figure):
                for (top, _, right), (below, left, _) in zip(panel, panel[1:]):
                    if abs(top - below) < 1:
                        self.assertGreater(left, right + 3)

    def test_spec_is_whole(self):
        """What the page puts together from the common and the own is the spec of the record."""
        self.hostile_sweep()
        self.make()
        self.open_report()
        read = "import h5py, sys; print(h5py.File(sys.argv[1], 'r')['spec'].asstr()[0])"
        for name in sorted(self.records())[:4]:
            stored = json.loads(subprocess.run(["/usr/bin/python3", "-c", read, self.path("out/" + name)], check=True, capture_output=True, text=True).stdout)
            self.assertEqual(self.browser.execute_script("return nested(data.trials.find((t) => t.i === arguments[0]))", name[:-3]), stored)

    def test_figures_answer(self):
        self.hostile_sweep()
        self.make()
        self.open_report()
        key = self.find("#length .key")[0]
        self.click(key)
        off = self.find("#length .series.off")
        self.assertEqual(len(off), 2)
        self.assertFalse(off[0].is_displayed())
        self.click(key)
        self.assertEqual(self.find("#length .series.off"), [])

        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", self.one("#length svg"))
        mark = self.find("#length .mark[aria-label]")[0]
        ActionChains(self.browser).move_to_element(mark).perform()
        self.assertTrue(self.one("#tip").is_displayed())
        self.assertRegex(self.one("#tip").text, r"length|seed")

        line = self.find("#sensitivity .panel")[0]
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", line)
        before = self.browser.execute_script("return document.querySelector('#sensitivity .yaxis').textContent")
        ActionChains(self.browser).move_to_element_with_offset(line, -60, -40).click_and_hold().move_by_offset(120, 60).release().perform()
        zoomed = self.browser.execute_script("return document.querySelector('#sensitivity .marks').getAttribute('transform')")
        self.assertRegex(zoomed, r"matrix\([\d.]+ 0 0 [\d.]+")
        self.assertGreater(float(re.match(r"matrix\(([\d.]+)", zoomed).group(1)), 1.2)
        self.assertNotEqual(self.browser.execute_script("return document.querySelector('#sensitivity .yaxis').textContent"), before)
        ActionChains(self.browser).move_to_element(line).double_click().perform()
        self.assertEqual(self.browser.execute_script("return document.querySelector('#sensitivity .yaxis').textContent"), before)
        self.no_errors()

    def test_list_of_trials(self):
        self.write("base.json", experiment())
        self.make()
        os.remove(self.path("out/" + sorted(self.records())[0]))
        self.open_report()
        self.assertEqual(len(self.find("#trial-table tbody tr")), 4)
        self.assertEqual(len([c for c in self.find("#trial-table td.bad") if c.text == "missing"]), 1)
        self.one("#filter").send_keys("selective seed")
        self.assertEqual(len(self.find("#trial-table tbody tr")), 2)
        self.one("#filter").clear()
        self.one("#filter").send_keys("missing")
        self.assertEqual(len(self.find("#trial-table tbody tr")), 1)
        self.click(self.one("#trial-table tbody tr"))
        self.assertIn("missing", self.one("#drawer").text)
        self.one("#drawer .close").click()
        self.one("#filter").clear()
        self.one("#filter").send_keys("a", Keys.BACKSPACE)
        heads = {cell.text.rstrip(" ↑↓"): cell for cell in self.find("#trial-table th")}
        heads["id"].click()
        ids = [row.get_attribute("data-id") for row in self.find("#trial-table tbody tr")]
        self.assertEqual(ids, sorted(ids))
        self.no_errors()

    def test_what_cannot_be_reported(self):
        self.assertIn("nowhere/sweep.json: cannot be read", self.phasor("report", "nowhere", code=2))
        self.make()
        self.assertIn("cannot be written", self.phasor("report", "out", "--out", "no/such/report.html", code=2))
        self.assertIn("expected \"length\"", self.phasor("plot", "out", "--figure", "pie", "--out", "x.svg", code=2))
        self.assertIn("nothing to show", self.phasor("plot", "out", "--figure", "width", "--out", "x.svg", code=2))
        self.phasor("plot", "out", "--figure", "length", "--out", "x.svg")
        with open(self.path("x.svg")) as file:
            self.assertIn("<svg xmlns=", file.read())


class Serve(Browser):
    def serve(self, *more):
        self.server = self.start("serve", "out", "--port", "0", *more)
        self.addCleanup(self.stop)
        line = self.server.stdout.readline()
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", line).group(1))

    def stop(self):
        if self.server.poll() is None:
            self.server.terminate()
        out, error = self.server.communicate(timeout=30)
        self.assertEqual((self.server.returncode, error), (0, ""))

    def ask(self, target, method="GET", host=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        if host != "":
            connection.putheader("Host", host or f"127.0.0.1:{self.port}")
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")

    # By script: between two calls the page may have been renewed.
    def count_done(self):
        return self.browser.execute_script("return [...document.querySelectorAll('#trial-table tbody td')].filter((c) => c.textContent === 'done').length")

    def top(self):
        return self.browser.execute_script("return document.getElementById('top').textContent")

    def test_live(self):
        """The page follows a sweep: from two trials to all, without a reload."""
        self.write("base.json", experiment(**{"train.steps": 40}))
        self.make()
        kept = sorted(self.records())
        aside = self.path("aside")
        os.mkdir(aside)
        for name in kept[2:]:
            os.rename(self.path("out/" + name), os.path.join(aside, name))
        before = self.listing()
        self.serve()
        self.open(f"http://127.0.0.1:{self.port}/")
        self.browser.execute_script("window.same_page = true")
        self.assertIn("no sweep runs here", self.one("#top").text)
        done = self.count_done
        self.assertEqual(done(), 2)
        self.assertEqual(self.listing(), before, "it writes nothing")
        for name in kept[2:]:
            os.rename(os.path.join(aside, name), self.path("out/" + name))
        self.wait(lambda: done() == 4)
        self.assertRegex(self.one("#top .facts b:not(#live-state)").text, "4")
        self.assertTrue(self.browser.execute_script("return window.same_page"), "without a reload")
        self.assertGreater(len(self.find("#length path.line")), 0)
        self.click(self.one("#trial-table tbody tr"))
        link = self.one("#drawer a[href*='logs']").get_attribute("href")
        status, text = self.ask(link[link.index("/logs/"):])
        self.assertEqual(status, 200)
        self.assertIn("trial ", text)
        self.no_errors()

    def test_while_a_sweep_runs(self):
        self.write("base.json", experiment(**{"train.steps": 3000}))
        driver = self.start("sweep", "sweep.json", "--out", "out", "--jobs", "2")
        while not os.path.isdir(self.path("out/leases")) or not os.listdir(self.path("out/leases")):
            time.sleep(0.02)
        self.serve()
        self.open(f"http://localhost:{self.port}/")
        self.wait(lambda: "a sweep runs here" in self.top())
        driver.communicate(timeout=300)
        self.assertEqual(driver.returncode, 0)
        self.wait(lambda: "no sweep runs here" in self.top())
        self.assertEqual(self.count_done(), 4)
        self.no_errors()

    def test_what_is_refused(self):
        self.make()
        self.write("secret.log", "secret")
        trial = next(iter(self.records()))[:-3]
        self.serve()
        self.assertEqual(self.ask("/")[0], 200)
        self.assertEqual(self.ask("/", host=f"localhost:{self.port}")[0], 200)
        for host in ["evil.example", f"evil.example:{self.port}", "127.0.0.1.evil.example", "localhost:1", "", f"192.168.0.1:{self.port}"]:
            self.assertEqual(self.ask("/data.json", host=host)[0], 403, host)
        for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"]:
            self.assertEqual(self.ask("/", method, body=b"x=1" if method in ("POST", "PUT") else None)[0], 405, method)
        self.assertEqual(self.ask("/logs/" + trial)[0], 200)
        for target in ["/sweep.json", f"/{trial}.h5", "/../secret.log", "/logs/../sweep.json", "/logs/../../secret.log", "/logs/%2e%2e/%2e%2e/secret.log",
                       "/logs/", f"/logs/{trial}.log", "/logs//etc/passwd", "//etc/passwd"]:
            status, text = self.ask(target)
            self.assertEqual(status, 404, target)
            self.assertNotIn("secret", text)
        # A log that is a link out of the folder is not followed.
        log = self.path(f"out/logs/{trial[:8]}.log")
        os.remove(log)
        os.symlink(self.path("secret.log"), log)
        self.assertEqual(self.ask("/logs/" + trial)[0], 404)
        # Garbage costs one connection.
        for garbage in [b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"a" * 40000 + b"\r\n\r\n", b""]:
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
                connection.sendall(garbage)
        self.assertEqual(self.ask("/")[0], 200)
        # Loopback only: no other address of this machine answers.
        listening = subprocess.run(["/usr/bin/python3", "-c", "print(open('/proc/net/tcp').read(), open('/proc/net/tcp6').read())"], capture_output=True, text=True, check=True).stdout
        found = re.findall(rf"([0-9A-F]+):{self.port:04X} [0-9A-F]+:0000 0A", listening)
        self.assertEqual(found, ["0100007F"])
        self.assertIn("cannot listen", self.phasor("serve", "out", "--port", str(self.port), code=2))
        self.assertIn("at most 65535", self.phasor("serve", "out", "--port", "70000", code=2))


if __name__ == "__main__":
    why = missing()
    if why:
        print(f"skipped: {why}; ./test installs it")
        sys.exit(77)
    main()
