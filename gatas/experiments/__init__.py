"""The paper's experiments. Recipes are part of the core; results, baselines and reports need the extra `gatas[experiments]`."""
