"""The kernels of this folder as images for sm_90, one an instance.

    instances.py STEM FILE    compiles an instance, and prints what a launch must know of it

Needs the wheel triton 3.9.0, no GPU.
"""
import importlib
import os
import re
import sys
from pathlib import Path

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # lines would name files by where they lie on this machine
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
os.environ["TRITON_ALWAYS_COMPILE"] = "1"

HERE = Path(__file__).resolve().parent


def instance(name, kernel, types, warps, stages=3, **constants):
    """A kernel with the types of its arguments, in order, and its constants."""
    return {"name": name, "kernel": kernel, "types": types.split(), "constants": constants, "warps": warps, "stages": stages}


def compiled(one):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    names = one["kernel"].arg_names
    types = [re.sub(r"^map<", "tensordesc<", kind) for kind in one["types"]]
    signature = {name: "constexpr" if name in one["constants"] else types[i] for i, name in enumerate(names)}
    constants = {(names.index(name),): value for name, value in one["constants"].items()}
    aligned = {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(types) if kind.startswith("*") or kind == "i32"}
    source = ASTSource(fn=one["kernel"], signature=signature, constexprs=constants, attrs=aligned)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": one["warps"], "num_stages": one["stages"]})


def instances():
    """Every instance by its stem."""
    return {f"triton_{path.stem[:2]}_{one['name']}": one for path in sorted(HERE.glob("[0-9]*.py"))
            for one in importlib.import_module(path.stem).INSTANCES}


def main(stem, out):
    image = compiled(instances()[stem])
    out.write_bytes(image.asm["cubin"])
    print(stem, re.search(r"\.reqntid (\d+)", image.asm["ptx"])[1], "threads,", image.metadata.shared, "bytes of shared memory")
    for number, of in enumerate(image.metadata.tensordesc_meta or []):
        print(f"  map {number}: boxes of {of['block_size']}, swizzle {of['swizzle']}")


if __name__ == "__main__":
    sys.modules["instances"] = sys.modules["__main__"]
    main(sys.argv[1], Path(sys.argv[2]))
