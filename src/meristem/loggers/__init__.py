"""Loggers: watchers that write the measures of each epoch, for `fit(…, watch=…)` and the estimators' `callbacks=`.

    JSONLines("run.jsonl")          a line of JSON for each epoch of each member
    TensorBoard("logs")             an event file (tensorboardX, the extra `tensorboard`)

A logger has no open file that a copy would share: scikit-learn clones and pickles estimators with their callbacks.
"""

from meristem.loggers.jsonlines import JSONLines as JSONLines
from meristem.loggers.tensorboard import TensorBoard as TensorBoard
