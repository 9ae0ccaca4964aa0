/* names.c - endings of names, in one table. */
#include "fusefs/names.h"

#include <stdio.h>
#include <string.h>

/* Of endings that end alike the longer comes first. A directory of any other name that is a Zarr
 * tree comes last. */
static const struct {
	const char *text;
	enum name_kind kind;
	unsigned rank;
} endings[] = {
	{".nc", NAME_HDF5, 0},   {".nc4", NAME_HDF5, 1}, {".h5", NAME_HDF5, 2},
	{".hdf5", NAME_HDF5, 3}, {".he5", NAME_HDF5, 4}, {".zarr", NAME_ZARR, 0},
	{".zr3", NAME_ZARR, 1},  {".zr2", NAME_ZARR, 2}, {".zarr.zip", NAME_ZARR, 3},
	{".zip", NAME_ZARR, 4},
};

enum { DIRECTORY_RANK = NAME_RANKS - 1 };

/* stem_of - how much of name stands before an ending of this kind, at least one byte; its row in
 * *ret_row. 0: it has none. */
static size_t stem_of(const char *name, size_t len, enum name_kind kind, size_t *ret_row)
{
	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		size_t n = strlen(endings[i].text);

		if (endings[i].kind == kind && len > n &&
		    memcmp(name + len - n, endings[i].text, n) == 0) {
			*ret_row = i;
			return len - n;
		}
	}
	return 0;
}

/* join - stem and ending; false when they are too long for a name. */
static bool join(const char *stem, size_t len, const char *ending, char out[NAME_BYTES])
{
	size_t n = strlen(ending);

	if (len + n >= NAME_BYTES)
		return false;
	memmove(out, stem, len);
	memcpy(out + len, ending, n + 1);
	return true;
}

void name_of_file(const char *path, char out[NAME_BYTES])
{
	size_t len = strlen(path), start, stem, row;

	while (len > 1 && path[len - 1] == '/')
		len--;
	for (start = len; start > 0 && path[start - 1] != '/';)
		start--;
	path += start;
	len -= start;
	stem = stem_of(path, len, NAME_ZARR, &row);
	if (!stem)
		stem = stem_of(path, len, NAME_HDF5, &row);
	if (!stem)
		stem = len;
	if (stem > NAME_BYTES - sizeof(".nc"))
		stem = NAME_BYTES - sizeof(".nc");
	while (stem && ((unsigned char)path[stem] & 0xc0) == 0x80)
		stem--;                           /* not into the middle of a character */
	if (!stem || strspn(path, "./") >= len) { /* "/", ".." */
		path = "source";
		stem = strlen(path);
	}
	(void)join(path, stem, ".nc", out); /* fits by construction */
}

enum name_kind name_counterpart(const char *name, bool is_dir, char out[NAME_BYTES],
				unsigned *ret_rank)
{
	size_t len = strlen(name), row = 0, stem;

	stem = stem_of(name, len, NAME_ZARR, &row);
	if (stem || is_dir) {
		*ret_rank = stem ? endings[row].rank : DIRECTORY_RANK;
		return join(name, stem ? stem : len, ".nc", out) ? NAME_ZARR : NAME_PLAIN;
	}
	stem = stem_of(name, len, NAME_HDF5, &row);
	if (!stem)
		return NAME_PLAIN;
	*ret_rank = endings[row].rank;
	return join(name, stem, ".zarr", out) ? NAME_HDF5 : NAME_PLAIN;
}

enum name_kind name_source(const char *name, unsigned rank, char out[NAME_BYTES],
			   bool *ret_dir_only)
{
	static const char zarr[] = ".zarr", nc[] = ".nc";
	size_t len = strlen(name);
	const char *own =
		len > sizeof(zarr) - 1 && strcmp(name + len - (sizeof(zarr) - 1), zarr) == 0
			? zarr
			: nc;
	enum name_kind kind = own == zarr ? NAME_HDF5 : NAME_ZARR;
	const char *ending = kind == NAME_ZARR && rank == DIRECTORY_RANK ? "" : NULL;
	char back[NAME_BYTES];
	unsigned found;

	if (len <= strlen(own) || strcmp(name + len - strlen(own), own) != 0)
		return NAME_PLAIN;
	for (size_t i = 0; i < ARRAY_LEN(endings); i++)
		if (endings[i].kind == kind && endings[i].rank == rank)
			ending = endings[i].text;
	if (!ending || !join(name, len - strlen(own), ending, out))
		return NAME_PLAIN;
	*ret_dir_only = !*ending;
	/* "a.zarr.nc" is nobody's counterpart by way of "a.zarr", which has "a.nc" */
	if (name_counterpart(out, *ret_dir_only, back, &found) != kind || found != rank)
		return NAME_PLAIN;
	return kind;
}
