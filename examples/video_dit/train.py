#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Distillation fine-tuning with sparse attention, from nothing to figures: trains a
small video transformer with dense attention on clips that it makes, then fine-tunes
copies with sparse attention, each against the frozen dense model (velocity
distillation, SpargeAttention2, arXiv 2602.13515):

    hybrid, top-k, top-p     the three rules of selection at the same density
    hybrid, flow matching    the same, with the plain loss in place of distillation
    hybrid, training-free    not fine-tuned

and compares all with the dense model on clips that none has seen.

    train.py [--tiny] [--seeds 3] [--steps 900] [-o FOLDER]

leaves results.md, results.json, losses.png and frames.png in the folder. --tiny is a
model for the CPU that shows that everything runs, and nothing about quality.
"""
import argparse
import copy
import json
import math
import os
import sys
import time

import torch
from attention_kinds import attention_error, density_of, make_configs, sparsely
from clips import make_clips, to_clips, to_tokens
from model import VideoTransformer

# frames, size, patch: 16 384 tokens, and 1024.
FULL = {"frames": 16, "size": 128, "patch": 4, "width": 512, "heads": 4, "depth": 6, "batch": 1, "density": 0.05,
        "mask_block": (128, 64), "steps": 900, "tuning_steps": 150, "clips": 16}
TINY = {"frames": 4, "size": 32, "patch": 2, "width": 64, "heads": 2, "depth": 2, "batch": 1, "density": 0.3,
        "mask_block": (64, 16), "steps": 20, "tuning_steps": 5, "clips": 2}


class Flow:
    """Batches of a rectified flow: x_t = (1 - t) x0 + t noise (docs/training.md)."""

    def __init__(self, settings, device, seed):
        self.settings, self.device = settings, device
        self.generator = torch.Generator(device).manual_seed(seed)

    def at(self, t):
        """(x_t, t, velocity) of new clips at these times."""
        s = self.settings
        x0 = to_tokens(make_clips(len(t), s["frames"], s["size"], self.generator, self.device), s["patch"])
        noise = torch.randn(x0.shape, generator=self.generator, device=self.device)
        noisy = (1 - t[:, None, None]) * x0 + t[:, None, None] * noise
        return noisy, t, noise - x0

    def batch(self):
        """At times whose logits are normal, as Wan and Stable Diffusion 3 are trained."""
        return self.at(torch.randn(self.settings["batch"], generator=self.generator, device=self.device).sigmoid())

    def held_out(self, count):
        """One clip each at the quantiles of these times: the velocity's error depends
        on the time far more than on the clip."""
        quantiles = (torch.arange(count, device=self.device) + 0.5) / count
        return [self.at(t[None]) for t in torch.special.ndtri(quantiles).sigmoid()]


def autocast(device):
    return torch.autocast(device, torch.bfloat16, enabled=device == "cuda")


def train(model, flow, steps, rate, title, teacher=None):
    """Adam on the flow-matching loss, or with a teacher on the difference from its
    velocities. Gives the losses."""
    optimiser = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.99), weight_decay=0.01)
    # Down to 0 at the end: with a batch of one, what noise moves would else exceed
    # what a few hundred steps of fine-tuning bring.
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda i: min(1, (i + 1) / (0.05 * steps)) * (0.5 + 0.5 * math.cos(math.pi * min(1, i / steps))))
    losses, begin = [], time.monotonic()
    for step in range(steps):
        noisy, t, velocity = flow.batch()
        with autocast(flow.device):
            if teacher is not None:
                with torch.no_grad():
                    velocity = teacher(noisy, t)
            loss = (model(noisy, t).float() - velocity.float()).square().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        losses.append(loss.detach())
        if step % 10 == 9 or step + 1 == steps:
            print(f"\r{title}: step {step + 1} of {steps}, loss {float(losses[-1]):.4f}, "
                  f"{time.monotonic() - begin:.0f} s ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return [float(loss) for loss in losses]


@torch.no_grad()
def velocity_error(model, teacher, batches, device):
    """Relative L2 of the velocities from the dense model's, over held-out batches."""
    error = norm = 0.0
    for noisy, t, _ in batches:
        with autocast(device):
            right, found = teacher(noisy, t).float(), model(noisy, t).float()
        error += float((found - right).square().sum())
        norm += float(right.square().sum())
    return (error / norm) ** 0.5


@torch.no_grad()
def sample(model, noise, steps, device):
    """Euler's method from noise to a clip."""
    x = noise
    for i in range(steps, 0, -1):
        with autocast(device):
            velocity = model(x, torch.full((x.shape[0],), i / steps, device=device))
        x = x - velocity.float() / steps
    return x


