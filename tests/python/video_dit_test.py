# SPDX-License-Identifier: Apache-2.0
"""examples/video_dit in its tiny form, from nothing to the figures. Skipped where
PyTorch is not installed.
"""
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

if importlib.util.find_spec("torch") is None:
    print("skipped: PyTorch is not installed")
    sys.exit(77)
EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "video_dit")


class VideoDitTest(unittest.TestCase):
    def test_tiny(self):
        seed = int.from_bytes(os.urandom(2), "little")
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([sys.executable, "-B", os.path.join(EXAMPLE, "train.py"), "--tiny", "--first-seed",
                                  str(seed), "-o", folder], text=True, capture_output=True, check=False)
            self.assertEqual(run.returncode, 0, f"seed {seed}: {run.stderr}")
            with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
                found = json.load(file)
            figures = found["results"][0]
            self.assertEqual(len(figures), 5)
            for name, row in figures.items():
                with self.subTest(name, seed=seed):
                    self.assertTrue(0.2 < row["density"] < 0.31, row)
                    self.assertTrue(0 < row["attention_error"] < 1, row)
                    self.assertTrue(0 < row["velocity_error"] < 0.5, row)
            for name, losses in found["losses"].items():
                self.assertTrue(all(math.isfinite(loss) for loss in losses), name)
            self.assertLess(found["losses"]["dense"][-1], found["losses"]["dense"][0])
            self.assertIn("| hybrid, training-free |", run.stdout)
            pictures = {"losses.png", "frames.png"}
            if importlib.util.find_spec("matplotlib"):
                self.assertLessEqual(pictures, set(os.listdir(folder)))


class PartsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, EXAMPLE)

    def test_tokens_and_back(self):
        import torch
        from clips import make_clips, to_clips, to_tokens
        clips = make_clips(2, 3, 16, torch.Generator().manual_seed(int.from_bytes(os.urandom(2), "little")), "cpu")
        self.assertLessEqual(float(clips.abs().max()), 1)
        tokens = to_tokens(clips, 4)
        self.assertEqual(tokens.shape, (2, 48, 48))
        torch.testing.assert_close(to_clips(tokens, 3, 16, 4), clips, rtol=0, atol=0)
        torch.testing.assert_close(tokens[1, 16 + 5, 3:6], torch.cat([clips[1, 1, 0, 4, 7:8], clips[1, 1, 0, 5, 4:6]]))

    def test_rotation_depends_on_distances_alone(self):
        import torch
        from model import rotary_embedding, rotate
        rotation = rotary_embedding((2, 4, 4), 32, "cpu")
        q, k = torch.randn(32), torch.randn(32)
        dots = rotate(q.expand(1, 1, 32, 32), rotation)[0, 0] @ rotate(k.expand(1, 1, 32, 32), rotation)[0, 0].mT
        # One row of tokens further down, the same dot product.
        torch.testing.assert_close(dots[0, 5], dots[4, 9])
        torch.testing.assert_close(dots[1, 18], dots[9, 26])
        self.assertGreater(float((dots[0, 1] - dots[0, 2]).abs()), 1e-4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
