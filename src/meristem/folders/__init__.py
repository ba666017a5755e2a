"""The folder of a run: written by one process at a time, with everything the run needs to resume, whatever ended it.

OUT/.meristem-run/lock          names the process that writes (run_folder.py)
run.json      what run it is: an id, its command, digests of data, models and settings (run_record.py)
epochs.jsonl  a line for each epoch of each network (epoch_lines.py)
checkpoints/  trainings in progress, as files of runs (checkpoints.py)
groups/       finished ones, until the whole run is finished (run_folder.py)
OUT/summary.json                written last, with the digests of all other files: the run is finished (run_record.py)
"""
