"""The folder of a run: one run's at a time, with what it has come to, so that it goes on after whatever ends it.

    OUT/.meristem-run/lock          held by the process that writes (lock.py)
                      run.json      which run it is: an id, its command, digests of data, model and settings (folder.py)
                      epochs.jsonl  a line for each epoch of each network (epochs.py)
                      checkpoints/  the trainings that are under way, as files of runs (checkpoints.py)
                      groups/       those that are over, until the whole run is
    OUT/summary.json                written last, with the digests of the others: it makes the run a finished one (owned.py)

What is there and no run's is refused in a line: plain.py opens plain files alone, record.py says what a run.json may hold.

Imports files and train; experiments, estimators, pictures and commands import it.
"""
