#!/usr/bin/env python3
"""Keeps the documents true: pages that are generated, and pages whose commands are run.

  docs/build.py update [--forewarp PROGRAM]     writes generated pages, outputs and pictures anew
  docs/build.py check  [--forewarp PROGRAM]     says what is not as it would be written; exit code 1 if anything is
  docs/build.py site   [--out FOLDER]           the documents as a web site, by MkDocs (python -m pip install mkdocs)
  docs/build.py man    [--out FOLDER]           a manual page of each command, for man -M FOLDER forewarp-predict

A page whose commands are run has its commands in ```sh blocks and what they print in the ```text block that follows, if one does.
They run in one folder, with the project's traces in it and the program on the PATH.
"""
import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import manual

DOCS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(DOCS)
RUN = ("tutorial.md",)  # pages whose commands are run
PICTURES = "pictures"
_BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.S | re.M)
_NOTE = "<!-- Written by docs/build.py. -->\n\n"

# What the parts of a result are, by their path; [] stands for an entry of a list and * for any key.
_MEANINGS = {
    "forewarp": "the version that wrote it", "gpu": "the GPU's name", "cases": "one entry a launch",
    "machine": "facts of the GPU that pictures need", "machine.roofs": "the most that each type of number reaches, at `clock_mhz`",
    "machine.numbers": "how many numbers of the GPU's model come from where",
    "inputs": "what it was predicted from: `forewarp advise` predicts it again, if nothing has changed; not in results of `simulate`",
    "inputs.command": "`predict` or `sketch`", "inputs.image": "with a hash of its code", "inputs.launch": "with a hash of its text",
    "inputs.sketch": "in place of image and launch", "inputs.data": "files that fill buffers", "inputs.gpu": "name or file, with a hash of its numbers",
    "inputs.options": "of the command",
    "cases[].id": "case of the launch file", "cases[].launch": "which launch of the case, from 0", "cases[].kernel": "demangled name",
    "cases[].metrics": "Nsight Compute's names, units and meanings; see [metrics](metrics.md)",
    "cases[].coverage": "what was simulated and what was extrapolated from it",
    "cases[].coverage.cycles_interval_95": "95 % confidence interval of the cycles",
    "cases[].coverage.counters_exact": "whether every block was followed or counted",
    "cases[].warnings": "what is not modelled or was assumed", "cases[].cache": "state of the caches before the launch",
    "cases[].bottleneck": "what bounds the launch, and why", "cases[].occupancy": "resident blocks, and what limits them",
    "cases[].occupancy.choices": "warps on an SM if one number were another",
    "cases[].roofline": "position under the roofs", "cases[].roofline.work": "operations by type of number, and that type's roof",
    "cases[].roofline.levels": "bytes, rate and roof of L1, L2 and HBM",
    "cases[].compute_throughput": "how busy each unit is, of what it can sustain", "cases[].memory_throughput": "the same of memory's units",
    "cases[].waves": "waves of blocks and their tail", "cases[].stalls": "what resident warps do",
    "cases[].accounting": "where the time goes: causes that add up; see [verdicts](verdicts.md)",
    "cases[].accounting.simulated": "sizes are from simulating again, not from the counters of the one run",
    "cases[].accounting.causes": "largest first", "cases[].accounting.causes[].gain_cycles": "saved without this cause alone",
    "cases[].accounting.causes[].place": "the instruction to look at",
    "cases[].accounting.causes[].waits": "the instruction that waits for it",
    "cases[].findings": "what could be better, why, and what it would save",
    "cases[].hot_spots": "instructions at which warps spend most time", "cases[].memory": "memory instructions over the grid",
    "cases[].memory[].sectors_needed": "sectors that would hold the bytes asked for",
    "cases[].divergence": "active lanes and branches", "cases[].instructions": "every executed instruction",
    "cases[].instructions[].warp_cycles": "time that warps spend before its issue, by state",
    "cases[].access_examples": "a typical warp's addresses, from a line boundary; null: the lane does not take part",
    "cases[].warp_stream": "what one warp executes, until it grows long", "cases[].block_spans": "when blocks were resident on which SM",
    "cases[].block_spans.extrapolated": "times that were not simulated",
    "cases[].warp_timeline": "what the warps of a watched block did (`--warps BLOCK`), cycles from its start; see [a timeline of warps](warps.md)",
    "cases[].warp_timeline.began": "when that was in the launch", "cases[].warp_timeline.full": "it ended early since it was full",
    "cases[].warp_timeline.left_out": "after which cycle how many were not simulated",
    "cases[].warp_timeline.sentence": "the wait that binds", "cases[].warp_timeline.shares_from": "of which cycles on shares are",
    "cases[].warp_timeline.rings": "barriers that one instruction waits for in turn",
    "cases[].warp_timeline.rings[].late_cycles": "of the warp that waits least, in the mean", "cases[].warp_timeline.rings[].copy_cycles": "from the first copy of a phase to its end",
    "cases[].warp_timeline.states": "names of the numbers in `warps[].state`",
    "cases[].warp_timeline.warps[].from": "each stretch lasts until the next begins, the last one until `to`",
    "cases[].warp_timeline.warps[].waits_for": "what stretches wait for: an instruction's result, a barrier and its phase",
    "cases[].warp_timeline.products": "of a warpgroup's warp, group by group", "cases[].warp_timeline.copies": "bulk copies",
    "cases[].block_spans.residency": "resident blocks of all SMs over time, where there are too many for one each",
}


