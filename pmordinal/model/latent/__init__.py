"""Models of the latent function itself, for full MCMC."""