def run_seed(settings, device, seed):
    """Trains everything with one seed. Gives ({variant: figures}, {variant: losses},
    {variant: sampled clip})."""
    torch.manual_seed(seed)
    side = settings["size"] // settings["patch"]
    dense = VideoTransformer(3 * settings["patch"] ** 2, (settings["frames"], side, side), settings["width"],
                             settings["heads"], settings["depth"]).to(device)
    losses = {"dense": train(dense, Flow(settings, device, seed), settings["steps"], 5e-4, f"seed {seed}, dense")}
    dense.requires_grad_(False)
    held_out = Flow(settings, device, seed + 10 ** 6)
    batches = held_out.held_out(settings["clips"])
    noisy, t, _ = Flow(settings, device, seed + 2 * 10 ** 6).held_out(1)[0]
    with autocast(device):
        configs, inputs = make_configs(dense, noisy, t, settings["density"], settings["mask_block"])
    variants = {"hybrid": ("hybrid", dense), "top-k": ("top-k", dense), "top-p": ("top-p", dense),
                "hybrid, flow matching": ("hybrid", None), "hybrid, training-free": ("hybrid", False)}
    noise = torch.randn(batches[0][0].shape, generator=held_out.generator, device=device)
    results, pictures = {}, {"dense": sample(dense, noise, 20, device)}
    for name, (rule, teacher) in variants.items():
        model = copy.deepcopy(dense).requires_grad_()
        model.attend = sparsely(configs[rule])
        if teacher is not False:
            # The same clips for every variant.
            losses[name] = train(model, Flow(settings, device, seed + 1000), settings["tuning_steps"], 5e-5,
                                 f"seed {seed}, {name}", teacher)
        results[name] = {"velocity_error": velocity_error(model, dense, batches, device),
                         "attention_error": attention_error(configs[rule], inputs),
                         "density": density_of(configs[rule], inputs),
                         "by_rank": 0.0 if rule == "top-p" else configs[rule].top_k}
        pictures[name] = sample(model, noise, 20, device)
    return results, losses, pictures


def table(results):
    """Markdown: means over the seeds, and the range of the velocities' error."""
    lines = ["| variant | by rank | density | attention error | velocity error | range |", "|---|---|---|---|---|---|"]
    for name in results[0]:
        mean = {key: sum(seed[name][key] for seed in results) / len(results) for key in results[0][name]}
        errors = [seed[name]["velocity_error"] for seed in results]
        by_rank = ", ".join(f"{100 * k:.2g} %" for k in sorted({seed[name]["by_rank"] for seed in results}))
        lines.append(f"| {name} | {by_rank} | {100 * mean['density']:.1f} % | {mean['attention_error']:.3f} "
                     f"| {mean['velocity_error']:.4f} | {min(errors):.4f} to {max(errors):.4f} |")
    return "\n".join(lines)


def draw(folder, losses, pictures, settings):
    from matplotlib.figure import Figure
    figure = Figure(figsize=(9, 4), layout="constrained")
    for axes, names, title in zip(figure.subplots(1, 2), (["dense"], [name for name in losses if name != "dense"]),
                                  ("training, dense", "fine-tuning (flow matching has another loss)")):
        for name in names:
            axes.semilogy(losses[name], label=name, linewidth=0.8)
        axes.set(title=title, xlabel="step", ylabel="loss")
        axes.legend(fontsize="small")
    figure.savefig(os.path.join(folder, "losses.png"))
    shown = range(0, settings["frames"], max(1, settings["frames"] // 4))
    figure = Figure(figsize=(1.6 * len(shown), 1.7 * len(pictures)), layout="constrained")
    for row, (name, tokens) in zip(figure.subplots(len(pictures), len(shown), squeeze=False), pictures.items()):
        clip = to_clips(tokens[:1], settings["frames"], settings["size"], settings["patch"])[0]
        for axes, frame in zip(row, shown):
            axes.imshow((clip[frame] / 2 + 0.5).clamp(0, 1).permute(1, 2, 0).cpu().numpy())
            axes.set_axis_off()
        row[0].set_title(name, fontsize="small", loc="left")
    figure.savefig(os.path.join(folder, "frames.png"), dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="a model for the CPU")
    parser.add_argument("--seeds", type=int, default=1, help="how many times all of it is done (default 1)")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, help="of training with dense attention; a sixth of them each fine-tuning")
    parser.add_argument("-o", "--output", default="video_dit_results", help="folder for the results")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() and not args.tiny else "cpu"
    settings = dict(TINY if args.tiny else FULL)
    if args.steps is not None:
        settings.update(steps=args.steps, tuning_steps=max(1, args.steps // 6))
    os.makedirs(args.output, exist_ok=True)
    results, begin = [], time.monotonic()
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        figures, losses, pictures = run_seed(settings, device, seed)
        results.append(figures)
    text = table(results)
    print(f"{text}\n\n{args.seeds} seeds from {args.first_seed}, {time.monotonic() - begin:.0f} s on {device}")
    with open(os.path.join(args.output, "results.md"), "w", encoding="utf-8") as file:
        file.write(text + "\n")
    with open(os.path.join(args.output, "results.json"), "w", encoding="utf-8") as file:
        json.dump({"settings": settings, "results": results, "losses": losses}, file, indent=1)
    try:
        draw(args.output, losses, pictures, settings)
    except ImportError:
        print("no pictures: matplotlib is not installed", file=sys.stderr)


if __name__ == "__main__":
    main()
