"""The draws of the fit against Hamiltonian Monte Carlo on the same model (numpyro)."""

import numpy as np
import pytest

from restive.logs.row_prior import count_tails, sample_alpha


@pytest.mark.soak
def test_posterior_is_that_of_numpyro() -> None:
    import jax
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    generator = np.random.default_rng(7)
    rows = generator.dirichlet([3.0, 1.0, 0.5], 120)
    counts = generator.multinomial(generator.integers(1, 12, 120), rows).astype(float)
    alpha = sample_alpha(count_tails(counts), 4000, np.random.default_rng(8))
    weight = alpha.sum(axis=-1)

    def model() -> None:
        mean = numpyro.sample("mean", dist.Dirichlet(np.full(3, 1 / 3)))
        correlation = numpyro.sample("correlation", dist.Uniform(0.0, 1.0))
        total = counts.sum(axis=1).astype(int)
        numpyro.sample("moves", dist.DirichletMultinomial((1 / correlation - 1) * mean, total), obs=counts.astype(int))

    chains = MCMC(NUTS(model), num_warmup=500, num_samples=4000, num_chains=1, progress_bar=False)
    chains.run(jax.random.PRNGKey(0))
    oracle = {name: np.asarray(part) for name, part in chains.get_samples().items()}
    for ours, theirs in ((alpha / weight[:, None], oracle["mean"]), (1 / (1 + weight), oracle["correlation"])):
        assert np.abs(ours.mean(axis=0) - theirs.mean(axis=0)).max() < 0.005
        assert np.abs(ours.std(axis=0) / theirs.std(axis=0) - 1).max() < 0.1
