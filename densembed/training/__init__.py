"""Training: a config and a data set in, events and checkpoints out.

>>> from densembed.data import load_dataset
>>> from densembed.training import Recorder, RunConfig, train
>>> config, dataset = RunConfig(model="logistic-el-2", epochs=1), load_dataset("digits")
>>> recorder = Recorder(config, dataset)
>>> for event in train(config, dataset):
...     recorder.add(event)
>>> recorder.checkpoint("done").steps[-1]
12
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
