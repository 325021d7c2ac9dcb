"""A trained model over HTTP: `gatas serve`."""
