"""Every public name is there, and nothing else is shown."""

import importlib
import subprocess
import sys

import pytest

import pmordinal as pmo

NAMES = """
ConvergenceWarning LabelOrderWarning LINKS ENGINES OBJECTIVES EP Exact Inducing Laplace PLSOR SparseADF LinearARD
PearsonRatings Precomputed select_features thresholds Ordinal MarginalOrdinal gp_model fit OrdinalFit SemiSupervisedFit
sample_exact sample_posterior Stack stack load calibration Comparison compare compare_engines compare_scores loo scores
rank_methods predictive_bars prior_categories surrogate_residuals linear_model latent_model write_report
formula_model model_summary conformal Conformal sample
""".split()
MODULES = {
    "datasets": "wine",
    "modl": "Grid MODLDiscretizer RankRegressor averaged_log_score averaged_rank_cdf criterion fit_grid fit_grids "
    "nlrpd_of_cdf rank_predictors ranked_probability_score sample_grids",
    "plots": "plot_annealing plot_bars plot_calibration plot_categories plot_effects plot_engines plot_grid "
    "plot_latent plot_prior plot_regions plot_relevance plot_residuals plot_terms",
    "sklearn": "OrdinalGPClassifier RankRegressor MODLDiscretizer",
}


def test_the_package_shows_its_public_names_alone():
    assert dir(pmo) == sorted([*NAMES, *MODULES, "__version__"])
    code = "import pmordinal as pmo; pmo.fit; pmo.gp_model; pmo.plots; print(*dir(pmo))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == dir(pmo)


@pytest.mark.parametrize("name", [*NAMES, *MODULES])
def test_every_name_resolves(name):
    assert getattr(pmo, name) is not None


@pytest.mark.parametrize("module, names", MODULES.items(), ids=list(MODULES))
def test_the_modules_have_their_names(module, names):
    found = importlib.import_module(f"pmordinal.{module}")
    assert not [name for name in names.split() if not hasattr(found, name)]


def test_what_does_not_exist_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'boxed'"):
        pmo.boxed  # noqa: B018
