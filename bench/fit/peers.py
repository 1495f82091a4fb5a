"""Fits the sets on standard input with the fitters that PyPI has, for `cargo xtask bench fit`.

In:  {"sets": [{"n": [...], "y": [...]}, ...], "speed": "fast" | "slow" | "slowest"}
Out: {"NAME": {"answers": [{"class": "n log n" | null, "broken": bool}, ...], "seconds": S}, ...}

Every fitter runs with its defaults. An answer is put in the words that Farsight uses; what those have no word for
(n^2 log^2 n) is null, which is never right.
"""

import json
import logging
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
np.seterr(all="ignore")


def power(k):
    """n^k, by its name where it has one."""
    for name, value in (("1", 0), ("sqrt n", 0.5), ("n", 1), ("n^1.5", 1.5), ("n^2", 2), ("n^3", 3)):
        if abs(k - value) <= 0.06:
            return name
    return f"n^{k:.4f}"


def big_o(n, y):
    from big_o import complexities
    from big_o.big_o import infer_big_o_class

    best, _ = infer_big_o_class(np.array(n), np.array(y))
    if isinstance(best, complexities.Polynomial):
        return power(best.coefficients()[1]), False
    names = {
        complexities.Constant: "1",
        complexities.Linear: "n",
        complexities.Quadratic: "n^2",
        complexities.Cubic: "n^3",
        complexities.Logarithmic: "log n",
        complexities.Linearithmic: "n log n",
        complexities.Exponential: "2^n",
    }
    return names[type(best)], False


def leading(function):
    """The class of an Extra-P function: its fastest growing term."""
    best = (0.0, 0.0)
    for compound in function.compound_terms:
        if compound.coefficient == 0:
            continue
        exponents = {"polynomial": 0.0, "logarithm": 0.0}
        for term in compound.simple_terms:
            exponents[term.term_type] += float(term.exponent)
        best = max(best, (exponents["polynomial"], exponents["logarithm"]))
    k, log = best
    if log == 0:
        return power(k)
    return {(0.0, 1.0): "log n", (1.0, 1.0): "n log n", (2.0, 1.0): "n^2 log n"}.get((k, log))


def extra_p(modeler):
    def fit(n, y):
        from extrap.entities.callpath import Callpath
        from extrap.entities.coordinate import Coordinate
        from extrap.entities.functions import SegmentedFunction
        from extrap.entities.measurement import Measurement
        from extrap.entities.metric import Metric

        values = {}
        for size, cost in zip(n, y):
            values.setdefault(size, []).append(cost)
        measurements = [
            Measurement(Coordinate(size), Callpath("f"), Metric("cost"), costs) for size, costs in sorted(values.items())
        ]
        function = modeler().create_model(measurements).hypothesis.function
        if isinstance(function, SegmentedFunction):
            return leading(function.segments[-1]), True
        return leading(function), False

    return fit


def basic(n, y):
    from extrap.modelers.single_parameter.basic import SingleParameterModeler

    return extra_p(SingleParameterModeler)(n, y)


def refining(n, y):
    from extrap.modelers.single_parameter.refining import RefiningModeler

    return extra_p(RefiningModeler)(n, y)


def segmented(n, y):
    from extrap.modelers.single_parameter.segmented import SegmentedModeler

    return extra_p(SegmentedModeler)(n, y)


def answer(job):
    fitter, n, y = job
    start = time.process_time()
    try:
        found, broken = fitter(n, y)
    except Exception as error:  # A fitter that gives up has answered: it does not know.
        print(f"{fitter.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
        found, broken = None, False
    return found, broken, time.process_time() - start


def main():
    request = json.load(sys.stdin)
    fitters = {"big_O": big_o}
    if request["speed"] != "fast":
        fitters |= {"Extra-P basic": basic, "Extra-P refining": refining}
    if request["speed"] == "slowest":
        fitters["Extra-P segm."] = segmented
    result = {}
    with ProcessPoolExecutor() as pool:
        for name, fitter in fitters.items():
            jobs = [(fitter, s["n"], s["y"]) for s in request["sets"]]
            answers = list(pool.map(answer, jobs, chunksize=4))
            result[name] = {
                "answers": [{"class": found, "broken": broken} for found, broken, _ in answers],
                "seconds": sum(seconds for _, _, seconds in answers),
            }
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
