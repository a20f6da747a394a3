#!/usr/bin/env python3
"""The examples of the documentation run, and its notebooks, stored without outputs; the reference is fresh."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from package import ROOT, laid_out

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


class Documentation(unittest.TestCase):
    def test_the_pages_examples_run(self) -> None:
        # The second page continues with a recording of the first.
        texts = [(ROOT / page).read_text() for page in ("docs/tasks/python.md", "README.md")]
        blocks = [re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL) for text in texts]
        self.assertTrue(all(blocks))
        copy = 'import shutil\nshutil.copytree("runs/node00000.quell", "a.quell")\n'
        code = "\n".join(blocks[0]) + copy + "\n".join(blocks[1])
        self.assertIn("quell.predict", code)
        with laid_out(), tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(Path(folder, "curve.pdf").stat().st_size, 1000)

    def test_the_reference_is_fresh(self) -> None:
        made = subprocess.run(
            [sys.executable, ROOT / "tools/make_python.py", "--check"], capture_output=True, text=True, check=False
        )
        self.assertEqual((made.returncode, made.stderr), (0, ""))


class Notebooks(unittest.TestCase):
    def test_there_are_three(self) -> None:
        self.assertEqual(len(NOTEBOOKS), 3)

    def test_their_outputs_are_not_kept(self) -> None:
        for path in NOTEBOOKS:
            for cell in json.loads(path.read_text())["cells"]:
                self.assertFalse(cell.get("outputs"), path.name)
                self.assertIsNone(cell.get("execution_count"), path.name)

    def test_they_run_from_top_to_bottom(self) -> None:
        import nbformat
        from nbclient import NotebookClient

        for path in NOTEBOOKS:
            with self.subTest(notebook=path.name), laid_out(), tempfile.TemporaryDirectory() as folder:
                os.environ["IPYTHONDIR"] = folder
                notebook = nbformat.read(path, as_version=4)
                client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}})
                client.execute()
                pictures = [
                    out for cell in notebook.cells for out in cell.get("outputs", []) if "image/png" in str(out)
                ]
                self.assertTrue(pictures, "its plots are shown")


if __name__ == "__main__":
    unittest.main()
