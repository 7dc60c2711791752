"""Several runners in one folder: every trial once, whatever the locks, and a stopped one that wakes up stores nothing (acceptance
A2; L24, L26, L27, L29, L32, L34)."""
import os
import random
import subprocess
import time

import h5py

from faults import Faults, children, content, count, experiment, grid, main, state_of, status_of

NO_LOCKS = r"""
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/types.h>
extern "C" {
static int refused() { errno = atoi(getenv("TEST_ERRNO")); return -1; }
int flock(int, int) { return refused(); }
int lockf(int, int, off_t) { return refused(); }
typedef int (*fcntl_type)(int, int, ...);
void* dlsym(void*, const char*);
static int forward(const char* name, int file, int command, void* argument) {
  if ((command >= 5 && command <= 7) || (command >= 36 && command <= 38)) return refused();  // all kinds of locks
  return reinterpret_cast<fcntl_type>(dlsym(reinterpret_cast<void*>(-1L), name))(file, command, argument);
}
int fcntl(int file, int command, ...) {
  va_list list; va_start(list, command); void* argument = va_arg(list, void*); va_end(list);
  return forward("fcntl", file, command, argument);
}
int fcntl64(int file, int command, ...) {
  va_list list; va_start(list, command); void* argument = va_arg(list, void*); va_end(list);
  return forward("fcntl64", file, command, argument);
}
#ifdef NO_LINKS
int link(const char*, const char*) { errno = EPERM; return -1; }
#endif
}
"""


