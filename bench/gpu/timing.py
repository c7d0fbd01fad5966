# SPDX-License-Identifier: Apache-2.0
"""Times of launches by events, of several functions in turns."""
import statistics
import time

import torch


def time_launches(run, count):
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2 * count)]
    for i in range(count):
        events[2 * i].record()
        run()
        events[2 * i + 1].record()
    torch.cuda.synchronize()
    return [events[2 * i].elapsed_time(events[2 * i + 1]) for i in range(count)]


def time_row(run, count):
    """Milliseconds a launch of `count` in a row."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / count


def time_in_turns(runs, seconds):
    """{name: (short, sustained, in a row)} in milliseconds, the first two each the
    median of at least 20 launches, the last of rows of as many launches as bursts. Each
    round begins with another one."""
    estimate = {name: statistics.median(time_launches(run, 3)) for name, run in runs.items()}
    short = {name: [] for name in runs}
    rows = {name: [] for name in runs}
    rounds = 5
    names = list(runs)
    for i in range(rounds):
        # None always comes behind the same other one, whose power and memory it may feel.
        first = i % len(names)
        for name in names[first:] + names[:first]:
            run = runs[name]
            time.sleep(0.05)
            burst = max(4, min(20, int(4 / estimate[name]))) if estimate[name] < 20 else 4
            short[name] += time_launches(run, burst)
            time.sleep(0.05)
            rows[name].append(time_row(run, burst))
    sustained = {}
    for name, run in runs.items():
        launches = max(20, int(1000 * seconds / estimate[name]))
        times = time_launches(run, launches)
        sustained[name] = statistics.median(times[-max(20, launches // 4):])
    return {name: (statistics.median(short[name]), sustained[name], statistics.median(rows[name]))
            for name in runs}


def graph_of(run):
    """A launch of the run's captured graph."""
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        run(stream)
    return graph.replay
