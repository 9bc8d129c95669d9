# SPDX-License-Identifier: GPL-3.0-or-later
"""Two small models of the digits that scikit-learn ships (1,797 pictures of 8 x 8), for weight policies: a residual
CNN and an LSTM that reads a picture row by row. DIGITS_OPTIMIZER names the optimizer: sgd, adam, adamw or rmsprop.
"""

import os

import torch
from sklearn.datasets import load_digits

OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=5e-3),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=5e-3),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=5e-4),
}

digits = load_digits()
pictures = torch.tensor(digits.images, dtype=torch.float32) / 16
classes = torch.tensor(digits.target)
order = torch.randperm(len(classes), generator=torch.Generator().manual_seed(7))
TRAINED, HELD_BACK = order[:1500], order[1500:]


class Residual(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.GroupNorm(4, width)
        self.first = torch.nn.Conv2d(width, width, 3, padding=1)
        self.second = torch.nn.Conv2d(width, width, 3, padding=1)

    def forward(self, value):
        return value + self.second(torch.relu(self.first(self.norm(value))))


class Classes(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.GroupNorm(4, width)
        self.out = torch.nn.Linear(width, 10)

    def forward(self, value):
        return self.out(torch.relu(self.norm(value)).mean(dim=(2, 3)))


def cnn(width=16):
    begin = torch.nn.Sequential(torch.nn.Unflatten(1, (1, 8)), torch.nn.Conv2d(1, width, 3, padding=1))
    return [begin, *[Residual(width) for _ in range(4)], Classes(width)]


class Rows(torch.nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.lstm = torch.nn.LSTM(inputs, hidden, batch_first=True)

    def forward(self, value):
        return self.lstm(value)[0]


class LastRow(torch.nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.out = torch.nn.Linear(hidden, 10)

    def forward(self, value):
        return self.out(value[:, -1])


def lstm(hidden=48):
    return [Rows(8, hidden), Rows(hidden, hidden), LastRow(hidden)]


def batch(step):
    rows = TRAINED[torch.randint(len(TRAINED), (int(os.environ.get("DIGITS_ROWS", 48)),))]
    return pictures[rows], classes[rows]


def held_back():
    return pictures[HELD_BACK], classes[HELD_BACK]


def loss(output, target):
    return torch.nn.functional.cross_entropy(output, target)


def optimizer(parameters):
    return OPTIMIZERS[os.environ.get("DIGITS_OPTIMIZER", "sgd")](parameters)
