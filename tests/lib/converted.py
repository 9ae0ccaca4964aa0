# SPDX-License-Identifier: BSD-3-Clause
"""Datasets whose elements only the HDF5 library can make."""
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z


def converted(f, name, data, chunks):
    """Integers of 24 bits in four bytes, not the lowest ones; filtered with n-bit."""
    t = h5t.STD_I32LE.copy()
    t.set_precision(24)
    t.set_offset(4)
    p = h5p.create(h5p.DATASET_CREATE)
    p.set_chunk(chunks)
    p.set_filter(h5z.FILTER_NBIT)
    d = h5d.create(f.id, name.encode(), t, h5s.create_simple(data.shape), p)
    d.write(h5s.ALL, h5s.ALL, np.ascontiguousarray(data, "i4"))
