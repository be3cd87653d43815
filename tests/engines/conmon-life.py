#!/usr/bin/env python3
"""conmon-life.py INIT CONMON: kills the process INIT and prints the milliseconds from its end until the process CONMON
ends or becomes another program (conmon executes podman's clean-up in its own process)."""
import os
import select
import signal
import sys
import time

init, conmon = int(sys.argv[1]), int(sys.argv[2])


def still_conmon():
    try:
        with open(f"/proc/{conmon}/comm") as file:
            if file.read().strip() != "conmon":
                return False
        with open(f"/proc/{conmon}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


if not still_conmon():
    sys.exit("process %d is no conmon" % conmon)
poller = select.poll()
pidfd = os.pidfd_open(init)
poller.register(pidfd, select.POLLIN)
signal.pidfd_send_signal(pidfd, signal.SIGKILL)
if not poller.poll(20000):
    sys.exit("process %d does not end" % init)
end = time.monotonic()
while still_conmon():
    if time.monotonic() - end > 20:
        sys.exit("conmon does not end")
    time.sleep(0.001)
print(round((time.monotonic() - end) * 1000))