class Tool:
    def __init__(self, forewarp):
        self.forewarp = os.path.abspath(forewarp)
        self.environment = dict(os.environ, FOREWARP_HOME=ROOT, LC_ALL="C",
                                PATH=os.path.dirname(self.forewarp) + os.pathsep + os.environ["PATH"])

    def say(self, *words):
        done = subprocess.run([self.forewarp, *words], capture_output=True, text=True, check=False, env=self.environment, cwd=ROOT)
        if done.returncode != 0:
            sys.exit(f"build.py: forewarp {' '.join(words)}: exit {done.returncode}\n{done.stderr}")
        return done.stdout


def commands_page(tool):
    listing = tool.say("--help")
    names = re.findall(r"^  (\w+) +\S", listing, re.M)
    parts = [_NOTE + "# Commands\n\n```text\n" + listing + "```\n"]
    for name in names:
        parts.append(f"\n## {name}\n\n```text\n{tool.say(name, '--help')}```\n")
    return "".join(parts)


def metrics_page(tool):
    metrics = json.loads(tool.say("describe", "metrics", "--json", "-"))["metrics"]
    lines = [_NOTE + "# Metrics\n", "Names, units and meanings are Nsight Compute's; what forewarp adds is under `forewarp__`. *Counted* metrics follow",
             "exactly from what the warps execute, *timed* ones from the model.\n", "| metric | unit | | meaning |", "|---|---|---|---|"]
    for m in metrics:
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in (f"`{m['name']}`", m["unit"], m["from"], m["meaning"])) + " |")
    return "\n".join(lines) + "\n"


def schema_of(values):
    """A schema that fits all of the values: maps with many keys of one kind are taken as such."""
    types = {"object" if isinstance(v, dict) else "array" if isinstance(v, list) else "null" if v is None else "boolean" if isinstance(v, bool)
             else "number" if isinstance(v, (int, float)) else "string" for v in values}
    schema = {"type": sorted(types)[0] if len(types) == 1 else sorted(types)}
    maps = [v for v in values if isinstance(v, dict)]
    if maps:
        keys = list(dict.fromkeys(key for one in maps for key in one))
        numbers = all(isinstance(item, (int, float)) and not isinstance(item, bool) for one in maps for item in one.values())
        if numbers and (len(keys) > 20 or any(set(one) != set(keys) for one in maps)):
            schema["additionalProperties"] = {"type": "number"}
        else:
            schema["properties"] = {key: schema_of([one[key] for one in maps if key in one]) for key in keys}
            schema["required"] = [key for key in keys if all(key in one for one in maps)]
            schema["additionalProperties"] = False
    items = [item for v in values if isinstance(v, list) for item in v]
    if items:
        schema["items"] = schema_of(items)
    return schema


