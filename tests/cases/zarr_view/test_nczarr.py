# SPDX-License-Identifier: BSD-3-Clause
"""NCZarr of every version: the netCDF dataset that was written is the one that is shown, with
dimensions of groups, unlimited ones, types of attributes and characters. The expected text is what
ncdump prints of the netCDF-4 file that NCZarr's own writer was given."""
import functools
import os

import numpy as np

from gen import trees, z_nczarr
from gen.trees import array, put
from cases.netcdf_view.test_virtual import virtual

TYPES = """netcdf {name} {{
dimensions:
	t = {t}
	y = 4 ;
variables:
	float v(t, y) ;
		v:_FillValue = -1.f ;
		v:u = "K" ;
	char c(y) ;
	int64 s ;
	short t(t) ;

// global attributes:
		:title = "t" ;
		:short = 5s ;
		:floats = 1.f, 2.f ;
		:doubles = 3. ;
data:

 v =
  -100, -93, -86, -79,
  -72, -65, -58, -51,
  -44, -37, -30, -23 ;

 c = "abcd" ;

 s = 7 ;

 t = -100, -93, -86 ;

group: g {{
  dimensions:
  	z = 2 ;
  variables:
  	int w(z, y) ;
  data:

   w =
  -100, -93, -86, -79,
  -72, -65, -58, -51 ;
  }} // group g
}}
"""

STRINGS = """netcdf nczarr_strings {
dimensions:
	n = 3 ;
variables:
	string s(n) ;
		s:_nczarr_maxstrlen = 8 ;

// global attributes:
		:json = "{\\"a\\": [1,2]}" ;
data:

 s = "ab", _, "cdef" ;
}
"""

ONE = """netcdf nczarr_1 {
dimensions:
	y = 4 ;
	x = 3 ;
variables:
	int v(y, x) ;
		v:units = "m" ;

// global attributes:
		:title = "one" ;
		:n = 5s ;
data:

 v =
  -100, -93, -86,
  -79, -72, -65,
  -58, -51, -44,
  -37, -30, -23 ;

group: g {
  variables:
  	double w(y) ;
  data:

   w = -100, -93, -86, -79 ;
  } // group g
}
"""

EXPECTED = {
    "nczarr_490": TYPES.format(name="nczarr_490", t="3 ;"),
    "nczarr_492": TYPES.format(name="nczarr_492", t="3 ;"),
    "nczarr_493": TYPES.format(name="nczarr_493", t="UNLIMITED ; // (3 currently)"),
    "nczarr_strings": STRINGS,
    "nczarr_1": ONE,
}


def dump(mnt):
    from clients.netcdf import nc_tools
    return nc_tools.run("ncdump", virtual(mnt)).decode()


def same_text(got, want):
    from clients.netcdf import nc_tools
    assert got == want, f"{nc_tools.first_difference(got, want)}\n{got}"


def expected(name, t):
    source = t.path(name + ".zarr")
    trees.load()[name].write(source)
    with t.mount(source) as m:
        t.call(lambda: same_text(dump(m.path), EXPECTED[name]))


# every type that an attribute may have in NCZarr, and what ncdump prints of it
ATTRIBUTES = {
    "i1": ("|i1", -3, "-3b"), "u1": ("|u1", 250, "250UB"), "i2": ("<i2", -30000, "-30000s"),
    "u2": ("<u2", 60000, "60000US"), "i4": ("<i4", [1, -2], "1, -2"),
    "u4": ("<u4", 4000000000, "4000000000U"), "i8": ("<i8", -2**62, "-4611686018427387904LL"),
    "u8": ("<u8", 2**64 - 1, "18446744073709551615ULL"), "f4": ("<f4", 0.1, "0.1f"),
    "f8": ("<f8", [0.1, 1e300], "0.1, 1.e+300"), "text": (">S1", "grün", '"grün"'),
    "empty": (">S1", "", '""'), "whole": ("<f4", 2, "2.f"), "big": (">i2", [1, 2], "1s, 2s"),
}


