"""What metrics mean: as `forewarp describe metrics` says it, which names families as l1tex__t_sectors_lookup_<hit|miss>.sum."""
import re
import subprocess

# What a warp in each state waits for, as Nsight Compute has the states.
_STATES = {
    "selected": "its instruction was issued in this cycle",
    "not_selected": "ready, but another warp of the sub-partition was chosen",
    "wait": "the fixed latency that the compiler wrote into the instruction before",
    "dispatch_stall": "the dispatcher, held up by register ports or conflicts",
    "math_pipe_throttle": "its arithmetic pipe, busy with another instruction",
    "short_scoreboard": "a result from shared memory or the transcendental unit",
    "mio_throttle": "room in the queue to shared memory and special units",
    "long_scoreboard": "data from global, local or texture memory",
    "lg_throttle": "room in the queue to global and local memory",
    "tex_throttle": "room in the queue to the texture unit",
    "barrier": "the other warps of its block at a barrier",
    "membar": "a memory fence",
    "branch_resolving": "the target of a branch",
    "no_instruction": "instructions, which are being fetched",
    "imc_miss": "a constant, which is being fetched",
    "drain": "its last stores, before it ends",
    "sleeping": "the end of a sleep",
    "misc": "something else",
    "gmma": "a tensor-core operation on shared memory",
}
_STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_ENDINGS = ((".avg.pct_of_peak_sustained_elapsed", "%", "how busy, of its peak over all cycles"),
            (".pct_of_peak_sustained_active", "%", "how busy, of its peak while active"),
            (".sum.per_cycle_elapsed", "/cycle", "a cycle of the launch, over the GPU"),
            (".sum.per_second", "/s", "a second"), (".avg.per_second", "/s", "a second, mean over units"),
            (".sum.peak_sustained", "/cycle", "the most the GPU does in a cycle"))


def _pattern(name):
    parts = re.split(r"(<[^>]*>)", name)
    return "".join(f"(?:{p[1:-1]})" if p.startswith("<") and "|" in p else r"\w[\w.]*" if p.startswith("<") else re.escape(p)
                   for p in parts)


class Meanings:
    """Empty when it is not told where `forewarp` is."""

    def __init__(self, forewarp=None):
        self.exact, self.families = {}, []
        if not forewarp:
            return
        done = subprocess.run([forewarp, "describe", "metrics"], capture_output=True, text=True, check=False)
        self.read(done.stdout.splitlines())

    def read(self, lines):
        """The table's columns begin where their heads do."""
        if not lines or "meaning" not in lines[0]:
            return
        unit_at, from_at, meaning_at = (lines[0].index(word) for word in ("unit", "from", "meaning"))
        for line in lines[2:]:
            unit, meaning = line[unit_at:from_at].strip(), line[meaning_at:].strip()
            for name in line[:unit_at].strip().split(", ") if meaning else ():
                if "<" in name:
                    self.families.append((re.compile(_pattern(name)), unit, meaning))
                else:
                    self.exact[name] = (unit, meaning)

    def of(self, name):
        """(unit, meaning); empty texts for what nobody describes."""
        stall = _STALL.fullmatch(name)
        if stall and stall[1] in _STATES:
            return "", "warps for each issuing cycle that wait for: " * (stall[1] not in ("selected", "not_selected")) + _STATES[stall[1]]
        if name in self.exact:
            return self.exact[name]
        for pattern, unit, meaning in self.families:
            if pattern.fullmatch(name):
                return unit, meaning
        for ending, unit, meaning in _ENDINGS:
            if name.endswith(ending):
                return unit, meaning
        return "", ""
