#include "sweeps/launchers/slurm.h"

#include <gtest/gtest.h>

#include "results/files.h"
#include "sweeps/launchers/program.h"
#include "tests/sweeps/scratch.h"

namespace phasor::sweeps::slurm {
namespace {

std::vector<std::size_t> numbers(std::size_t count) {
  std::vector<std::size_t> made;
  for (std::size_t i = 0; i < count; ++i) made.push_back(i);
  return made;
}

std::string value_of(const Plan& plan, const std::string& key) {
  for (const auto& [name, value] : plan.settings)
    if (name == key) return value;
  return "";
}

TEST(SlurmSettings, KnownKeysInTheirOrder) {
  EXPECT_EQ(read_settings({"partition=a,b", "time=1-00:00:00", "gres=gpu:2"}),
            (Settings{{"partition", "a,b"}, {"time", "1-00:00:00"}, {"gres", "gpu:2"}}));
}

TEST(SlurmSettings, EveryMistakeIsTold) {
  const std::string text = error_of([] {
    read_settings({"partion=a", "array=0-3", "time", "=1", "mem=", "qos=a b", "cpus-per-task=two", "cpus-per-task=0", "time=1", "time=2",
                   "constraint=a\nb"});
  });
  for (const char* words : {"--slurm partion: unknown key \"partion\", did you mean \"partition\"?",
                            "--slurm array: the launcher sets it: --chunk", "--slurm time: found \"time\", expected KEY=VALUE",
                            "--slurm found \"=1\", expected KEY=VALUE", "--slurm mem: found \"\"", "--slurm qos: found \"a b\"",
                            "--slurm cpus-per-task: found \"two\", expected an integer", "--slurm cpus-per-task: found \"0\"",
                            "--slurm time: found twice", "--slurm constraint: found \"a\\nb\""})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 9) << text;
}

TEST(SlurmPlan, EveryTrialInOneTask) {
  for (const std::size_t trials : {1u, 2u, 7u, 9u, 100u, 101u, 1000u}) {
    for (const std::int64_t chunk : {0, 1, 2, 7, 5000}) {
      const Plan plan = make_plan(numbers(trials), 1, {}, 20.0, {{}, chunk == 0 ? std::nullopt : std::optional(chunk), {}, {}});
      std::vector<std::size_t> all;
      for (const auto& task : plan.tasks) {
        EXPECT_FALSE(task.empty());
        EXPECT_LE(static_cast<std::int64_t>(task.size()), plan.chunk);
        all.insert(all.end(), task.begin(), task.end());
      }
      EXPECT_EQ(all, numbers(trials)) << chunk;
      EXPECT_TRUE(chunk > 0 || plan.tasks.size() <= 100u);
    }
  }
  EXPECT_EQ(make_plan(numbers(9), 1, {}, 20.0, {{}, 2, {}, {}}).tasks.size(), 5u);
  EXPECT_EQ(make_plan(numbers(101), 1, {}, 20.0, {}).chunk, 2);
}

TEST(SlurmPlan, WhatIsLeftOpenFollowsFromTheLimits) {
  const Plan open = make_plan(numbers(6), 2, {300, 1000}, 20.0, {{}, 3, {}, 2});
  EXPECT_EQ(value_of(open, "cpus-per-task"), "4");             // 2 side by side with 2 threads
  EXPECT_EQ(value_of(open, "mem"), "2768M");                   // 2 (1000 + 256) + 256
  EXPECT_EQ(value_of(open, "time"), "12");                     // 2 after each other: (600 + 60 + 50) s
  EXPECT_EQ(open.lead, 50);
  const Plan given = make_plan(numbers(6), 2, {300, 1000}, 20.0, {{{"time", "7"}, {"mem-per-cpu", "1G"}, {"cpus-per-task", "9"}}, {}, {}, {}});
  EXPECT_EQ(given.jobs, 4);
  EXPECT_EQ(given.chunk, 4);
  EXPECT_EQ(value_of(given, "time"), "7");
  EXPECT_EQ(value_of(given, "mem"), "");
  EXPECT_EQ(given.settings.size(), 3u);
  const Plan unlimited = make_plan(numbers(6), 1, {}, 20.0, {});
  EXPECT_EQ(value_of(unlimited, "time") + value_of(unlimited, "mem"), "");
  EXPECT_EQ(unlimited.jobs, 1);
  EXPECT_EQ(make_plan(numbers(1), 4, {}, 20.0, {{{"cpus-per-task", "2"}}, {}, {}, {}}).jobs, 1);  // fewer than a trial wants
}

TEST(SlurmPlan, SeveralTrialsInAProcess) {
  const Plan open = make_plan(numbers(40), 2, {300, 0}, 20.0, {{}, {}, {}, 2, 5});
  EXPECT_EQ(open.chunk, 10);                         // no place of a task stays empty
  EXPECT_EQ(value_of(open, "cpus-per-task"), "20");  // 2 processes of 5 trials with 2 threads
  EXPECT_EQ(value_of(open, "time"), "7");            // all at once: (300 + 60 + 50) s
  EXPECT_EQ(to_text(open), "40 trials as 4 tasks of 10, 10 side by side in each");
  EXPECT_EQ(make_plan(numbers(40), 1, {}, 20.0, {{{"cpus-per-task", "16"}}, {}, {}, {}, 4}).jobs, 4);
}

TEST(SlurmPlan, TheScript) {
  const Plan plan = make_plan(numbers(9), 1, {}, 30.5, {{{"partition", "a"}}, 2, 3, {}});
  EXPECT_EQ(script_text(plan, {"my sweep", "/opt/phasor", "/data/50% \"new\"/slurm/4", "/home/it's me"}),
            "#!/bin/bash\n"
            "# Written by phasor sweep --launcher slurm. A task of the array runs its part of trials.json.\n"
            "#SBATCH --job-name=phasor-my_sweep\n"
            "#SBATCH --array=0-4%3\n"
            "#SBATCH --nodes=1\n"
            "#SBATCH --ntasks=1\n"
            "#SBATCH --partition=a\n"
            "#SBATCH --cpus-per-task=1\n"
            "#SBATCH --requeue\n"
            "#SBATCH --open-mode=append\n"
            "#SBATCH --signal=B:TERM@61\n"
            "#SBATCH --output=\"/data/50%% \\\"new\\\"/slurm/4/%a.log\"\n"
            "#SBATCH --chdir=\"/home/it's me\"\n"
            "# The runner takes the place of this script, so that it is what Slurm signals before the time is over. Its trials then stop\n"
            "# at a checkpoint, and it asks Slurm to queue the task again.\n"
            "exec /opt/phasor sweep '/data/50% \"new\"/slurm/4/trials.json' --task \"$SLURM_ARRAY_TASK_ID\"\n");
  EXPECT_EQ(to_text(plan), "9 trials as 5 tasks of 2, 1 side by side in each");
  EXPECT_NE(error_of([&] { script_text(plan, {"x", "/opt/phasor", "/a\nb", "/"}); }), "");
}

class SlurmFiles : public Scratch {
 protected:
  Submission submission() const {
    Submission made{"small", {}, {300, 1500}, 50, {}};
    made.options.jobs = 2;
    made.options.trials_per_device = 3;
    made.options.fail_fast = true;
    made.options.plugin_files = {"/a b.so"};
    made.options.lease_seconds = 7.5;
    made.options.attempts = 4;
    made.options.grace_seconds = 9.0;
    Json spec = Json::object();
    spec["lr"] = 1.0;
    made.tasks = {{{{spec, "one"}, 3, {}}}, {{{spec, "two"}, 4, Stamp{~0ull, -5, 6}}, {{spec, "three"}, 5, {}}}};
    return made;
  }
  std::string folder() const { return path("out"); }
};

TEST_F(SlurmFiles, ASubmissionIsReadAsItWasWritten) {
  const std::string place = claim_place(folder());
  EXPECT_EQ(place, folder() + "/slurm/1");
  write_submission(submission(), place);
  const Submission read = read_submission(place);
  EXPECT_EQ(read.name, "small");
  EXPECT_EQ(read.lead, 50);
  EXPECT_EQ(read.limits.seconds, 300);
  EXPECT_EQ(read.limits.memory_mb, 1500);
  EXPECT_EQ(read.options.jobs, 2);
  EXPECT_EQ(read.options.trials_per_device, 3);
  EXPECT_TRUE(read.options.fail_fast);
  EXPECT_EQ(read.options.plugin_files, std::vector<std::string>{"/a b.so"});
  EXPECT_EQ(read.options.lease_seconds, 7.5);
  EXPECT_EQ(read.options.attempts, 4);
  EXPECT_EQ(read.options.grace_seconds, 9.0);
  ASSERT_EQ(read.tasks.size(), 2u);
  ASSERT_EQ(read.tasks[1].size(), 2u);
  EXPECT_EQ(read.tasks[0][0].trial.id, "one");
  EXPECT_FALSE(read.tasks[0][0].replaces);
  EXPECT_EQ(read.tasks[1][0].cell, 4);
  EXPECT_TRUE(read.tasks[1][0].replaces == (Stamp{~0ull, -5, 6}));
  EXPECT_EQ(read.tasks[1][0].trial.spec.pretty(), submission().tasks[1][0].trial.spec.pretty());
}

TEST_F(SlurmFiles, WhatIsNoSubmissionIsRefused) {
  std::filesystem::create_directories(path("x"));
  for (const char* text : {"{}", "{\"format\": 2}", "[]", "{\"format\": \"1\"}", "not json"}) {
    write("x/trials.json", text);
    EXPECT_NE(error_of([&] { read_submission(path("x")); }).find("x/trials.json"), std::string::npos) << text;
  }
  EXPECT_NE(error_of([&] { read_submission(path("y")); }), "");
}

TEST_F(SlurmFiles, PlacesAndJobs) {
  EXPECT_TRUE(read_jobs(folder()).empty());
  EXPECT_EQ(next_place(folder()), folder() + "/slurm/1");
  EXPECT_FALSE(std::filesystem::exists(folder()));
  for (int i = 0; i < 10; ++i) claim_place(folder());
  std::filesystem::create_directories(folder() + "/slurm/notes");
  EXPECT_EQ(claim_place(folder()), folder() + "/slurm/11");
  write_job({folder() + "/slurm/10", "77", "/a b/job.sh"});
  write_job({folder() + "/slurm/9", "66", "/c/job.sh"});
  const std::vector<Job> jobs = read_jobs(folder());
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].number, "66");
  EXPECT_EQ(jobs[1].number, "77");
  EXPECT_EQ(jobs[1].script, "/a b/job.sh");
  EXPECT_EQ(jobs[1].place, folder() + "/slurm/10");
}

