"""Builds a wheel that contains libvolsfu. scripts/wheel.sh puts the library beside the modules."""

import os

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel


class PlatformWheel(bdist_wheel):
    """A wheel for any Python of one platform: the library is native, and the modules use no C API of Python."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(version=os.environ.get("VOLSFU_VERSION", "0+unknown"), cmdclass={"bdist_wheel": PlatformWheel})
