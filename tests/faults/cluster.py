"""A Slurm cluster of one node on loopback, with Debian's munged, slurmctld and slurmd in a folder of its own: no systemd, no
control groups, no port or key that others use. The daemons end with the process that started them, whatever happens to it."""
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time

DAEMONS = ("munged", "slurmctld", "slurmd")
TOOLS = ("sbatch", "squeue", "scontrol", "scancel", "sinfo")

# Nothing binds jobs to processors, so there may be more of these than the machine has. A task that is ended has 2 s to do so.
CONFIG = """ClusterName=phasor
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
DefMemPerCPU=100
KillWait=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=8000 State=UNKNOWN
PartitionName=short Nodes={host} Default=YES PriorityTier=1 State=UP
PartitionName=urgent Nodes={host} PriorityTier=2 State=UP
"""


def find(program):
    """Daemons stand where the PATH of a user does not lead."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def what_is_missing():
    """Why no cluster can be started here; empty when one can."""
    absent = [program for program in DAEMONS + TOOLS if find(program) is None]
    if absent:
        return "Slurm is not installed: no " + ", ".join(absent)
    return "" if os.geteuid() == 0 else "the daemons of Slurm need root"


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.daemons = []
        self.environment = {"SLURM_CONF": self.path("slurm.conf")}

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content, mode):
        with open(self.path(name), "wb", opener=lambda file, flags: os.open(file, flags, mode)) as file:
            file.write(content)

    def daemon(self, name, *arguments):
        with open(self.path(name + ".out"), "wb") as out:
            self.daemons.append(subprocess.Popen([find(name), *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                                 env={**os.environ, **self.environment}, preexec_fn=end_with_parent))

    def until(self, what, happens, seconds=900):
        end = time.time() + seconds
        while not happens():
            ended = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            if ended or time.time() > end:
                raise RuntimeError(f"{what} did not happen; ended: {ended}\n{self.said()}")
            time.sleep(0.2)  # squeue is a process each time

    def said(self):
        text = ""
        for name in DAEMONS:
            if os.path.exists(self.path(name + ".out")):
                with open(self.path(name + ".out"), errors="replace") as file:
                    text += f"{name}:\n" + "".join(file.readlines()[-15:])
        return text

    def start(self):
        os.chmod(self.folder, 0o755)  # munged wants its socket to be reachable by all
        os.mkdir(self.path("state"))
        os.mkdir(self.path("spool"))
        host = socket.gethostname().split(".")[0]
        controller, node = free_ports(2)
        self.write("munge.key", os.urandom(128), 0o600)
        self.write("slurm.conf", CONFIG.format(folder=self.folder, host=host, controller=controller, node=node).encode(), 0o644)
        self.write("cgroup.conf", b"CgroupPlugin=cgroup/v1\n", 0o644)  # asked for by nobody; to look for one needs them mounted
        self.daemon("munged", "--foreground", "--key-file=" + self.path("munge.key"), "--socket=" + self.path("munge.socket"),
                    "--pid-file=" + self.path("munged.pid"), "--log-file=" + self.path("munged.log"),
                    "--seed-file=" + self.path("munged.seed"))
        self.until("the socket of munged", lambda: os.path.exists(self.path("munge.socket")))
        self.daemon("slurmctld", "-D")
        self.daemon("slurmd", "-D")
        self.until("a free node", lambda: self.ask("sinfo", "-h", "-o", "%T") == "idle")

    def cancel_all(self):
        self.run("scancel", "--user=root")
        end = time.time() + 60
        while self.ask("squeue", "-h") and time.time() < end:
            time.sleep(0.2)

    def stop(self):
        """Jobs first: what runs them has left its daemon."""
        self.cancel_all()
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def run(self, *command):
        return subprocess.run(command, env={**os.environ, **self.environment}, capture_output=True, text=True)

    def ask(self, *command):
        return self.run(*command).stdout.strip()

    def start_now(self, task):
        """One that was queued again, which Slurm would let wait for two minutes. It may not start within the second in which slurmd
        ends what it did before: slurmd then takes its new credential, whose time counts seconds, for the revoked one."""
        self.until(f"task {task} waiting", lambda: self.tasks().get(task) == "PENDING")
        time.sleep(3)
        answer = self.run("scontrol", "update", "JobId=" + task, "StartTime=now")
        if answer.returncode != 0:
            raise RuntimeError(answer.stderr)

    def tasks(self):
        """Of all jobs that wait or run: "1_0" to its state."""
        return dict(line.split() for line in self.ask("squeue", "-h", "-r", "-o", "%F_%K %T").splitlines())
