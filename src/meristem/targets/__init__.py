"""What y means: classes, labels or numbers; shared by estimators, files and export. Imports NumPy alone."""
