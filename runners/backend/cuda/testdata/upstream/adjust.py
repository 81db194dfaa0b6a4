import numpy as np


def adjust(delta, ly, w, oldw):
    step = 0.3 * ly[:, None] * delta[None, :] + 0.3 * oldw
    step[0] = 0.3 * delta + 0.3 * oldw[0]  # the threshold
    step[:, 0] = 0  # has no unit
    keep = np.zeros_like(w, dtype=bool)
    keep[:, 0] = True
    return w + step, np.where(keep, oldw, step)