def faults(schema, value, at="result"):
    """What of a value does not fit a schema of the kind that schema_of makes."""
    accepted = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    fits = {"object": dict, "array": list, "string": str, "boolean": bool, "number": (int, float), "null": type(None)}
    if not any(isinstance(value, fits[one]) and not (one == "number" and isinstance(value, bool)) for one in accepted):
        return [f"{at} is no {' or '.join(accepted)}"]
    found = []
    if isinstance(value, dict):
        more = schema.get("additionalProperties", True)
        found += [f"{at} lacks {key}" for key in schema.get("required", ()) if key not in value]
        for key, item in value.items():
            if key in schema.get("properties", {}):
                found += faults(schema["properties"][key], item, f"{at}.{key}")
            elif more is False:
                found.append(f"{at}.{key} is not in the schema")
            elif isinstance(more, dict):
                found += faults(more, item, f"{at}.{key}")
    if isinstance(value, list) and "items" in schema:
        found += [fault for index, item in enumerate(value) for fault in faults(schema["items"], item, f"{at}[{index}]")]
    return found


# Small launches that between them hold every part of a result.
_SAMPLES = (("matmul_03_shared_tiled", "sgemm_shared_tiled_check_64"), ("divergence_01_branch_ways", "divergence_by_lane_2_check_1000"),
            ("matmul_12_tensor", "tensor_f16_check_64x64x64"), ("elementwise_04_relu", "relu_f32_1mi"),
            ("reduce_02_layer_norm_rows", "layer_norm_rows_1024x768"), ("faults_01_memory", "fault_column_store"),
            ("copy_01_row_column", "copy_along_rows_1024", "--budget", "0.1"))


def sample_results(tool):
    for stem, case, *more in _SAMPLES:
        yield json.loads(tool.say("predict", f"traces/sm_90/{stem}.cubin", "--launch", f"traces/{stem}.yaml", "--gpu", "h200-sxm", "--case", case,
                                  *more, "--json", "-"))
    yield json.loads(tool.say("predict", "traces/sm_90/matmul_24_cluster_multicast.cubin", "--launch", "traces/matmul_24_cluster_multicast.yaml", "--gpu",
                              "h200-sxm", "--case", "multicast_bf16_check_136x264x104", "--warps", "0", "--json", "-"))
    yield json.loads(tool.say("sketch", "docs/examples/fusion.yaml", "--gpu", "h200-sxm", "--case", "relu_f16", "--json", "-"))


def described(schema, path=""):
    if path in _MEANINGS:
        schema = {"description": _MEANINGS[path]} | schema
    schema = dict(schema)
    if "properties" in schema:
        schema["properties"] = {key: described(item, f"{path}.{key}".lstrip(".")) for key, item in schema["properties"].items()}
    if "items" in schema:
        schema["items"] = described(schema["items"], path + "[]")
    return schema


def result_pages(tool):
    results = list(sample_results(tool))
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Result of forewarp predict --json"} | described(schema_of(results))
    lines = [_NOTE + "# The result\n", "`forewarp predict --json FILE` writes it. Times are nanoseconds, sizes bytes, unless a name says otherwise.",
             "[result.schema.json](result.schema.json) is the same as a JSON Schema; `forewarp compare` and `predict` with several GPUs hold a list",
             "`gpus` of such results.\n", "| part | | |", "|---|---|---|"]

    def rows(part, path):
        for key, item in part.get("properties", {}).items():
            here = f"{path}.{key}".lstrip(".")
            kind = item["type"] if isinstance(item["type"], str) else " or ".join(item["type"])
            optional = "" if key in part["required"] else ", where there is one"
            lines.append(f"| `{here}` | {kind}{optional} | {item.get('description', '')} |")
            inner = item
            while "items" in inner:
                inner, here = inner["items"], here + "[]"
            rows(inner, here)
    rows(schema, "")
    return {"result.md": "\n".join(lines) + "\n", "result.schema.json": json.dumps(schema, indent=1) + "\n"}, \
        [fault for result in results for fault in faults(schema, result)]


