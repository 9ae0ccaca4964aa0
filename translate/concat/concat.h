/* SPDX-License-Identifier: BSD-3-Clause */
/* concat.h - many datasets as one: files whose arrays continue each other along one dimension are a
 * source as if they were one file. docs/how-to/many-files-as-one.md has the rules,
 * docs/dev/concat.md the design.
 *
 * It stands on the source contract and knows no format: members are opened as any source is, a
 * few at a time, when their chunks are asked for. Where the chunk grids of all members line up a
 * chunk is a member's own, byte for byte; else chunks are made of the pieces that members have. */
#ifndef TRANSLATE_CONCAT_CONCAT_H
#define TRANSLATE_CONCAT_CONCAT_H

#include "translate/contract/source.h"

struct concat_options {
	const char *dim;         /* the dimension, in whatever group */
	bool equal;              /* variables without it must be equal in all members; else they
	                          * are the first's */
	const char *index_file;  /* where what is known of members is kept; NULL: nowhere */
	uint32_t open_members;   /* so many are open at a time, at most, but for those in use */
	uint64_t cache_bytes;    /* memory for decoded chunks of members */
	/* in a directory: whether a name is one of a dataset, so that what has it and is none is an
	 * error; NULL: no name is */
	bool (*named)(const char *name, bool is_dir);
	const struct source_options *source; /* for members; what it points to outlives the join */
};

extern const struct source_ops
	concat_source_ops; /* of what concat_open gives; it bids for nothing */

/* concat_open - the datasets that a pattern names as one.
 * formats  n rows, borrowed for the source's life
 * pattern  with '*', '?' or '[', as glob(3) has them; or a directory: all datasets in it, and
 *          what is called like one
 * Returns 0 with *ret new (source_close it); -ENOENT nothing matches; -EINVAL they cannot be
 * joined: the text names the member and what is different; or why a member cannot be opened. */
int concat_open(const struct source_ops *const *formats, size_t n, const char *pattern,
		const struct concat_options *opts, struct source **ret,
		struct err *e) NZ_MUST_USE;

/* concat_format - the format of the first member, by which a view is chosen; of any other source
 * its own. Borrowed. */
const struct source_ops *concat_format(const struct source *s);

/* concat_folder - the directory that a pattern is looked for in: all before the first wildcard's
 * name, or the directory itself. New text, free it; NULL when memory is short. */
char *concat_folder(const char *pattern);

/* concat_index_may_be - whether an index may be kept there: one is, or an empty file, or
 * nothing. */
bool concat_index_may_be(const char *path);

/* concat_is_pattern - whether a path has characters that glob(3) takes for more than themselves. */
bool concat_is_pattern(const char *path);

#endif
