# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""Open MPI in a step of a Slurm without PMIx."""

# Each task is the remote shell of its node: mpirun of the first one reaches the others through files, as Slurm has no
# PMIx here.  What it starts has the task's environment, as it would from srun --mpi=pmix.
TASK = r"""#!/bin/bash
dir=$1.$SLURM_JOB_ID
shift
me=$SLURM_PROCID
mkdir -p $dir
export TMPDIR=$dir/$me
mkdir $TMPDIR
export OCS_RAILS_TIMEOUT=60
unset ${!SLURM_JOB*} SLURM_NODELIST SLURM_NNODES SLURM_TASKS_PER_NODE
OWN
echo $own >$dir/own.$me; mv $dir/own.$me $dir/host.$me
if [ $me != 0 ]; then
    until [ -e $dir/command.$own ] || [ -e $dir/end ]; do sleep 0.02; done
    [ -e $dir/command.$own ] || exit 1
    unshare -u sh -c "hostname server$me; . $dir/command.$own"
    echo $? >$dir/status.$own.new; mv $dir/status.$own.new $dir/status.$own
    exit 0
fi
for ((i = 0; i < SLURM_NTASKS; i++)); do
    until [ -e $dir/host.$i ]; do sleep 0.02; done
    echo "$(cat $dir/host.$i) slots=1" >>$dir/hosts
done
cat >$dir/shell <<END
#!/bin/sh
host=\$1; shift
echo "\$*" >$dir/new.\$host; mv $dir/new.\$host $dir/command.\$host
until [ -e $dir/status.\$host ] || [ -e $dir/end ]; do sleep 0.05; done
END
chmod +x $dir/shell
unshare -u sh -c 'hostname server0; exec "$@"' sh mpirun --allow-run-as-root --leave-session-attached --hostfile $dir/hosts -np $SLURM_NTASKS --bind-to none --oversubscribe \
    --mca plm rsh --mca ras ^slurm --mca plm_rsh_agent $dir/shell --mca plm_rsh_no_tree_spawn 1 \
    --mca oob_tcp_if_include OOB --mca if_base_retain_loopback 1 --mca btl_tcp_if_include BTL \
    --mca btl tcp,self --mca pml ob1 --mca mpi_yield_when_idle 1 "$@"
rc=$?
touch $dir/end
exit $rc
"""

# MPI that comes with a module of Python, loaded at run time and privately.
LATE = r"""import ctypes, sys
words = [word.encode() for word in sys.argv]
sys.exit(ctypes.CDLL(sys.argv[1]).run(len(words) - 1, (ctypes.c_char_p * len(words))(*words[1:], None)))
"""


def mpi_task(own, oob, btl):
    """A script `task DIR PROGRAM ARGUMENT...`.  OWN: shell commands that set $own to an address of this node; OOB, BTL:
    devices or networks for mpirun itself and for its programs."""
    return TASK.replace("OWN\n", own + "\n").replace("OOB", oob).replace("BTL", btl)
