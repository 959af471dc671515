"""Reports: tables, figures and HTML pages that `simulate`, `compare` and `reproduce` share."""
