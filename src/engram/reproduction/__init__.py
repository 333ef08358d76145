"""The paper's experiments: what is run, what the paper reports, tables, figures, words."""
