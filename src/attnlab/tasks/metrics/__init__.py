"""Metrics as functions of labels and answers.

`answers` compares two answers, `squad` averages like the official scripts, `classes` has accuracy, F1, Matthews'
correlation and collapse, `correlation` Pearson's and Spearman's.
"""
