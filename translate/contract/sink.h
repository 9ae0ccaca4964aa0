/* SPDX-License-Identifier: BSD-3-Clause */
/* sink.h - the sink contract: a dataset on disk that is brought from one state to another.
 *
 * diff/diff.h compares two models and calls a sink; a sink knows its format and how to make a
 * change that is whole or not at all. Until commit has been called nothing that it does can be seen
 * by a reader of the dataset, and everything that the old state refers to can still be read, so
 * that chunks may be copied from it. One thread at a time.
 *
 * Two models are in play, both read through the same view of the dataset, so that what the view
 * cannot express is in neither and is left as it is: `was`, what the view shows of the dataset, and
 * `now`, what it is to show. Objects that are in both are named by path (ds_array_path). The sink
 * has opened the dataset itself, too (its `real`), and knows which of its objects a path means. */
#ifndef TRANSLATE_CONTRACT_SINK_H
#define TRANSLATE_CONTRACT_SINK_H

#include "codecs/numeric/quant.h"
#include "translate/contract/source.h"

struct sink;

/* sink_names - which objects of the real dataset the paths of a view mean; DS_NONE: none, it is
 * new. NULL instead of it: the view's paths are those of the dataset. */
struct sink_names {
	uint32_t (*array)(void *arg, const char *path);
	uint32_t (*group)(void *arg, const char *path);
	uint32_t (*dim)(void *arg, const char *path);
	void *arg;
};

/* sink_new - how an array that is made is to be stored. */
struct sink_new {
	const uint64_t *chunk;     /* rank entries, elements; NULL: as the model has them */
	struct codec_chain chain;  /* with prepared parameters, as a user or the writer wants it */
	bool contiguous;           /* in one piece, where the format knows that; chain is empty */
};

/* sink_array - how an array of the dataset is stored. Borrowed from the sink until it changes the
 * array. */
struct sink_array {
	const uint64_t *chunk;     /* rank entries, elements: the boxes that put takes. NULL: those
	                            * of `now`, whatever they are */
	struct codec_chain chain;  /* stored chunks have been through it */
	bool takes_stored;         /* put takes chunks that are stored already */
};

/* sink_chunk - the content of one chunk, whole, also where the array ends inside of it. */
struct sink_chunk {
	bool stored;               /* has been through the target's chain; else elements as
	                            * source_read_chunk or source_read_vlen of `now` give them */
	uint32_t filter_mask;      /* stored: as in struct chunk_ref */
	const uint8_t *p;
	size_t len;
};

struct sink_ops {
	const char *name;  /* "netCDF-4" */

	/* close - a sink without a commit has changed nothing. */
	void (*close)(struct sink *s);

	/* begin - once, before all others; both sources are borrowed until close. */
	int (*begin)(struct sink *s, struct source *was, struct source *now, struct err *e);

	/* Changes come in this order: removed objects, children before parents; new objects,
	 * parents before children; then dims, once; then sizes, attributes and chunks in any order.
	 * Ordinals of removed objects are those of `was`, all others of `now`. */
	int (*remove_array)(struct sink *s, uint32_t array, struct err *e);
	int (*remove_group)(struct sink *s, uint32_t group, struct err *e);
	int (*add_group)(struct sink *s, uint32_t group, struct err *e);
	/* add_array - everything about it but its chunks: type, fill value, dimensions and
	 * attributes are those of `now`. */
	int (*add_array)(struct sink *s, uint32_t array, const struct sink_new *how,
			 struct err *e);
	/* rename_array - array `was` becomes array `now`, which is like it but for name, group
	 * and attributes (those are told apart with set_attr). NULL: it is removed and added. */
	int (*rename_array)(struct sink *s, uint32_t was, uint32_t now, struct err *e);
	/* dims - bring the dimensions in line with `now`: new ones, other lengths, names and
	 * limits, other dimensions of arrays that stay. Remove those that no array uses any more
	 * and that `now` does not have. */
	int (*dims)(struct sink *s, struct err *e);
	/* resize - the shape of an array that stays is another one; rank and chunks are not. */
	int (*resize)(struct sink *s, uint32_t array, struct err *e);
	/* set_attr, remove_attr - of an array, or of a group when array is DS_NONE. */
	int (*set_attr)(struct sink *s, uint32_t group, uint32_t array, const struct ds_attr *a,
			struct err *e);
	int (*remove_attr)(struct sink *s, uint32_t group, uint32_t array, const char *name,
			   struct err *e);

	/* target - how an array of `now` is stored in the dataset. */
	int (*target)(struct sink *s, uint32_t array, struct sink_array *ret, struct err *e);
	/* put - chunk `linear` of the grid that target's chunk lengths make. */
	int (*put)(struct sink *s, uint32_t array, uint64_t linear, const struct sink_chunk *c,
		   struct err *e);
	/* drop - make the chunk read as the fill value. */
	int (*drop)(struct sink *s, uint32_t array, uint64_t linear, struct err *e);

	/* commit - all of it becomes the dataset, durably; or, on failure, none of it. gate, when
	 * not NULL, is called right before the first byte changes that a reader of the old state
	 * may see; when it fails nothing has happened. */
	int (*commit)(struct sink *s, int (*gate)(void *arg, struct err *e), void *arg,
		      struct err *e);
};

/* sink - embedded first in every implementation. */
struct sink {
	const struct sink_ops *ops;
};

static inline void sink_close(struct sink *s)
{
	if (s)
		s->ops->close(s);
}

#endif