class Runners(Faults):
    def together(self, number, *more, trials, **environment):
        """So many runners at once; every trial was started once by one of them."""
        drivers = [self.drive(*more, **environment) for _ in range(number)]
        texts = [self.ended(driver) for driver in drivers]
        self.assertEqual(sum(self.started(text) for text in texts), trials, "\n".join(texts))
        self.assertEqual([status_of(file) for file in self.files()], ["done"] * trials)
        self.assertEqual(self.leases(), [])
        return texts

    def again(self):
        """An empty folder."""
        subprocess.run(["rm", "-rf", self.path("out")], check=True)

    def test_each_point_once(self):
        self.write("sweep.json", grid(4, (0.01, 0.02)))
        for _ in range(count(2, 200)):
            self.again()
            drivers = []
            for _ in range(8):
                drivers.append(self.drive("--jobs", "1"))
                time.sleep(random.uniform(0.0, 0.1))
            self.assertEqual(sum(self.started(self.ended(driver)) for driver in drivers), 8)
            self.assertEqual([status_of(file) for file in self.files()], ["done"] * 8)

    def test_twenty_at_once(self):
        self.write("sweep.json", grid(10))
        self.together(20, "--jobs", "1", trials=10)

    def test_many_into_one_folder(self):
        processes, trials = count((4, 24), (16, 800))
        self.write("sweep.json", grid(trials))
        self.together(processes, "--jobs", "1", trials=trials)
        self.phasor("merge", "out", "--out", "one.h5")
        self.phasor("merge", "out", "--out", "two.h5")
        with open(self.path("one.h5"), "rb") as one, open(self.path("two.h5"), "rb") as two:
            self.assertEqual(one.read(), two.read())

    def test_jobs_and_runners_change_no_bit(self):
        self.write("sweep.json", grid(4, (0.01, 0.02)))
        found = []
        for jobs, runners in [("1", 1), ("2", 1), ("8", 1), ("2", 2)]:
            self.again()
            self.together(runners, "--jobs", jobs, trials=8)
            found.append({os.path.basename(file): content(file) for file in self.files()})
        self.assertEqual(len(found[0]), 8)
        for other in found[1:]:
            self.assertEqual(other, found[0])

    def test_without_locks(self):
        """L32: calls that lock fail; nothing of us needs them. Nor hard links."""
        self.write("no_locks.cpp", NO_LOCKS)
        self.write("sweep.json", grid(4))
        for links, numbers in [((), (37, 38, 11)), (("-DNO_LINKS",), (37,))]:  # ENOLCK, ENOSYS, EAGAIN
            subprocess.run([os.environ["PHASOR_CXX"], "-shared", "-fPIC", *links, "no_locks.cpp", "-o", "no_locks.so"],
                           cwd=self.folder, check=True)
            locks = {"LD_PRELOAD": self.path("no_locks.so")}
            probe = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)"
            for number in numbers:
                locks["TEST_ERRNO"] = str(number)
                refused = subprocess.run(["/usr/bin/python3", "-c", probe, self.path("base.json")], env={**os.environ, **locks},
                                         capture_output=True, text=True)
                self.assertIn(f"[Errno {number}]", refused.stderr, "the interposed call is not called")
                self.again()
                self.together(2, "--jobs", "1", trials=4, **locks)

    def test_a_stopped_runner_that_wakes_up(self):
        self.write("base.json", experiment(**{"train.steps": 4000}))
        self.write("sweep.json", grid(2))
        stopped = self.drive("--jobs", "1", "--lease", "1")
        self.until(lambda: self.leases() and children(stopped.pid))
        time.sleep(0.3)
        trial = children(stopped.pid)[0]
        self.stop(stopped.pid, trial)
        held = self.leases()
        self.assertEqual(len(held), 1)
        other = self.drive("--jobs", "1", "--lease", "1")
        lost = held[0] + ".lost"
        self.until(lambda: lost in self.leases())
        self.go_on(trial)  # it finishes, and must not store what it has
        self.until(lambda: state_of(trial) == "Z")
        logs = [name for name in os.listdir(self.path("out/logs")) if name.endswith(".lost1.log")]
        self.assertEqual(len(logs), 1)
        with open(self.path("out/logs/" + logs[0])) as log:
            self.assertIn("is not stored: another runner has taken the trial over", log.read())
        self.assertIn("finished 2   ok 2", self.ended(other))
        before = self.records()
        self.go_on(stopped.pid)
        text = self.ended(stopped)
        self.assertIn("ok 2", text)
        self.assertEqual(self.started(text), 1)
        self.assertEqual(self.records(), before)
        self.assertEqual([status_of(file) for file in self.files()], ["done"] * 2)
        self.assertEqual(self.leases(), [lost])  # the first attempt is kept

    def test_a_runner_that_loses_its_lease_ends_the_trial(self):
        self.write("base.json", experiment(**{"train.steps": 100000}))
        self.write("sweep.json", grid(1))
        stopped = self.drive("--jobs", "1", "--lease", "1")
        self.until(lambda: children(stopped.pid))
        trial = children(stopped.pid)[0]
        self.stop(stopped.pid, trial)
        other = self.drive("--jobs", "1", "--lease", "1")
        self.until(lambda: any(name.endswith(".2") for name in self.leases()))
        self.go_on(trial, stopped.pid)
        self.until(lambda: not os.path.exists(f"/proc/{trial}"))
        for driver in (other, stopped):
            driver.terminate()
        self.ended(other, code=130)
        self.assertIn("taken over  NoPE / lr 0.01 / seed 0", self.ended(stopped, code=130))

    def test_processes_and_threads(self):
        """L29: never more processes than jobs, before and after a resume; a trial has the threads it asks for and says where it ran."""
        self.write("base.json", experiment(**{"train.steps": 300}))
        trials = count(8, 20)
        self.write("sweep.json", grid(trials))
        killed = self.drive("--jobs", "4")
        self.watch(killed, until=lambda: len(self.files()) >= trials // 3)
        killed.kill()
        killed.communicate()
        driver = self.drive("--jobs", "4")
        self.watch(driver)
        self.ended(driver)
        for file in self.files():
            with h5py.File(file, "r") as record:
                facts = dict(zip(record["provenance/name"][()], record["provenance/value"][()]))
            self.assertEqual(facts[b"device"], b"cpu")

    def watch(self, driver, until=lambda: False):
        """Looks at the processes of its trials until it ends: four at most, and so many at some moment, of one thread each."""
        most, threads = 0, set()
        while driver.poll() is None and not until():
            found = [child for child in children(driver.pid) if state_of(child) not in "ZX"]
            most = max(most, len(found))
            for child in found:
                try:
                    with open(f"/proc/{child}/status") as file:
                        threads.add(int(file.read().split("Threads:")[1].split()[0]))
                except (OSError, IndexError):
                    pass
            time.sleep(0.005)
        self.assertEqual(most, 4)
        self.assertEqual(threads, {1})

    def test_many_jobs_on_few_cores(self):
        """L29: more jobs than cores are not slower than as many as cores."""
        self.write("base.json", experiment(**{"train.steps": count(400, 1000)}))
        self.write("sweep.json", grid(16))
        took = {"2": [], "8": []}
        for _ in range(count(2, 5)):
            for jobs in took:
                self.again()
                begun = time.time()
                self.ended(self.drive("--jobs", jobs))
                took[jobs].append(time.time() - begun)
        print("16 trials: " + ", ".join(f"{min(times):.2f} s with {jobs} jobs" for jobs, times in took.items()))
        self.assertLess(min(took["8"]), count(2.0, 1.15) * min(took["2"]))  # a machine of tests is shared

    def test_overhead(self):
        """The runner's own processor time a trial, and its memory."""
        trials = count(60, 1000)
        self.write("base.json", experiment(**{"train.steps": 1, "task.train.rows": 8}))
        self.write("sweep.json", grid(trials))
        driver = self.drive("--jobs", "2")
        tick, memory, ticks = os.sysconf("SC_CLK_TCK"), [], 0
        self.until(self.files)
        begun = time.time()
        while driver.poll() is None:
            try:
                with open(f"/proc/{driver.pid}/stat") as file:
                    fields = file.read().rsplit(")")[1].split()
                ticks = max(ticks, int(fields[11]) + int(fields[12]))
                memory.append(int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))
            except (OSError, IndexError):
                pass
            time.sleep(0.02)
        self.ended(driver)
        a_trial = ticks / tick / trials
        early, late = memory[len(memory) // 5], max(memory)
        print(f"{1e3 * a_trial:.1f} ms of processor time a trial, {1e3 * (time.time() - begun) / trials:.1f} ms a trial in all with 2 jobs, "
              f"memory {early >> 20} MB, then {late >> 20} MB")
        self.assertLess(a_trial, 0.050)
        self.assertLess(late - early, 2 << 20)


if __name__ == "__main__":
    main()
