"""The problems that checkers report, a file for each checker: their codes and explanations."""
