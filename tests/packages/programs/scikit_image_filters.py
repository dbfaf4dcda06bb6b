"""Filters, segments and measures of scikit-image on each rank's strip of a picture."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from skimage import data, exposure, feature, filters, measure, morphology, segmentation, transform

comm = MPI.COMM_WORLD
coins = data.coins()
strip = np.array_split(coins, comm.size)[comm.rank]
print(comm.rank, strip.shape, int(strip.sum()), filters.threshold_otsu(strip))
smooth = filters.gaussian(strip, 2)
edges = feature.canny(strip / 255, sigma=2)
print(comm.rank, float(smooth.mean()), int(edges.sum()), float(filters.sobel(strip).max()))
mask = morphology.opening(strip > filters.threshold_otsu(coins), morphology.disk(3))
labels = measure.label(mask)
regions = measure.regionprops(labels, strip)
for region in regions[:3]:
    print(comm.rank, region.label, region.area, region.centroid, region.eccentricity)
small = transform.rescale(strip, 0.5, anti_aliasing=True)
print(comm.rank, small.shape, float(small.std()), measure.shannon_entropy(strip))
parts = segmentation.slic(strip, n_segments=20, channel_axis=None, compactness=0.1)
print(comm.rank, len(np.unique(parts)), exposure.is_low_contrast(strip))
counts = comm.allgather(len(regions))
whole = np.concatenate(comm.allgather(smooth))
print(comm.rank, counts, whole.shape, float(whole.mean()))
