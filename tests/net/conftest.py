# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) 2026 The slurm-ocs authors
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import netlab


@pytest.fixture(scope="session")
def bins():
    stage = os.environ.get("OCS_STAGE")
    if not stage:
        pytest.skip("OCS_STAGE does not name an installed slurm-ocs")
    why = netlab.possible()
    if why:
        pytest.skip(why)
    return pathlib.Path(stage) / "bin"


@pytest.fixture
def lab(bins, tmp_path):
    """Makes networks, and takes them away at the end."""
    made = []

    def make(servers, degree, *options):
        made.append(netlab.Net(bins, tmp_path, servers, degree, *options))
        return made[-1]

    yield make
    for net in made:
        net.close()
