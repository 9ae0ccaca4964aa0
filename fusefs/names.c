/* names.c - endings of names, in one table. */
#include "fusefs/names.h"

#include <stdio.h>
#include <string.h>

/* What is in a file of such a name, as far as its name says. */
enum family { OF_FILES, OF_OLD_FILES, OF_TREES };

/* Of endings that end alike the longer comes first. A directory of any other name that is a Zarr
 * tree comes last. */
static const struct {
	const char *text;
	enum family family;
	unsigned rank;
} endings[] = {
	{".nc", OF_OLD_FILES, 0},  {".nc4", OF_FILES, 1},      {".h5", OF_FILES, 2},
	{".hdf5", OF_FILES, 3},    {".he5", OF_FILES, 4},      {".nc3", OF_OLD_FILES, 5},
	{".cdf", OF_OLD_FILES, 6}, {".hdf", OF_OLD_FILES, 7},  {".hdf4", OF_OLD_FILES, 8},
	{".h4", OF_OLD_FILES, 9},  {".zarr", OF_TREES, 0},     {".zr3", OF_TREES, 1},
	{".zr2", OF_TREES, 2},     {".zarr.zip", OF_TREES, 3}, {".zip", OF_TREES, 4},
};

enum { DIRECTORY_RANK = 5 };

/* What counterparts are called. */
static const char *const own[] = {
	[NAME_TREE] = ".zarr", [NAME_FILE] = ".nc", [NAME_NC4] = ".nc4"};

/* has - whether what lies behind a name of this family may have such a counterpart. */
static bool has(enum family family, enum name_kind kind)
{
	return kind == NAME_FILE   ? family == OF_TREES
	       : kind == NAME_TREE ? family != OF_TREES
				   : family == OF_OLD_FILES;
}

/* stem_of - how much of name stands before an ending that may have such a counterpart, at least
 * one byte; its row in *ret_row. 0: it has none. */
static size_t stem_of(const char *name, size_t len, enum name_kind kind, size_t *ret_row)
{
	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		size_t n = strlen(endings[i].text);

		if (has(endings[i].family, kind) && len > n &&
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
	stem = stem_of(path, len, NAME_FILE, &row);
	if (!stem)
		stem = stem_of(path, len, NAME_TREE, &row);
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

bool name_counterpart(const char *name, bool is_dir, enum name_kind kind, char out[NAME_BYTES],
		      unsigned *ret_rank)
{
	size_t len = strlen(name), row = 0, stem = 0;

	if (!is_dir || kind == NAME_FILE)
		stem = stem_of(name, len, kind, &row);
	if (!stem && !(is_dir && kind == NAME_FILE))
		return false;
	*ret_rank = stem ? endings[row].rank : DIRECTORY_RANK;
	return join(name, stem ? stem : len, own[kind], out);
}

/* kind_of - which kind of counterpart is called like this; its stem's length. */
static enum name_kind kind_of(const char *name, size_t *ret_stem)
{
	const size_t len = strlen(name);

	for (enum name_kind kind = NAME_TREE; kind <= NAME_NC4; kind++) {
		const size_t n = strlen(own[kind]);

		if (len > n && strcmp(name + len - n, own[kind]) == 0) {
			*ret_stem = len - n;
			return kind;
		}
	}
	return NAME_PLAIN;
}

enum name_kind name_source(const char *name, unsigned rank, char out[NAME_BYTES],
			   bool *ret_dir_only)
{
	size_t stem = 0;
	const enum name_kind kind = kind_of(name, &stem);
	const char *ending = kind == NAME_FILE && rank == DIRECTORY_RANK ? "" : NULL;
	char back[NAME_BYTES];
	unsigned found;

	if (kind == NAME_PLAIN)
		return NAME_PLAIN;
	for (size_t i = 0; i < ARRAY_LEN(endings); i++)
		if (has(endings[i].family, kind) && endings[i].rank == rank)
			ending = endings[i].text;
	if (!ending || !join(name, stem, ending, out))
		return NAME_PLAIN;
	*ret_dir_only = !*ending;
	/* "a.zarr.nc" is nobody's counterpart by way of "a.zarr", which has "a.nc" */
	if (!name_counterpart(out, *ret_dir_only, kind, back, &found) || found != rank)
		return NAME_PLAIN;
	return kind;
}

bool name_says_dataset(const char *name, bool is_dir)
{
	const size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		const size_t n = strlen(endings[i].text);
		const bool zip = strcmp(endings[i].text, ".zip") == 0;
		const bool whole = strcmp(endings[i].text, ".zarr.zip") == 0;

		if (len <= n || memcmp(name + len - n, endings[i].text, n) != 0)
			continue;
		return is_dir ? endings[i].family == OF_TREES && !zip && !whole : !zip;
	}
	return false;
}
