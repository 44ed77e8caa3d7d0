"""The parts of a training step that surround the network: each is one pass over memory.

Axes: member m, example n, pixel or parameter p, class c.
"""

import math

from densembed.kernels.compiler import kernel, largest, like


@kernel
def gather(images, index, full, x):
    """The inputs of a batch: pixels of uint8 divided by 255, or signals of float32.

    Args:
        images: (count, P); index: (M, N).
        full: the value that becomes 1.
        x: (M, N, P), written.
    """
    for m in range(index.shape[0]):
        for n in range(index.shape[1]):
            image = images[index[m, n]]
            for p in range(images.shape[1]):
                x[m, n, p] = like(image[p], x[0, 0, 0]) / like(full, x[0, 0, 0])


@kernel
def cross_entropy(logits, labels, index, losses, grad):
    """Mean cross-entropy of each member, and its gradient.

    Args:
        logits: (M, N, C); labels: (count,); index: (M, N), the examples.
        losses: (M,), written; grad: (M, N, C), written.
    """
    members, batch, classes = logits.shape
    one = like(1.0, losses[0])
    for m in range(members):
        total = like(0.0, losses[0])
        for n in range(batch):
            row, slope = logits[m, n], grad[m, n]
            label = labels[index[m, n]]
            top = row[0]
            for c in range(1, classes):
                top = largest(row[c], top)
            mass = like(0.0, one)
            for c in range(classes):
                slope[c] = math.exp(row[c] - top)
                mass += slope[c]
            total += math.log(mass) + top - row[label]
            share = one / (mass * like(batch, one))
            for c in range(classes):
                slope[c] *= share
            slope[label] -= one / like(batch, one)
        losses[m] = total / like(batch, one)


@kernel
def adam(values, gradient, first, second, rate, decay, row, beta2, eps):
    """`densembed.training.optimiser.Adam.update` in place; all (M, P) but `row`."""
    beta1, bias, correction, share = row[0], row[1], row[2], row[3]
    one, beta2, eps = like(1.0, beta1), like(beta2, beta1), like(eps, beta1)
    for m in range(values.shape[0]):
        for p in range(values.shape[1]):
            slope = gradient[m, p]
            first[m, p] += (one - beta1) * (slope - first[m, p])
            second[m, p] = beta2 * second[m, p] + (one - beta2) * slope * slope
            size = rate[m, p] * share
            values[m, p] -= values[m, p] * (size * decay[m, p])
            values[m, p] -= first[m, p] * size * bias / (math.sqrt(second[m, p]) * correction + eps)
