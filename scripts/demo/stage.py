# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""What the demos share: the throwaway cluster of the tests, and how they speak."""

import os
import shutil
import signal
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "tests", "slurm"))

from cluster import Cluster, ClusterError  # noqa: E402


def title(text):
    print("\n\033[1m== %s\033[0m" % text if sys.stdout.isatty() else "\n== " + text, flush=True)


def show(cluster, line, head=0):
    """Runs a command as the user would and shows it with its output."""
    print("$ " + line)
    text = cluster.out(line, env={"OCS_CONF": cluster.yaml})
    lines = text.rstrip("\n").split("\n")
    print("\n".join(lines[:head] if head else lines))
    if head and len(lines) > head:
        print("... (%d more lines)" % (len(lines) - head))
    sys.stdout.flush()


def leave(_signum, _frame):
    raise KeyboardInterrupt


def run(opening, tell, then=None, kind=Cluster, end="'./demo --keep' opens a shell in it", **options):
    """Starts a cluster of KIND with OPTIONS under the title OPENING, has TELL and THEN (or None) use
    it, and leaves nothing behind.  Returns the exit status."""
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, leave)
    directory = tempfile.mkdtemp(prefix="ocs-demo-")
    cluster = kind(directory, os.environ["OCS_STAGE"], os.environ["OCS_SLURM"], **options)
    status = 0
    try:
        title(opening)
        cluster.start()
        show(cluster, "sinfo")
        tell(cluster)
        if then:
            then(cluster)
    except ClusterError as error:
        print("demo: %s" % error, file=sys.stderr)
        status = 1
    except KeyboardInterrupt:
        status = 130
    finally:
        cluster.stop()
        if status == 1:
            print("demo: the logs are in %s" % directory, file=sys.stderr)
        else:
            shutil.rmtree(directory, ignore_errors=True)
        if not status:
            title("Everything has been stopped and removed" + ("; " + end if end else ""))
    return status