def run_page(tool, page, pictures):
    """The page with what its commands print now; the pictures they draw, by name."""
    with open(os.path.join(DOCS, page), encoding="utf-8") as file:
        text = file.read()
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(ROOT, "traces"), os.path.join(folder, "traces"))
        os.makedirs(os.path.join(folder, PICTURES))

        def run(match):
            done = subprocess.run(["bash", "-ec", match[1]], cwd=folder, capture_output=True, text=True, check=False, env=tool.environment)
            if done.returncode != 0:
                sys.exit(f"build.py: {page}: exit {done.returncode} of\n{match[1]}{done.stderr}")
            shown = "" if match[2] is None else "\n```text\n" + done.stdout + "```\n"
            return f"```sh\n{match[1]}```\n{shown}"
        text = _BLOCK.sub(run, text)
        for name in sorted(os.listdir(os.path.join(folder, PICTURES))):
            with open(os.path.join(folder, PICTURES, name), encoding="utf-8") as file:
                pictures[f"{PICTURES}/{name}"] = file.read()
    return text


def made(tool):
    pages, wrong = result_pages(tool)
    pages |= {"commands.md": commands_page(tool), "metrics.md": metrics_page(tool)}
    for page in RUN:
        pages[page] = run_page(tool, page, pages)
    return pages, wrong


def links():
    """Links of the documents that lead nowhere."""
    for name in sorted(os.listdir(DOCS)):
        if not name.endswith(".md"):
            continue
        with open(os.path.join(DOCS, name), encoding="utf-8") as file:
            for target in re.findall(r"\]\(([^)#\s]+)", file.read()):
                if "://" not in target and not os.path.exists(os.path.join(DOCS, target)):
                    yield f"{name} names {target}, which is not there"


# Pages from elsewhere that the site has, too.
COPIED = (("plots/README.md", "gallery.md"), ("plots/SKETCHES.md", "gallery_sketches.md"), ("validation/README.md", "validation.md"),
          ("hwmodels/README.md", "models.md"))


def site(out):
    """Links out of docs/ lead to the same files in the site's copy."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(DOCS, os.path.join(folder, "docs"), ignore=shutil.ignore_patterns("*.py", "mkdocs.yml", "site"))
        for path, name in COPIED:
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                text = re.sub(r"\]\((?!gallery/|https?:|#)[^)]*\)", "]", file.read()).replace("](gallery/", "](pictures/")
            with open(os.path.join(folder, "docs", name), "w", encoding="utf-8") as file:
                file.write(text)
        gallery = os.path.join(ROOT, "plots", "gallery")
        for name in os.listdir(gallery):
            if name.endswith(".svg"):
                shutil.copy(os.path.join(gallery, name), os.path.join(folder, "docs", PICTURES))
        for name in os.listdir(os.path.join(folder, "docs")):
            path = os.path.join(folder, "docs", name)
            if name.endswith(".md"):
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                for old, new in COPIED:
                    text = text.replace("../" + old, new)
                text = re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", text)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
        shutil.copy(os.path.join(DOCS, "mkdocs.yml"), folder)
        return subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", os.path.join(folder, "mkdocs.yml"),
                               "--site-dir", os.path.abspath(out)], check=False).returncode


def man(tool, out):
    folder = os.path.join(out, "man1")
    os.makedirs(folder, exist_ok=True)
    pages = manual.pages(tool.say)
    for name, text in pages.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    print(f"{len(pages)} pages in {os.path.relpath(folder)}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("update", "check", "site", "man"))
    parser.add_argument("--forewarp", default=os.path.join(ROOT, "build", "release", "forewarp"))
    parser.add_argument("--out", help="default: build/site or build/man")
    options = parser.parse_args()
    out = options.out or os.path.join(ROOT, "build", options.what)
    if options.what == "site":
        return site(out)
    if options.what == "man":
        return man(Tool(options.forewarp), out)
    pages, wrong = made(Tool(options.forewarp))
    for name, text in pages.items():
        path = os.path.join(DOCS, name)
        before = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                before = file.read()
        if options.what == "update":
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        elif before != text:
            wrong.append(f"docs/{name} is stale; docs/build.py update writes it")
            if not name.endswith(".svg"):
                wrong += list(difflib.unified_diff(before.splitlines(), text.splitlines(), "there", "made", lineterm="", n=0))[:20]
    wrong += links()
    print("\n".join(wrong) if wrong else f"{len(pages)} pages and pictures are as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
