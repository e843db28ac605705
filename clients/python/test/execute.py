"""Executes a notebook in the folder of the result: execute.py NOTEBOOK RESULT."""

import os
import sys

import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=120, kernel_name="python3").execute(cwd=os.path.dirname(sys.argv[2]))
nbformat.write(notebook, sys.argv[2])
