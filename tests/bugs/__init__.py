"""Wrong programs and their corrected twins, one file for each class of error."""
