"""What is writable and belongs to nobody, in the libraries that trials run in: several trials may share a process (docs/cuda.md), so
there is none but what is listed here with the reason why two threads may have it.

usage: globals.py FOLDER_OF_LIBRARIES
"""
import pathlib
import re
import subprocess
import sys

# Libraries that a trial calls; of the others only the runner's thread does.
LIBRARIES = ("base", "core", "experiments", "results", "cuda")

# Constants that are filled when a library is loaded or at their first use: nobody writes to them afterwards.
CONSTANTS = [r"phasor::\w+::\(anonymous namespace\)::(length|tokens|rows)_range", r"phasor::ScheduleOptions::names\[abi:cxx11\]\(\)::all",
             r"phasor::gemm_library\(\)::text", r"phasor::cuda::cudnn::open\(.*\)::found",
             r"phasor::Field::bound\(\) const::none"]
# State, and what makes it safe.
GUARDED = {
    r"phasor::blame\(\)::current": "of the thread",
    r"phasor::gemm\(.*\)::memory": "of the thread",
    r"phasor::results::h5::\(anonymous namespace\)::library_lock\(\)::lock": "the lock of HDF5",
    r"phasor::results::h5::\(anonymous namespace\)::fresh_name\(\)::number": "atomic",
    r"phasor::cuda::allow_shared\(.*\)::(mutex|allowed)": "its own lock",
}
# Of compilers and their libraries.
FOREIGN = r"guard variable|boost::uuids::string_generator::|completed\.|__|_DYNAMIC|_GLOBAL_OFFSET|DW\.ref|std::__ioinit|fatbin|.*__nv_|.*device_stub"
# What the loader writes once and then closes (.data.rel.ro) is no state.
WRITABLE = (".data", ".bss", ".tdata", ".tbss")


def strays(library):
    """Variables, of threads too, that no list has."""
    text = subprocess.run(["nm", "-C", "--defined-only", "--format=sysv", library], check=True, capture_output=True, text=True).stdout
    rows = [[cell.strip() for cell in line.rsplit("|", 6)] for line in text.splitlines() if line.count("|") >= 6]
    found = [row[0] for row in rows if row[6] in WRITABLE and row[3] != "NOTYPE"]
    known = "|".join([*CONSTANTS, *GUARDED])
    return [name for name in found if not re.match(FOREIGN, name) and not re.fullmatch(known, name)]


def main(folder):
    libraries = [folder / f"libphasor_{name}.so" for name in LIBRARIES] + sorted((folder / "phasor/plugins").glob("*.so"))
    libraries = [library for library in libraries if library.exists()]
    assert len(libraries) > 3, f"no libraries in {folder}"
    wrong = [f"{library.name}: {name}" for library in libraries for name in strays(library)]
    print("\n".join(wrong + [f"{len(libraries)} libraries, {len(wrong)} variables that two trials in a process would share"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
