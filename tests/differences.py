"""Differences that the formats force, in one place: docs/differences.md says the same for people.

Each row: a short name, and why. The comparers name the row by which they excuse something, and
a name that is not here is an error, so that nothing is excused silently."""

FORCED = {
    "enum-attrs": "Zarr v2 has no enum: the integers are shown and the meaning is given by the "
                  "added attributes flag_values and flag_meanings",
    "long-double": "Zarr v2 and numcodecs have no portable type above 64 bits: presented as f8",
    "nan-payload": "a fill value that is NaN is written \"NaN\" in JSON, which has no payload",
    "latin1-text": "JSON and vlen-utf8 hold UTF-8 only: other bytes are taken as Latin-1",
    "padded-compound": "a numpy structured dtype in .zarray cannot state gaps: fields are packed",
    "left-out": "an object that Zarr v2 cannot express (references, external links, cycles ...) "
                "is left out and named in a note",
    "attr-shape": "JSON attributes are scalars or lists: an array of one element reads as a "
                  "scalar, an attribute of several dimensions as one list",
    "attr-type": "JSON has one integer and one real type: the width of an attribute's type is "
                 "not kept (mode=nczarr keeps it)",
    "null-attr": "an attribute without elements has no JSON form that all readers accept",
    "endian-xarray": "xarray's netCDF engine gives native byte order, its Zarr engine the file's",
    "char-xarray": "xarray's two engines join char arrays into strings in different places",
    "scalar-nczarr": "netCDF-C before 4.10 needs shape [1] for scalars: ncdump shows them so",
    "netcdf-hidden": "netCDF-C does not show what it cannot read (user types, bool, complex); "
                     "h5py does, and is the judge there",
    "backslash": "zarr-python takes a backslash in a name for a slash and cannot open the array",
    "reserved-name": "an object called like one of Zarr's own files is shown with %2E for the dot",
    "utf8-nczarr": "zarr-python 2.13 takes metadata for ASCII and netCDF-C cannot read \\u escapes: "
                   "mode=zarr escapes, mode=nczarr does not",
    "wrong-scale": "a fixed dimension whose dimension scale has another length: netCDF-C goes by "
                   "the scale (and reads past the data), the mount by the data",
    "linked-dims": "a dimension scale with several names (links): netCDF-C and the mount may "
                   "choose another one of them",
    "netcdf-padding": "netCDF-C 4.9 fills up a variable that is shorter than its unlimited "
                      "dimension wrongly in some cases (several unlimited dimensions, 8-byte "
                      "types); h5py and the fill value are the judge",
    "nc-attributes": "xarray's Zarr engine hides every attribute whose name begins with _nc",
    "phony-names": "dimensions of files without dimension scales have no names: numbers differ",
}


def why(name):
    return FORCED[name]