TEST_F(SlurmFiles, WhatSlurmHolds) {
  const std::string place = claim_place(folder());
  write_submission(submission(), place);
  const std::vector<Job> jobs = {{place, "12", "/my|odd path/job.sh"}};
  Queue queue;
  queue.tasks = tasks_in("12|1|PENDING|Resources|/my|odd path/job.sh\n"
                         "12|0|RUNNING|None|/my|odd path/job.sh\n"
                         "12|0|RUNNING|None|/another/job.sh\n"  // of another cluster
                         "13|0|RUNNING|None|/my|odd path/job.sh\n"
                         "12|2|PENDING|None|/my|odd path/job.sh\n12|N/A|PENDING|None|/my|odd path/job.sh\n\nodd\n",
                         jobs);
  ASSERT_EQ(queue.tasks.size(), 2u);
  EXPECT_EQ(queue.tasks[0].task, 1);
  EXPECT_EQ(queue.tasks[0].reason, "Resources");
  EXPECT_EQ(queue.held(), (std::vector<std::string>{"one", "three", "two"}));
  EXPECT_EQ(lines_of(queue), std::vector<std::string>{"job 12: 1 task waits (Resources), 1 task runs"});
  Expansion expansion;
  for (const char* id : {"zero", "one", "two", "three", "four"}) expansion.trials.push_back({Json::object(), id});
  EXPECT_EQ(to_submit(expansion, {}, {}, queue), (std::vector<std::size_t>{0, 4}));
  EXPECT_EQ(to_submit(expansion, {}, {}, {}).size(), 5u);
}

