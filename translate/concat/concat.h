/* SPDX-License-Identifier: BSD-3-Clause */
/* concat.h - many datasets as one: files whose arrays continue each other along one dimension are
 * presented as one file. docs/how-to/many-files-as-one.md has the rules, docs/dev/concat.md the
 * design.
 *
 * It uses the source contract and knows no format: members are opened like any source, a few at a
 * time, when their chunks are requested. If the chunk grids of all members line up, a chunk is a
 * member's own, byte for byte; else chunks are made of the members' parts. */
#ifndef TRANSLATE_CONCAT_CONCAT_H
#define TRANSLATE_CONCAT_CONCAT_H

#include "translate/contract/source.h"

struct concat_options {
	const char *dim;         /* the dimension, in whatever group */
	bool equal;              /* variables without it must be equal in all members; else they are
				  * those of the first */
	const char *index_file;  /* file that caches information on members; NULL: none */
	uint32_t open_members;   /* most members that are open at a time, apart from those in use */
	uint64_t cache_bytes;    /* memory for decoded chunks of members */
	/* in a directory: whether a name is that of a dataset, so that an entry with it that is
	 * none is an error; NULL: no name is */
	bool (*named)(const char *name, bool is_dir);
	const struct source_options *source; /* for members; the data it points to outlive the
					      * concatenation */
};

extern const struct source_ops
	concat_source_ops; /* of the result of concat_open; it never bids */

/* concat_open - open the datasets that match a pattern as one.
 * formats  n rows, borrowed for the source's life
 * pattern  with '*', '?' or '[', as in glob(3); or a directory: all datasets in it, and
 *          entries that have the name of one
 * Returns 0 with *ret new (source_close it); -ENOENT nothing matches; -EINVAL they cannot be
 * concatenated: the message names the member and the difference; or the error of a member that
 * cannot be opened. */
int concat_open(const struct source_ops *const *formats, size_t n, const char *pattern,
		const struct concat_options *opts, struct source **ret,
		struct err *e) NZ_MUST_USE;

/* concat_format - the format of the first member, which determines the view; of any other source
 * its own. Borrowed. */
const struct source_ops *concat_format(const struct source *s);

/* The number of files, in turn, whose identity one source_poll of a concatenation examines. */
#define CONCAT_FILES_POLLED 2048

/* concat_files - the number of files of a concatenation; 1: of any other source. */
uint32_t concat_files(const struct source *s);

/* concat_folder - the directory in which a pattern is searched: the path before the first component
 * with a wildcard, or the directory itself. New string, free it; NULL if memory is short. */
char *concat_folder(const char *pattern);

/* concat_index_may_be - whether path may hold an index: it is one, or empty, or does not exist. */
bool concat_index_may_be(const char *path);

/* concat_is_pattern - whether a path has wildcards of glob(3). */
bool concat_is_pattern(const char *path);

#endif
