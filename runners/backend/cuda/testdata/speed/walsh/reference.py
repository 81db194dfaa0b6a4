import torch


def walsh(x):
    half = 512
    while half:
        pairs = x.reshape(x.shape[0], -1, 2, half)
        x = torch.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], 2).reshape(x.shape[0], 1024)
        half //= 2
    return x
