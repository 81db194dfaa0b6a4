import torch


def norm(x, g, columns):
    return x / torch.sqrt((x * x).mean(dim=1, keepdim=True) + 1e-6) * g
