# Copyright Spack Project Developers. See COPYRIGHT file for details.
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyPysmpi(PythonPackage):
    """pysmpi runs unmodified mpi4py programs on a simulated machine: the ranks are greenlets of
    one process, under a virtual clock."""

    homepage = "https://github.com/pysmpi/pysmpi"
    git = "https://github.com/pysmpi/pysmpi.git"

    license("MIT", checked_by="pysmpi")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("plots", default=False, description="Plots of sweeps and calibrations")
    variant("sweep", default=False, description="Sweeps and searches on several processors")

    depends_on("c", type="build")
    depends_on("python@3.11:3.14", type=("build", "run"))
    depends_on("py-setuptools@77:", type="build")
    depends_on("py-mypy@1.18:", type="build")

    depends_on("py-click@8.1:", type=("build", "run"))
    depends_on("py-greenlet@3.1:3", type=("build", "run"))
    depends_on("py-lxml@5:", type=("build", "run"))
    depends_on("py-mpi4py@4.1", type=("build", "run"))
    depends_on("py-mypy-extensions@1.0:", type=("build", "run"))
    depends_on("py-networkx@3:", type=("build", "run"))
    depends_on("py-numpy@1.26:2", type=("build", "run"))
    depends_on("py-pyyaml@6:", type=("build", "run"))

    depends_on("py-matplotlib@3.8:", type="run", when="+plots")
    depends_on("py-distributed@2024.1:", type="run", when="+sweep")