def attributes(path):
    put(path, ".zgroup", {"zarr_format": 2})
    put(path, ".zattrs", {
        **{k: v for k, (_, v, _) in ATTRIBUTES.items()},
        "_nczarr_superblock": {"version": "2.0.0"},
        "_nczarr_group": {"dimensions": {}, "arrays": [], "groups": []},
        "_nczarr_attr": {"types": {**{k: t for k, (t, _, _) in ATTRIBUTES.items()},
                                   "_nczarr_superblock": "|J0", "_nczarr_group": "|J0",
                                   "_nczarr_attr": "|J0"}}})


def check_attributes(mnt):
    lines = dump(mnt).splitlines()
    for name, (_, _, want) in ATTRIBUTES.items():
        assert f"\t\t:{name} = {want} ;" in lines, f"{name} = {want}\n" + "\n".join(lines)


def test_types_of_attributes(t):
    """Each has the type that NCZarr states, not the one that JSON suggests."""
    source = t.path("a.zarr")
    attributes(source)
    with t.mount(source) as m:
        t.call(check_attributes, m.path)


def unlimited(path):
    """Two unlimited dimensions, one in a group and empty; one of a name that is used above."""
    dims = {"t": {"size": 5, "unlimited": 1}, "x": 2}
    below = {"t": {"size": 0, "unlimited": 1}, "z": 3}
    put(path, ".zgroup", {"zarr_format": 2})
    put(path, ".zattrs", {"_nczarr_superblock": {"version": "2.0.0"}, "_nczarr_group": {
        "dimensions": dims, "arrays": ["v"], "groups": ["g"]}})
    put(path, "g/.zgroup", {"zarr_format": 2})
    put(path, "g/.zattrs", {"_nczarr_group": {"dimensions": below, "arrays": ["w", "u"],
                                              "groups": []}})
    for key, data, refs in (("v", np.arange(10, dtype="<i4").reshape(5, 2), ["/t", "/x"]),
                            ("g/w", np.zeros((0, 3), "<f8"), ["/g/t", "/g/z"]),
                            ("g/u", np.arange(5, dtype="<i2"), ["/t"])):
        array(path, key, data, [max(1, n) for n in data.shape],
              {"_nczarr_array": {"dimension_references": refs, "storage": "chunked"}})


UNLIMITED = """netcdf a {
dimensions:
	t = UNLIMITED ; // (5 currently)
	x = 2 ;
variables:
	int v(t, x) ;
data:

 v =
  0, 1,
  2, 3,
  4, 5,
  6, 7,
  8, 9 ;

group: g {
  dimensions:
  	t = UNLIMITED ; // (0 currently)
  	z = 3 ;
  variables:
  	double w(t, z) ;
  	short u(/t) ;
  data:

   u = 0, 1, 2, 3, 4 ;
  } // group g
}
"""


def test_unlimited(t):
    """Unlimited dimensions of the root and of a group, and references that say which is meant."""
    source = t.path("a.zarr")
    unlimited(source)
    with t.mount(source) as m:
        t.call(lambda: same_text(dump(m.path), UNLIMITED))


def wrong_size(path):
    z_nczarr.types(path, "zattrs")
    with open(os.path.join(path, ".zattrs"), encoding="utf-8") as f:
        text = f.read()
    assert '"y": 4' in text
    put(path, ".zattrs", text.replace('"y": 4', '"y": 5').encode())


def test_dimension_of_another_size(t):
    """A group says that a dimension has another length than the arrays on it: one line says so."""
    source = t.path("a.zarr")
    wrong_size(source)
    with t.mount(source, check=False) as m:
        assert m.status == 1, m.status
        lines = m.messages().splitlines()
        assert len(lines) == 1 and ("'y'" in lines[0] or "'/y'" in lines[0]), lines
        assert "5" in lines[0] and "4" in lines[0], lines


def cases():
    for name in EXPECTED:
        yield name, functools.partial(expected, name)
