"""Populations on other processes and machines: an executor starts workers, which take groups of members to train.

    with on_workers(ProcessPoolExecutor(4, mp_context=get_context("spawn"))): fit(…)          train/placement.py

    task          a group of members, up to the epoch at which the driver compares them again (a rung), or to their end
    driver        the process that called `fit`, `path` or a search; it owns the loop, files and display (remote_trainer)
    worker        a process that the executor started: it trains a task and writes no file but compiled programs (worker)
    connection    from each worker to the driver, by which everything travels (connection, messages); the executor only starts
                  workers, with an address, a secret key and the number of a task

A training within a task, one member or several that share a program, is identified by the digest of what it starts from: its
run, its data and its goal, as in a folder of checkpoints. A worker first asks for the newest checkpoint of that digest. Whoever
repeats a task, this package, Ray or Dask, therefore continues it, and repeating a finished one does nothing. The digests are
those of a training without workers: either continues the checkpoints of the other.

Promises:

- Runs, data and epochs travel as documents of our file format, with their digests. Data, and weights of rows, travel once to
  each worker process.
- Members train with the functions of train/loop.py, so arrays are equal to the bit to those of one process with as many
  threads for XLA and, where members share a program, the same groups. A worker has one core ($NPROC).
- A worker sends a checkpoint every few seconds. One that dies, or is silent for a minute, costs what came after it; its task
  is started again, unless it has died ten times in a row without a new epoch.
- An exception in a task is raised in the driver, as it is, and ends the other tasks.
"""
