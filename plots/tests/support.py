"""What the tests share: the package on the path, the small results, the goldens."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PLOTS = os.path.dirname(HERE)
ROOT = os.path.dirname(PLOTS)
sys.path.insert(0, PLOTS)
sys.dont_write_bytecode = True

from forewarp_plots import machines, spec  # noqa: E402
from forewarp_plots.results import Costs, Points, read_results  # noqa: E402


def result(name):
    return os.path.join(HERE, "results", name + ".json")


def launches(name, *cases):
    return read_results([result(name)], cases)


def curve():
    return Points(os.path.join(HERE, "results", "curve.csv"))


# One picture a kind: (kind, launches, options)
def pictures():
    tpu = machines.read_machine("tpu-v5e")
    return {
        "roofline": ("roofline", launches("suite"), spec.Options(machines=[tpu], work={"relu_f32_1mi": 1048576})),
        "sweep": ("sweep", launches("product"), spec.Options(points=[curve()])),
        "waves": ("waves", launches("launch"), spec.Options()),
        "coalescing": ("coalescing", launches("launch", "divergence_by_lane_2_check_1000"), spec.Options()),
        "divergence": ("divergence", launches("launch"), spec.Options()),
        "memory": ("memory", launches("product", "sgemm_warp_tiled_check_100"), spec.Options()),
        "mix": ("mix", launches("product", "sgemm_warp_tiled_check_100"), spec.Options()),
        "stalls": ("stalls", launches("suite"), spec.Options()),
        "ladder": ("ladder", launches("suite", "sgemm_shared_tiled_512", "sgemm_warp_tiled_512"), spec.Options()),
        "traffic": ("traffic", launches("suite", "sgemm_shared_tiled_512", "relu_f32_1mi"),
                    spec.Options(formulas=[("relu_f32_1mi", "asked by loads", 4194304.0, "4 B an element")])),
        "occupancy": ("occupancy", launches("product", "sgemm_warp_tiled_check_100"), spec.Options()),
        "timeline": ("timeline", launches("sequence"), spec.Options(modes=["stream", "graph"], wholes={"elu_unfused_check_1000": 10.78})),
        "warps": ("warps", launches("warps"), spec.Options(cycles=(2000, 6000))),
        "validation": ("validation", launches("suite"), spec.Options()),
        "tornado": ("tornado", [], spec.Options(points=[spec.FILES["tornado"](result("whatif"))])),
        "pareto": ("pareto", [], spec.Options(points=[spec.FILES["pareto"](result("points"))])),
        "cost": ("cost", [], spec.Options(points=[Costs(os.path.join(HERE, "results", "costs.csv"))])),
    }
