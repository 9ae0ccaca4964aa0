/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset_names.c - names of converted views, by the endings of datasets (base/core/endings.h). */
#include "fusefs/app/dataset_names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/core/endings.h"
#include "translate/model/chunk_rule.h"

enum {
	DIRECTORY_RANK = 5, /* a directory of any other name that is a Zarr store */
	CAPITALS_RANK = 10, /* first rank of endings in capital letters */
};

/* Endings of converted views. */
static const char *const own[] = {
	[NAME_TREE] = ".zarr", [NAME_FILE] = ".nc", [NAME_NC4] = ".nc4"};

static bool means_tree(enum ending means)
{
	return means == ENDING_TREE || means == ENDING_ZIP;
}

static bool means_file(enum ending means)
{
	return ending_is_netcdf4(means) || means == ENDING_CLASSIC || means == ENDING_HDF4;
}

/* dataset_names_has - true if a dataset with this ending may have a converted view of this kind. */
static bool dataset_names_has(enum ending means, enum name_kind kind)
{
	return kind == NAME_FILE   ? means_tree(means)
	       : kind == NAME_TREE ? means_file(means)
				   : means == ENDING_NETCDF || means == ENDING_CLASSIC ||
					     means == ENDING_HDF4;
}

/* in_case - an ending in small letters or capitals. */
static const char *in_case(const char *ending, bool capitals, char out[16])
{
	size_t i;

	for (i = 0; ending[i] && i < 15; i++)
		out[i] = capitals ? (char)toupper((unsigned char)ending[i]) : ending[i];
	out[i] = '\0';
	return out;
}

/* rank_of - rank of a row among those with the same converted views. */
static unsigned rank_of(const struct ending_row *row)
{
	unsigned rank = 0;

	for (const struct ending_row *r = ending_rows; r < row; r++)
		rank += means_tree(r->means) == means_tree(row->means);
	return rank;
}

/* stem_of - length of name before an ending that may have a converted view of this kind, at least
 * one byte; the ending's rank in *ret_rank. An ending counts in small letters or in capitals, not
 * mixed, because the reverse direction tries each case. 0: no such ending. */
static size_t stem_of(const char *name, size_t len, enum name_kind kind, unsigned *ret_rank)
{
	for (const struct ending_row *row = ending_rows; row < ending_rows + ENDING_ROWS; row++)
		for (int capitals = 0; capitals < 2; capitals++) {
			const size_t n = strlen(row->text);
			char text[16];

			if (!dataset_names_has(row->means, kind) || len <= n ||
			    memcmp(name + len - n, in_case(row->text, capitals, text), n) != 0)
				continue;
			*ret_rank = rank_of(row) + (capitals ? CAPITALS_RANK : 0);
			return len - n;
		}
	return 0;
}

/* dataset_names_join - concatenate stem and ending; false if the result is too long for a name. */
static bool dataset_names_join(const char *stem, size_t len, const char *ending,
			       char out[NAME_BYTES])
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
	size_t len = strlen(path), start, stem = 0;
	const struct ending_row *row;

	while (len > 1 && path[len - 1] == '/')
		len--;
	for (start = len; start > 0 && path[start - 1] != '/';)
		start--;
	path += start;
	len -= start;
	row = ending_find(path, len, &stem);
	if (!row || (!means_tree(row->means) && !means_file(row->means)))
		stem = len;
	if (stem > NAME_BYTES - sizeof(".nc"))
		stem = NAME_BYTES - sizeof(".nc");
	while (stem && ((unsigned char)path[stem] & 0xc0) == 0x80)
		stem--;                           /* not into the middle of a character */
	if (!stem || strspn(path, "./") >= len) { /* "/", ".." */
		path = "source";
		stem = strlen(path);
	}
	(void)dataset_names_join(path, stem, ".nc", out); /* fits by construction */
}

bool name_counterpart(const char *name, bool is_dir, enum name_kind kind, char out[NAME_BYTES],
		      unsigned *ret_rank)
{
	size_t len = strlen(name), stem = 0;

	if (!is_dir || kind == NAME_FILE)
		stem = stem_of(name, len, kind, ret_rank);
	if (!stem && !(is_dir && kind == NAME_FILE))
		return false;
	if (!stem)
		*ret_rank = DIRECTORY_RANK;
	return dataset_names_join(name, stem ? stem : len, own[kind], out);
}

/* dataset_names_kind_of - kind of converted view that a name denotes, and its stem's length. */
static enum name_kind dataset_names_kind_of(const char *name, size_t *ret_stem)
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
	const enum name_kind kind = dataset_names_kind_of(name, &stem);
	const char *ending = kind == NAME_FILE && rank == DIRECTORY_RANK ? "" : NULL;
	const bool capitals = rank >= CAPITALS_RANK;
	char back[NAME_BYTES], room[16];
	unsigned found;

	if (kind == NAME_PLAIN)
		return NAME_PLAIN;
	for (size_t i = 0; i < ENDING_ROWS && !ending; i++)
		if (dataset_names_has(ending_rows[i].means, kind) &&
		    rank_of(&ending_rows[i]) + (capitals ? CAPITALS_RANK : 0) == rank)
			ending = in_case(ending_rows[i].text, capitals, room);
	if (!ending || !dataset_names_join(name, stem, ending, out))
		return NAME_PLAIN;
	*ret_dir_only = !*ending;
	/* "a.zarr.nc" is not a converted view of "a.zarr", whose view is "a.nc" */
	if (!name_counterpart(out, *ret_dir_only, kind, back, &found) || found != rank)
		return NAME_PLAIN;
	return kind;
}

enum name_kind name_shaped(const char *name, char out[NAME_BYTES], char rule[NAME_BYTES])
{
	const char *at = strrchr(name, '@');
	size_t stem = 0;
	const enum name_kind kind = dataset_names_kind_of(name, &stem);
	const char *const text[] = {rule};

	if ((kind != NAME_TREE && kind != NAME_FILE) || !at || at == name ||
	    !dataset_names_join(name, (size_t)(at - name), name + stem, out))
		return NAME_PLAIN;
	stem -= (size_t)(at + 1 - name);
	memcpy(rule, at + 1, stem);
	rule[stem] = '\0';
	if (kind == NAME_FILE && strcmp(rule, NAME_CLASSIC) == 0)
		return NAME_SHAPED_FILE;
	if (chunk_rules_check("rechunk", text, 1, NULL) < 0)
		return NAME_PLAIN;
	return kind == NAME_TREE ? NAME_SHAPED_TREE : NAME_SHAPED_FILE;
}

bool name_other(const char *name, char out[NAME_BYTES])
{
	size_t stem = 0;
	const enum name_kind kind = dataset_names_kind_of(name, &stem);

	return (kind == NAME_TREE || kind == NAME_FILE) &&
	       dataset_names_join(name, stem, own[kind == NAME_TREE ? NAME_FILE : NAME_TREE],
				  out);
}

bool name_of_new(const char *name, bool is_dir, char out[NAME_BYTES])
{
	size_t stem = 0;

	return dataset_names_kind_of(name, &stem) == (is_dir ? NAME_TREE : NAME_FILE) &&
	       name_other(name, out);
}

bool name_says_dataset(const char *name, bool is_dir)
{
	const size_t len = strlen(name);
	size_t stem;
	const struct ending_row *row = ending_find(name, len, &stem);

	if (!row)
		return false;
	return row->means == ENDING_TREE ||
	       (!is_dir && (means_file(row->means) || strcmp(row->text, ".zarr.zip") == 0));
}
