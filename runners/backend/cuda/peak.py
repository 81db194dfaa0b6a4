"""Runs a program and prints the most memory that it took: peak.py PROGRAM [ARGUMENT...].

For each program that it starts, directly or not, the largest resident set of one process, and the most memory of the GPU that
was in use. Shared pages count for each process that has them.
"""
import collections
import os
import subprocess
import sys
import threading


def children(root):
    """The processes below root, root included."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                parents[int(pid)] = int(f.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    for pid in parents:
        above = pid
        while above not in (root, 0, 1):
            above = parents.get(above, 0)
        if above == root:
            yield pid


def resident(pid):
    """What a process is called, and its largest resident set in KiB."""
    try:
        with open(f"/proc/{pid}/status") as f:
            status = dict(line.split(":", 1) for line in f if ":" in line)
        with open(f"/proc/{pid}/cmdline") as f:
            words = f.read().split("\0")
    except OSError:
        return None, 0
    name = " ".join([os.path.basename(words[0]), *[w for w in words[1:2] if w.isidentifier()]])
    return name, int(status.get("VmHWM", "0 kB").split()[0])


def watch(root, peaks, ended):
    gpu = subprocess.Popen(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-lms", "100"], stdout=subprocess.PIPE, text=True)

    def used():
        for line in gpu.stdout:
            peaks["GPU"] = max(peaks["GPU"], int(line) * 1024)

    reader = threading.Thread(target=used)
    reader.start()
    while not ended.wait(0.05):
        for pid in children(root):
            name, size = resident(pid)
            if name:
                peaks[name] = max(peaks[name], size)
    gpu.terminate()
    reader.join()


peaks, ended = collections.Counter(), threading.Event()
process = subprocess.Popen(sys.argv[1:])
watcher = threading.Thread(target=watch, args=(process.pid, peaks, ended))
watcher.start()
status = process.wait()
ended.set()
watcher.join()
for name, size in peaks.most_common():
    print(f"{size / 1024:9.0f} MiB  {name}")
sys.exit(status)
