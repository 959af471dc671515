"""A policy of restive and a random agent in the same Gymnasium environment.

The policy is `egt`, driven step by step by a `PolicyAgent`. Its rewards are those of `simulate` with the same seed, to
the last bit; the random agent is the baseline for a learner of your own.
"""

import gymnasium
import numpy as np

import restive.gym
from restive import make_problems, simulate

AGENTS, BUDGET, HORIZON, SEED = 20, 4, 1000, 7


def play_egt(environment: gymnasium.Env) -> np.ndarray:
    agent = restive.gym.PolicyAgent("egt", environment)
    observation, info = environment.reset(seed=SEED)
    rewards, truncated = [], False
    while not truncated:
        observation, reward, _, truncated, info = environment.step(agent.act(observation))
        agent.learn(observation, info)
        rewards.append(reward)
    return np.array(rewards)


def play_at_random(environment: gymnasium.Env) -> np.ndarray:
    environment.reset(seed=SEED)
    environment.action_space.seed(SEED)
    rewards, truncated = [], False
    while not truncated:
        _, reward, _, truncated, _ = environment.step(environment.action_space.sample())
        rewards.append(reward)
    return np.array(rewards)


if __name__ == "__main__":
    environment = gymnasium.make("restive/two-state-v1", agents=AGENTS, budget=BUDGET, horizon=HORIZON)
    problems = make_problems("two-state-v1", agents=AGENTS, budget=BUDGET)
    outside = play_egt(environment)
    inside = simulate(problems, "egt", horizon=HORIZON, seed=SEED).reward[0]
    print(f"egt     in the environment {outside.mean():.3f} a step")
    print(f"egt     in simulate        {inside.mean():.3f} a step")
    print(f"random  in the environment {play_at_random(environment).mean():.3f} a step")
    print("egt agrees in every step:", np.array_equal(outside, inside))
