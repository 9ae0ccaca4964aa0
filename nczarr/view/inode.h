/* SPDX-License-Identifier: BSD-3-Clause */
/* inode.h - the id space of a Zarr tree: every file and directory is a number computed from the
 * model, and back. One sorted table of n_arrays + 1 offsets is all the memory there is.
 *
 *   1 ..                 groups (1 is the root)
 *   then                 array directories
 *   then                 metadata files: for each group as many slots as the root has documents,
 *                        then for each array as many as it has
 *   then, by array       where its keys are nested: the directories below the array's, level by
 *                        level, each in linear order; then the files of the grid in linear order
 */
#ifndef NCZARR_VIEW_INODE_H
#define NCZARR_VIEW_INODE_H

#include "nczarr/documents.h"
#include "nczarr/chunk_key.h"

enum zr_kind { ZR_GROUP, ZR_ARRAY, ZR_DOC, ZR_PREFIX, ZR_CHUNK };

/* zr_node - meaning of an id. */
struct zr_node {
	enum zr_kind kind;
	enum zr_doc doc; /* ZR_DOC */
	uint32_t ord;    /* group or array ordinal; for a document that of its group or array */
	uint32_t level;  /* ZR_PREFIX: number of parts of its key, 1 .. zr_key_levels */
	uint64_t index;  /* ZR_PREFIX: linear index over the first `level` parts of keys;
			  * ZR_CHUNK: linear index in the grid of files, chunks or shards */
};

struct zr_inodes {
	const struct dataset *ds; /* borrowed, as are the next two */
	const struct zr_format *format;
	const struct zr_grid *grids; /* n_arrays */
	uint64_t arrays; /* first ids of array directories, of documents of groups and of arrays */
	uint64_t docs, array_docs;
	uint64_t *base;        /* n_arrays + 1: first id of each array's interval; owned */
};

/* zr_inodes_init - lay out the space below `limit`. ids->ds, format and grids are set. hidden:
 * n_arrays flags; a hidden array gets no interval, and an array whose interval would exceed the
 * limit becomes hidden. Returns 0 (zr_inodes_release); -ENOMEM; -ERANGE if even groups and arrays
 * do not fit. */
int zr_inodes_init(struct zr_inodes *ids, uint64_t limit, bool *hidden,
		   struct err *e) NZ_MUST_USE;
void zr_inodes_release(struct zr_inodes *ids);

/* zr_inodes_find - the node of an id. Returns 0, or -ESTALE: no such id. */
int zr_inodes_find(const struct zr_inodes *ids, uint64_t id, struct zr_node *ret) NZ_MUST_USE;
/* zr_inodes_of - the id of an existing node. */
uint64_t zr_inodes_of(const struct zr_inodes *ids, const struct zr_node *node);

#endif
