"""An installed tree, and a plugin that is built outside it: found, described, run; and judged as in the build tree."""
import os
import shutil
import subprocess

import harness
from harness import ROOT, Case, experiment, main, sweep

LISTS = """cmake_minimum_required(VERSION 3.25)
project(my_encoding LANGUAGES CXX)
find_package(Phasor 0.1 REQUIRED)
phasor_add_plugin(my_encoding SOURCES template.cpp)
"""
# Not part of the ten lines: every installed header must stand on its own, with nothing that was not installed.
HEADERS = """file(GLOB_RECURSE headers ${PHASOR_HEADERS}/*.h)
set(text "")
foreach(header ${headers})
  string(APPEND text "#include \\"${header}\\"\\n")
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/all_headers.cpp "${text}")
add_library(all_headers OBJECT ${CMAKE_BINARY_DIR}/all_headers.cpp)
set_target_properties(all_headers PROPERTIES CXX_STANDARD 20 CXX_EXTENSIONS OFF)
target_link_libraries(all_headers PRIVATE Phasor::core)
"""


class Install(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.prefix = os.path.join(cls.enterClassContext(Scratch()), "a prefix")
        command("cmake", "--install", os.environ["PHASOR_BUILD"], "--prefix", cls.prefix)
        cls.source = os.path.join(os.path.dirname(cls.prefix), "my_encoding")
        cls.build = os.path.join(cls.source, "build")
        os.makedirs(cls.source)
        shutil.copy(os.path.join(ROOT, "plugins/template/template.cpp"), cls.source)
        with open(os.path.join(cls.source, "CMakeLists.txt"), "w") as file:
            file.write(LISTS + HEADERS)
        command("cmake", "-S", cls.source, "-B", cls.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                f"-DCMAKE_PREFIX_PATH={cls.prefix}", f"-DCMAKE_CXX_COMPILER={os.environ['PHASOR_CXX']}",
                f"-DPHASOR_HEADERS={cls.prefix}/include/phasor")
        command("cmake", "--build", cls.build)
        cls.plugin = os.path.join(cls.build, "my_encoding.so")

    def setUp(self):
        super().setUp()
        self.built = harness.PHASOR
        harness.PHASOR = os.path.join(self.prefix, "bin/phasor")
        self.addCleanup(setattr, harness, "PHASOR", self.built)
        self.write("octaves.json", experiment(**{"model.encoding": {"name": "octaves"}, "train.steps": 2}))

    def test_the_installed_program_stands_alone(self):
        text = self.phasor("plugins")
        self.assertRegex(text, "encoding +rope ")
        self.assertNotIn("octaves", text)
        self.assertIn(f"from {self.prefix}/lib/phasor/plugins", text)
        for name in ["bin/phasor", "lib/libphasor_core.so", "lib/libphasor_sweeps.so", "lib/phasor/plugins/rope.so"]:
            file = os.path.join(self.prefix, name)
            for line in command("ldd", file).splitlines():
                if "libphasor" in line:
                    self.assertIn(self.prefix + "/", line, f"{name} uses a library outside the prefix")
            self.assertNotIn("not found", command("ldd", file))
            self.assertNotIn(os.environ["PHASOR_BUILD"], command("readelf", "-d", file))
        self.phasor("run", "base.json", "--out", "out")

    def test_a_plugin_by_name(self):
        text = self.phasor("plugins", "octaves", "--plugin", self.plugin)
        self.assertIn(self.plugin, text)
        self.assertIn("ratio", text)
        self.assertIn("x gla x octaves", self.phasor("describe", "octaves.json", "--plugin", self.plugin))
        self.assertRegex(self.phasor("run", "octaves.json", "--out", "out", "--plugin", self.plugin), "bits +[0-9a-f]+")
        self.assertIn("kernel", self.phasor("bench", "octaves.json", "--steps", "1", "--plugin", self.plugin))
        self.assertIn('found "octaves"', self.phasor("describe", "octaves.json", code=2))

    def test_processes_of_a_sweep_load_it_too(self):
        spec = sweep()
        spec["axes"][0]["points"][1] = {"label": "Octaves", "set": {"model.encoding": {"name": "octaves"}}}
        self.write("sweep.json", spec)
        text = self.phasor("sweep", "sweep.json", "--out", "an out", "--plugin", self.plugin)
        self.assertIn("finished 4   ok 4", text)
        self.assertIn("next             phasor table 'an out'", text)
        self.assertIn("4 trials, 4 done", self.phasor("sweep", "sweep.json", "--out", "an out", PHASOR_PLUGIN_PATH=self.build))

    def test_folders_of_plugins(self):
        for path in [self.build, f"{self.prefix}/lib/phasor/plugins:{self.build}:"]:
            text = self.phasor("plugins", PHASOR_PLUGIN_PATH=path)
            self.assertRegex(text, "encoding +octaves")
            self.assertNotIn("phasor: ", text)  # a folder named twice brings its files once
        self.phasor("run", "octaves.json", "--out", "out", PHASOR_PLUGIN_PATH=self.build)

    def test_missing_files_and_folders(self):
        for arguments in [("run", "base.json"), ("sweep", "sweep.json"), ("describe", "base.json"), ("bench", "base.json")]:
            text = self.phasor(*arguments, "--plugin", "absent.so", code=2)
            self.assertEqual(len(text.splitlines()), 1, text)
            self.assertIn("--plugin absent.so: cannot be opened (No such file or directory)", text)
        self.assertFalse(os.path.exists(self.path("out")))
        text = self.phasor("plugins", "--plugin", "absent.so", code=2)
        self.assertRegex(text, "encoding +rope ")  # the good ones are listed all the same
        self.assertIn("--plugin absent.so", text)
        text = self.phasor("plugins", PHASOR_PLUGIN_PATH="nowhere")
        self.assertEqual(len([line for line in text.splitlines() if "nowhere: cannot be read" in line]), 1, text)

    def test_both_programs_judge_alike(self):
        # The installed program takes a plugin of the build tree, the other one takes ours: one fingerprint.
        template = os.path.join(os.environ["PHASOR_BUILD"], "lib/phasor/template/template.so")
        self.assertRegex(self.phasor("plugins", "--plugin", template), "encoding +octaves")
        installed = harness.PHASOR
        harness.PHASOR = self.built
        self.assertRegex(self.phasor("plugins", "--plugin", self.plugin), "encoding +octaves")
        harness.PHASOR = installed
        with open(self.plugin, "rb") as file:
            content = bytearray(file.read())
        content[content.index(b" headers=") + len(b" headers=")] = ord("x")
        with open(self.path("other.so"), "wb") as file:
            file.write(content)
        for program in [installed, self.built]:
            harness.PHASOR = program
            self.assertIn("found headers=x", self.phasor("describe", "base.json", "--plugin", "other.so", code=2))


class Scratch(harness.tempfile.TemporaryDirectory):
    def __init__(self):
        super().__init__(prefix="phasor_install_")


def command(*words):
    process = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.returncode == 0, f"{' '.join(words)}\n{process.stdout}"
    return process.stdout


if __name__ == "__main__":
    main()
