# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
"""A slurmdbd with a private MariaDB for a cluster of the tests."""

import glob
import os
import shutil

from cluster import ClusterError, tail

CONF = """AuthType={auth}
DbdHost=localhost
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StorageUser=slurm
{password}LogFile={log}
PidFile={pid}
PluginDir={plugins}
"""


def sql(name):
    found = glob.glob("/usr/share/m*/m*_" + name)       # mysql or mariadb, by version
    if not found:
        raise ClusterError("no MariaDB server here; scripts/deps installs it")
    with open(found[0]) as handle:
        return handle.read()


def lacking(slurm):
    """Why the Slurm in this folder has no database here; "" if it has one."""
    if not os.path.exists(slurm + "/lib/slurm/accounting_storage_mysql.so"):
        return "this Slurm was built without MariaDB"
    try:
        sql("system_tables.sql")
    except ClusterError as error:
        return str(error)
    return ""


class Database:
    """To be mixed into a Cluster whose slurm.conf names accounting_storage/slurmdbd."""

    password = "secret"
    dbd_auth = "auth/slurm"

    def start_mariadb(self):
        data = self.path("db")
        os.makedirs(data)
        shutil.chown(data, "nobody")
        first = "\n".join(["create database mysql;", "use mysql;", "set @auth_root_socket=NULL;",
                           sql("system_tables.sql"), sql("system_tables_data.sql"),
                           "flush privileges;", "create user slurm@localhost identified by '%s';" % self.password,
                           "grant all on *.* to slurm@localhost;", ""])
        server = ["mariadbd", "--no-defaults", "--datadir=" + data, "--innodb-log-file-size=4M",
                  "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0"]
        self.run(server + ["--bootstrap"], stdin=first, user="nobody")
        self.spawn(server + ["--bind-address=127.0.0.1", "--port=3306", "--skip-name-resolve=0",
                             "--socket=%s/socket" % data], self.path("mariadb.log"), user="nobody")
        self.write("etc/slurmdbd.conf", CONF.format(
            auth=self.dbd_auth, log=self.path("slurmdbd.log"), pid=self.path("slurmdbd.pid"),
            password="StoragePass=%s\n" % self.password if self.password else "",
            plugins=self.slurm + "/lib/slurm"), 0o600)

    def start_database(self):
        self.start_mariadb()
        self.spawn(["slurmdbd", "-D"], self.path("slurmdbd.err"))
        self.until(lambda: self.run(["sacctmgr", "-i", "add", "cluster", "ocs"],
                                    check=False).returncode == 0, 60,
                   lambda: "slurmdbd:\n" + tail(self.path("slurmdbd.log")) +
                   tail(self.path("slurmdbd.err")) + tail(self.path("mariadb.log")))

    def start_slurmctld(self):
        if not os.path.exists(self.path("db")):
            self.start_database()
        super().start_slurmctld()
