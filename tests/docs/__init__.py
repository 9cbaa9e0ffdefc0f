"""The pages and notebooks run."""
