# SPDX-License-Identifier: Apache-2.0
# What a script imports.
# %% uses=contextlib
import contextlib
# %% uses=csv
import csv
# %% uses=functools
import functools
# %% uses=itertools
import itertools
# %% uses=json
import json
# %% uses=math
import math
# %% uses=os
import os
# %% uses=re
import re
# %% uses=time
import time
# %%

import torch
# %% tool=lightning
import lightning
# %%
import torch.nn.functional as F
# %% tool=accelerate
from accelerate import Accelerator
# %%
from torch import nn

