# SPDX-License-Identifier: BSD-3-Clause
"""Many files as one (-o concat=): what their attributes, types and order mean has to be the same,
or is refused; what need not be understood passes as it is stored."""
import netCDF4
import numpy as np
import xarray as xr

from cases.concat.test_concat import array_info, folder, refused


def small(path, time, **variables):
    """time, and variables as (dimensions, values, attributes)."""
    with netCDF4.Dataset(path, "w") as f:
        f.createDimension("time", None)
        f.createDimension("x", 2)
        for name, (dims, values, attrs) in {"time": (("time",), *time), **variables}.items():
            kind = attrs.pop("enum", None)
            values = np.asarray(values)
            kind = f.createEnumType("u1", "E", kind) if kind else values.dtype
            v = f.createVariable(name, kind, dims)
            v.set_auto_maskandscale(False)
            v.setncatts(attrs)
            v[...] = values
    return path


def pair(t, name, first, second):
    d = folder(t, name)
    small(d + "/f0.nc", **first)
    small(d + "/f1.nc", **second)
    return d + "/*.nc"


def test_meanings(t):
    """What the files' types, dimensions and order mean by the same name has to be the same.
    SEMANTICS J3"""
    early, late = ([0.0, 1.0], {}), ([2.0, 3.0], {})

    def enums(first, second):
        return (dict(time=early, v=(("time",), [0, 1], dict(enum=first))),
                dict(time=late, v=(("time",), [0, 1], dict(enum=second))))

    land_sea = dict(land=0, sea=1)
    refused(t, pair(t, "swapped", *enums(land_sea, dict(sea=0, land=1))), "f1.nc", "enumeration")
    refused(t, pair(t, "more", *enums(land_sea, dict(land_sea, ice=2))), "f1.nc", "enumeration")
    array_info(t, pair(t, "same", *enums(land_sea, dict(sea=1, land=0))))
    along, beside = (("time", "x"), [[7.0, 8.0], [9.0, 10.0]], {}), (("x",), [0.0, 1.0], {})
    words = "has no variable '/v' along 'time'"
    refused(t, pair(t, "beside", dict(time=early, v=beside), dict(time=late, v=along)),
            "f0.nc' " + words, "f1.nc' has")
    refused(t, pair(t, "along", dict(time=early, v=along), dict(time=late, v=beside)),
            "f1.nc' " + words, "f0.nc' has")
    refused(t, pair(t, "ways", dict(time=early), dict(time=([5.0, 4.0], {}))),
            "decreases in", "f1.nc' and increases in", "f0.nc")
    refused(t, pair(t, "hour", dict(time=([0.0], dict(units="days since 2000-01-01"))),
                    dict(time=([0.0], dict(units="days since 2000-02-01 6")))),
            "f1.nc", "not a unit of time")


def test_as_stored(t):
    """What is the same in all files need not be understood; unsigned coordinates have the order of
    unsigned numbers; zones may stand behind a date. SEMANTICS J1"""
    def value(pattern, name, want, **more):
        def compare(mnt):
            got = xr.open_dataset(mnt, engine="zarr", **more)[name]
            assert got.values.tolist() == want, got

        with t.mount(pattern, "concat=time", "concat_index=none") as m:
            t.call(compare, m.path)

    def text(time, values):
        return dict(time=time, v=(("time",), np.array(values, "i2"), dict(scale_factor="0.1")))

    value(pair(t, "text", text(([0.0, 1.0], {}), [5, 2]), text(([2.0, 3.0], {}), [1, 3])),
          "v", [5, 2, 1, 3], mask_and_scale=False)
    refused(t, pair(t, "texts", text(([0.0], {}), [5]),
                    dict(time=([2.0], {}), v=(("time",), np.array([1], "i2"), {}))),
            "scale_factor")
    unsigned = dict(_Unsigned="true")
    value(pair(t, "unsigned", dict(time=(np.array([-128, -127], "i1"), dict(unsigned))),
               dict(time=(np.array([126, 127], "i1"), dict(unsigned)))),
          "time", [126, 127, 128, 129])
    value(pair(t, "zone", dict(time=([0.0, 1.0], dict(units="hours since 2000-01-01"))),
               dict(time=([0.0, 24.0], dict(units="hours since 2000-01-02 +01:00")))),
          "time", [0, 1, 23, 47], decode_times=False)


def test_others_mean(t):
    """Equal numbers in other units, or packed in another way, are not equal. SEMANTICS J3"""
    def case(name, ok, first, second):
        pattern = pair(t, name, dict(time=([0.0], {}), ref=first),
                       dict(time=([1.0], {}), ref=second))
        options = ("concat=time", "concat_compat=equals")
        if ok:
            array_info(t, pattern, "ref", *options[1:])
        else:
            refused(t, pattern, "f1.nc", "'/ref'", options=options)

    def scalar(value, **attrs):
        return (), value, attrs

    case("units", False, scalar(0.0, units="hours since 2000-01-01"),
         scalar(0.0, units="hours since 2000-02-01"))
    case("length", False, scalar(1.0, units="m"), scalar(1.0, units="km"))
    case("scale", False, (("x",), np.array([1, 3], "i2"), dict(scale_factor=1.0)),
         (("x",), np.array([1, 3], "i2"), dict(scale_factor=2.0)))
    case("missing", False, scalar(1.0), scalar(1.0, missing_value=1.0))
    case("zero", True, scalar(0.0, units="m", comment="a"), scalar(-0.0, units="m", comment="b"))