TEST(SlurmQueue, AsksNobodyWhereNothingWasSubmitted) {
  const Queue queue = read_queue("/nowhere");
  EXPECT_TRUE(queue.tasks.empty());
  EXPECT_EQ(queue.problem, "");
}

TEST(SlurmQueue, TimesOfSqueue) {
  EXPECT_EQ(seconds_in("0:00"), 0);
  EXPECT_EQ(seconds_in("4:58"), 298);
  EXPECT_EQ(seconds_in("1:02:03"), 3723);
  EXPECT_EQ(seconds_in("2-01:02:03"), 2 * 86400 + 3723);
  for (const char* text : {"UNLIMITED", "INVALID", "NOT_SET", "", "-", "12", "1:x", "1:2:3:4"}) EXPECT_FALSE(seconds_in(text)) << text;
}

TEST(SlurmQueue, WhenATaskIsQueuedAgain) {
  EXPECT_TRUE(should_requeue("RUNNING", 40, 50, true));
  EXPECT_FALSE(should_requeue("RUNNING", 40, 50, false));   // its time is over, and the next one's would be too
  EXPECT_FALSE(should_requeue("RUNNING", 110, 50, false));  // Slurm may be a minute early
  EXPECT_TRUE(should_requeue("RUNNING", 111, 50, false));   // asked to end for another reason
  EXPECT_TRUE(should_requeue("RUNNING", std::nullopt, 50, false));
  for (const char* state : {"COMPLETING", "CANCELLED", "PREEMPTED", "PENDING", ""}) EXPECT_FALSE(should_requeue(state, 9999, 50, true)) << state;
}

TEST(Programs, WhatTheySay) {
  const Said both = run_program({"sh", "-c", "echo out; echo sbatch: error: no >&2; echo more >&2; exit 3"}, 60.0);
  EXPECT_EQ(both.out, "out\n");
  EXPECT_EQ(both.code, 3);
  EXPECT_FALSE(both.well());
  EXPECT_EQ(complaint("sbatch", both), "sbatch: no; more");
  EXPECT_EQ(complaint("sbatch", run_program({"false"}, 60.0)), "sbatch: exit code 1");
  EXPECT_EQ(run_program({"sh", "-c", "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2"}, 60.0).out.size(), 300000u);
  EXPECT_FALSE(run_program({"no_such_program_here"}, 60.0).found);
  const Said late = run_program({"sleep", "600"}, 0.2);
  EXPECT_EQ(late.code, -1);
  EXPECT_EQ(late.error, "no answer for 0 s");
}

}  // namespace
}  // namespace phasor::sweeps::slurm
