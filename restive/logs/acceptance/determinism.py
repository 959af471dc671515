"""Does the same seed give the same bytes, with any number of threads of restive and of linear algebra?"""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from restive.logs.acceptance import Check, Result
from restive.logs.evaluate import evaluate
from restive.logs.examine import examine
from restive.logs.fit import fit
from restive.logs.forecast import forecast
from restive.logs.generate import generate_history
from restive.logs.trial_plan import plan_trial
from restive.problems import make_problems

SEED = 0
THREADS, QUICK_THREADS = (1, 2, 5), (1, 3)
LINEAR_ALGEBRA = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def find_digests(threads: int, people: int) -> dict[str, str]:
    """The SHA-256 of what each verb answers as JSON, from one history with two features."""
    problem = make_problems("patient-management-v1", instances=1, agents=people, budget=people // 10, seed=SEED)[0]
    features = np.random.default_rng(SEED).standard_normal((people, 2))
    history = generate_history(problem, 12, SEED)
    model = fit(history, seed=SEED)
    answers: dict[str, Any] = {
        "fit": model,
        "fit with features": fit(replace(history, features=features, feature_names=("one", "two")), seed=SEED),
        "examine": examine(history, seed=SEED, max_shuffles=99),
        "forecast": forecast(model, (people // 10,), rounds=6, draws=20, seed=SEED, threads=threads),
        "evaluate": evaluate(history, "egt", 2, seed=SEED, threads=threads),
        "trial": plan_trial(problem, people=people, rounds=6, budget=people // 10, trials=100, seed=SEED),
    }
    return {
        name: hashlib.sha256(json.dumps(answer.as_json(), sort_keys=True).encode()).hexdigest()
        for name, answer in answers.items()
    }


def check_determinism(quick: bool) -> list[Result]:
    """Answers of processes with different numbers of threads, and of a second process with the first number."""
    numbers = QUICK_THREADS if quick else THREADS
    people = 60 if quick else 400
    found = [_run(threads, people) for threads in (*numbers, numbers[0])]
    note = f"{people} people, 12 rounds, {', '.join(map(str, numbers))} threads"
    results = []
    for name in found[0]:
        different = len({each[name] for each in found}) - 1
        shown = "same bytes" if not different else f"{different + 1} different answers"
        results.append(Result(f"{name}, same seed", "same bytes, any number of threads", shown, not different, note))
    return results


def _run(threads: int, people: int) -> dict[str, str]:
    """The digests of a process with so many threads."""
    code = f"import json; from {__name__} import find_digests; print(json.dumps(find_digests({threads}, {people})))"
    environment = os.environ | dict.fromkeys(LINEAR_ALGEBRA, str(threads))
    run = subprocess.run([sys.executable, "-c", code], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(run.stdout.splitlines()[-1]))


CHECKS = (Check("threads", check_determinism),)
