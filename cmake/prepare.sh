# Sourced by ./run and ./test: installs what is missing on Debian 12 and configures the build.
# After it: $root is the project, $build the build folder.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${PHASOR_BUILD:-$root/build}

# install_missing PACKAGE...: nothing happens when all are there.
install_missing() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  echo "installing: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "not root and no sudo; as root: apt-get install ${missing[*]}" >&2
      exit 2
    }
    as_root=(sudo)
  fi
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "installing failed; the lines above are apt's own" >&2
    exit 2
  fi
  rm -f "$log"
}

build_packages=(g++ cmake ninja-build git libdnnl-dev libhdf5-dev nlohmann-json3-dev libfmt-dev libboost-dev
  libboost-filesystem-dev libboost-program-options-dev libsentencepiece-dev)
test_packages=(libgtest-dev libboost-context-dev python3 python3-h5py python3-jsonschema python3-scipy python3-pandas binutils slurmctld slurmd slurm-client munge
  chromium chromium-driver python3-selenium)

# configure [cmake options]: a second call with the same options does nothing that takes time.
configure() {
  local log
  log=$(mktemp)
  if ! cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE="${PHASOR_BUILD_TYPE:-Release}" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    exit 2
  fi
  rm -f "$log"
}

# Ninja's [done/total] lines as one live line on a terminal, as a line every 20 seconds elsewhere. How long it will take is not said
# before 20 steps and 10 seconds: the first files are large ones. The shell reads line by line; Debian's awk waits for 4 kB of them.
build_progress() {
  local terminal=0 start=$SECONDS last=$SECONDS line finished total left text
  if [ -t 1 ]; then terminal=1; fi
  while IFS= read -r line; do
    if ! [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then continue; fi
    finished=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]}
    if ((!terminal && SECONDS - last < 20 || finished < 1)); then continue; fi
    text="compiled $finished of $total"
    if ((finished >= 20 && SECONDS - start >= 10)); then
      left=$(((SECONDS - start) * (total - finished) / finished))
      text+=$(printf '   ETA %d:%02d' $((left / 60)) $((left % 60)))
    fi
    if ((terminal)); then printf '\r%-60s' "$text"; else echo "$text"; fi
    last=$SECONDS
  done
  if ((terminal)); then printf '\r%-60s\r' ''; fi
}

# compile [targets]: shows progress; the compiler speaks only when something fails.
compile() {
  local log
  log=$(mktemp)
  if ! cmake --build "$build" --target "${@:-all}" 2>&1 | tee "$log" | build_progress; then
    grep -E 'error|FAILED|undefined' -A 4 "$log" | head -n 60 >&2 || tail -n 60 "$log" >&2
    echo "the build failed; everything it said is in $log" >&2
    exit 2
  fi
  rm -f "$log"
}
