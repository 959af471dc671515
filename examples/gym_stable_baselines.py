"""PPO of Stable-Baselines3 in an environment of restive: `pip install 'restive[gym]' stable-baselines3`.

Libraries of reinforcement learning know standard action spaces only, so the environment takes a 0 or 1 for each agent.
The library's own checker is run first; then PPO learns for 20,000 steps and is compared with itself before that.
"""

from typing import Any

import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import restive.gym  # noqa: F401 - registers the environments

SETTINGS: dict[str, Any] = {"agents": 8, "budget": 2, "horizon": 100, "action_space": "multibinary"}


def evaluate(model: Any) -> float:
    """The mean reward of a step in 20 episodes."""
    environment = Monitor(gymnasium.make("restive/two-state-v1", **SETTINGS))
    environment.reset(seed=1)
    reward, _ = evaluate_policy(model, environment, n_eval_episodes=20)
    return float(reward / SETTINGS["horizon"])


if __name__ == "__main__":
    environment = gymnasium.make("restive/two-state-v1", **SETTINGS)
    check_env(environment.unwrapped)
    print("the checker of Stable-Baselines3 accepts the environment")
    model = PPO("MlpPolicy", environment, n_steps=500, batch_size=100, gamma=0.9, device="cpu", seed=7)
    print(f"untrained {evaluate(model):.3f} a step")
    model.learn(20_000)
    print(f"trained   {evaluate(model):.3f} a step")
