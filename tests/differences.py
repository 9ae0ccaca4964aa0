# SPDX-License-Identifier: BSD-3-Clause
"""Differences that the formats and the readers force, in one place;
docs/reference/differences.md shows the same to people (scripts/check-docs compares the two). The
comparers name the row in a comment where they accept a difference; any other difference is a
failure."""

FORCED = {
    # what the mount shows
    "left-out": "references, times, nested vlens and integers above 64 bits have no Zarr v2 form: "
                "they are left out and named in a note, as are external links that lead elsewhere",
    "enum-attrs": "Zarr v2 has no enum: the base integers are shown, the attributes flag_values "
                  "and flag_meanings are added",
    "long-double": "floats above 64 bits are presented as f8",
    "padded-compound": "a structured dtype in .zarray cannot state gaps: fields are packed",
    "latin1-text": "JSON and vlen-utf8 hold UTF-8 only: other bytes are taken as Latin-1",
    "attr-shape": "an attribute of one element is a JSON scalar",
    "attr-type": "JSON has one integer and one real type: an attribute's width is not kept "
                 "(mode=nczarr keeps it)",
    "null-attr": "an attribute without elements is an empty text",
    "nan-payload": "a fill value that is NaN is \"NaN\" in JSON, which has no payload",
    "reserved-name": "an object called like one of Zarr's own files is shown with %2E for the "
                     "dot, a backslash, which zarr-python takes for a slash, as %5C",
    "wrong-scale": "a fixed dimension whose dimension scale has another length: netCDF-C goes by "
                   "the scale and reads past the data, the mount goes by the data",
    "linked-dims": "a dimension scale with several links: netCDF-C and the mount may choose "
                   "another of its names",
    "phony-names": "dimensions without scales have no names: netCDF-C's numbers may differ",
    "scalar-nczarr": "mode=nczarr shows scalars with shape [1], as netCDF-C before 4.10 needs",
    "utf8-nczarr": "netCDF-C cannot read \\u escapes and zarr-python 2.13 takes metadata for "
                   "ASCII: mode=zarr escapes, mode=nczarr does not",
    "type-names": "a file shown as a netCDF file (view=nc): compound, opaque and vlen types are "
                  "called after the first variable that has them",
    "classic-model": "the same: it is never of netCDF's classic model, which only matters to "
                     "writers",
    "classic-short": "a classic netCDF file that ends before its data: netCDF-C gives zeros, the "
                     "mount errors",
    "classic-streaming": "a classic netCDF file that does not say how many records it has: "
                         "netCDF-C takes the mark for 4294967295, the mount counts",
    # what readers do
    "endian-xarray": "xarray's netCDF engine gives native byte order, its Zarr engine the file's",
    "compound-xarray": "xarray cannot swap the bytes of compounds, and opens no dataset where a "
                       "compound has a _FillValue, from netCDF-4 either",
    "vlen-xarray": "netCDF4-python gives the base type for the dtype of lists",
    "half-netcdf": "netCDF-C gives float for half floats, the mount the half floats",
    "narrow-netcdf": "netCDF-C shows integers by the bits that they use, h5py and the mount by the "
                     "size that they have",
    "nc-attributes": "xarray's Zarr engine hides attributes whose name begins with _nc; "
                     "netCDF4-python does not show attributes of enum, opaque and vlen types and "
                     "of several dimensions: h5py is the judge",
    "netcdf-padding": "netCDF-C 4.9 fills up a variable that is shorter than its unlimited "
                      "dimension wrongly in some cases: h5py and the fill value are the judge",
    "netcdf-undefined": "elements never written, without a fill value: netCDF-C gives what was "
                        "in memory, h5py and the mount give zeros",
    "netcdf-490": "netCDF-C 4.9.0 (Debian) takes a mount for pure Zarr: it infers the types of "
                  "attributes, puts all dimensions into the root group, swaps big-endian data, "
                  "and crashes on char, string and user-defined types: such files are not asked",
    # a Zarr tree as a netCDF file
    "text-chars": "texts of a fixed size are characters with one more dimension: netCDF-C "
                  "4.9.0 misreads HDF5's strings of a fixed size; NCZarr's strings are such "
                  "texts too",
    "text-utf8": "texts of n code points are UTF-8 in 4n bytes",
    "text-fill": "xarray makes texts that equal the tree's fill value NaN, a netCDF char has "
                 "none",
    "bool-byte": "netCDF has no bool: signed bytes with xarray's attribute dtype",
    "time-units": "netCDF has no dates: whole numbers with units, or with numpy_dtype where "
                  "CF has no word for the unit",
    "struct-parts": "gaps and titles of structures are left out; booleans, characters and "
                    "times in them are whole numbers, with numpy_dtype",
    "json-attr": "null, objects, mixed and nested lists are attributes of JSON text; a list "
                 "of several dimensions has one",
    "own-attr": "attributes whose names belong to netCDF or to dimension scales are left out",
    "fill-attr": "a _FillValue that no element of the variable could equal is left out; one "
                 "is added where xarray takes fill_value for it",
    "netcdf-name": "names that netCDF does not allow are written with %XX",
    "dim-dataset": "h5py shows a dimension without a variable as a dataset, as in every "
                   "netCDF-4 file",
    "empty-dim": "netCDF-C shows a dimension of length 0 as unlimited",
    "opaque-netcdf": "netCDF4-python, and xarray with it, leaves opaque types out",
    "consolidated": "consolidated metadata is believed, as by xarray: what it does not name "
                    "is not there",
    # there and back, and damage
    "round-types": "a Zarr tree knows no types of the file's own: mode=nczarr leaves their "
                 "variables out, mode=zarr keeps structures and lists without the names of "
                 "their types",
    "round-strings": "strings of NCZarr have a fixed length: through mode=nczarr they come back "
                 "as characters",
    "round-dims": "mode=zarr keeps neither unlimited dimensions, nor those without a variable, "
                 "nor the group that one belongs to, nor the order of variables",
    "round-fill": "a _FillValue of another type than its variable comes back with the variable's "
                 "type, or not at all",
    "page-error": "an error takes a page of 4096 bytes: smaller chunks beside a damaged one "
                 "cannot be read either",
    "passed-damage": "a compressed chunk that is passed as it is and holds too few elements: HDF5 "
                 "reads what happens to be in memory for the rest; with filter=none it is an "
                 "error",
}
