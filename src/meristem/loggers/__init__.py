"""Loggers: watchers that write down what each epoch says, for `fit(…, watch=…)` and the estimators' `callbacks=`.

    JSONLines("run.jsonl")          a line of JSON for each epoch of each member
    TensorBoard("logs")             an event file (tensorboardX, the extra `tensorboard`)

A logger holds no open file that a copy would share: scikit-learn clones and pickles the estimators that hold one.
"""

from meristem.loggers.jsonlines import JSONLines as JSONLines
from meristem.loggers.tensorboard import TensorBoard as TensorBoard
