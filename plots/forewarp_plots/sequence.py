"""Launches one after another: when the host calls, when each kernel runs, and what lies between.

The host works ahead of the GPU: it queues a launch every `call` microseconds and does not wait. A kernel begins when it
has been queued and when the one before it has ended and handed over, never sooner than the machine can start launches. The
intervals are of the machine, in its YAML file: stream_gap_us and graph_gap_us are the least times from start to start,
hand_over_us lies between the end of a kernel, as a profiler counts it, and the next. A graph is queued by one call.
"""
from .results import InputError

MODES = ("stream", "graph")


class Step:
    def __init__(self, launch, call_from, call_to, begin, end):
        self.launch, self.call_from, self.call_to, self.begin, self.end = launch, call_from, call_to, begin, end


class Sequence:
    def __init__(self, name, mode, steps):
        self.name, self.mode, self.steps = name, mode, steps

    @property
    def total(self):
        return self.steps[-1].end

    @property
    def busy(self):
        return sum(s.end - s.begin for s in self.steps)

    @property
    def utilization_pct(self):
        return 100 * self.busy / self.total


def arrange(name, launches, mode="stream"):
    """The launches, all of one GPU, on one clock of microseconds that starts with the host's first call."""
    machine = launches[0].machine
    key = f"{mode}_gap_us"
    for needed in (key, "hand_over_us"):
        if needed not in machine:
            raise InputError(f"{launches[0].path}: its machine holds no {needed}", "predict it again with this forewarp")
    least = machine[key]
    hand_over = machine["hand_over_us"]
    call = machine["stream_gap_us"]
    steps = []
    for index, launch in enumerate(launches):
        call_from = 0.0 if mode == "graph" else index * call
        call_to = call_from + call
        begin = call_to
        if steps:
            begin = max(begin, steps[-1].end + hand_over, steps[-1].begin + least)
        steps.append(Step(launch, call_from, call_to, begin, begin + launch.nanoseconds / 1e3))
    return Sequence(name, mode, steps)


def group(launches):
    """Launches of one case belong together, in order; cases that follow one another stay apart."""
    groups = {}
    for launch in launches:
        groups.setdefault((launch.gpu, launch.id), []).append(launch)
    return list(groups.values())
