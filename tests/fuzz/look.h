/* SPDX-License-Identifier: BSD-3-Clause */
/* look.h - everything of a source seen through the views, without a mount: every directory is
 * listed, twice and from its middle, every name looked up, every file read to its end and once
 * more in other pieces, every extended attribute read.
 *
 * Properties, each an abort when it does not hold: what is listed can be looked up and is the
 * same node; a name that is not listed is not there; a file that can be read has exactly as many
 * bytes as its attributes say, and the same ones again; errors are errnos and say what is wrong. */
#ifndef TESTS_FUZZ_LOOK_H
#define TESTS_FUZZ_LOOK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hdf5view/hdf5view.h"
#include "nczarr/nczarr.h"
#include "tests/fuzz/rules.h"

#define LOOK_ENTRIES ((uint32_t)1500) /* of one view; what is beyond is left out */
#define LOOK_BYTES ((uint64_t)16 << 20)
#define LOOK_PIECE ((size_t)50000) /* odd on purpose */
#define LOOK_DEPTH 64

/* look - what was seen. */
struct look {
	uint64_t mounted, refused;     /* views, sources */
	uint64_t names, bytes, failed; /* failed: files that cannot be read, or only partly */
	char why[ERR_TEXT_MAX];        /* the last refusal */
};

struct look_walk {
	struct view *v;
	struct look *sum;
	uint32_t entries, depth;
	uint64_t bytes;
	uint64_t parent; /* whose entries are being listed */
	bool steady; /* no library in a process of its own: what could be read can be again */
};

#define look_require(ok)                                                                       \
	do {                                                                                   \
		if (!(ok)) {                                                                   \
			(void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #ok); \
			abort();                                                               \
		}                                                                              \
	} while (0)

/* look_made - libhdf5 makes virtual files in a process of its own: what that one dies of is a
 * finding as well. Status 255 is the library's way out where memory is short. */
static inline void look_made(const struct err *e)
{
	const char *who = strstr(e->msg, "process that builds the netCDF file ");

	look_require(!who || (!strstr(who, "crashed") && !strstr(who, "must not make") &&
			      (!strstr(who, "ended (") || strstr(who, "status 255"))));
}

static inline bool look_full(const struct look_walk *w)
{
	return w->entries >= LOOK_ENTRIES || w->bytes >= LOOK_BYTES;
}

/* look_sum - of what a read gave. */
static inline uint64_t look_sum(const struct span *s, uint64_t sum)
{
	static uint8_t piece[LOOK_PIECE];
	const uint8_t *p = s->mem;

	if (!p && s->len) {
		look_require(s->fd >= 0 && s->len <= sizeof(piece));
		look_require(pread(s->fd, piece, s->len, (off_t)s->off) == (ssize_t)s->len);
		p = piece;
	}
	for (size_t i = 0; i < s->len; i++)
		sum = (sum ^ p[i]) * 1099511628211u;
	for (size_t i = 0; i < s->zeros; i++)
		sum *= 1099511628211u;
	return sum;
}

/* look_read - all of a file. Returns whether that could be done; *sum of what was read. */
static inline bool look_read(struct look_walk *w, const struct view_attr *attr, size_t piece,
			     uint64_t *sum)
{
	static uint8_t room[LOOK_PIECE];
	uint64_t at = 0;

	*sum = 14695981039346656037u;
	while (at < attr->size && w->bytes < LOOK_BYTES) {
		struct span s = {0};
		struct err e = ERR_INIT;
		size_t n;
		int rc = w->v->ops->read(w->v, attr->id, 0, at, piece, room, &s, &e);

		look_require(rc <= 0 && rc > -4096 && rc != -ENOENT && rc != -EINVAL);
		if (rc < 0) {
			look_require(e.msg[0] != '\0');
			look_made(&e);
			return false;
		}
		n = s.len + s.zeros;
		look_require(n > 0 && n <= piece && n <= attr->size - at);
		*sum = look_sum(&s, *sum);
		span_done(&s);
		at += n;
		w->bytes += n;
	}
	return true;
}

static inline void look_file(struct look_walk *w, const struct view_attr *attr)
{
	uint64_t first, again, limit = w->bytes;
	bool ok = look_read(w, attr, LOOK_PIECE, &first);

	w->sum->failed += !ok;
	w->sum->bytes += w->bytes - limit;
	if (!ok || w->bytes >= LOOK_BYTES)
		return;
	limit = w->bytes;
	if (!look_read(w, attr, 4096 + attr->id % 1000, &again))
		look_require(!w->steady);
	else if (w->bytes < LOOK_BYTES)
		look_require(first == again);
	w->bytes = limit; /* the second time is not counted */
	if (attr->size > 0) {
		struct span s = {0};
		struct err e = ERR_INIT;
		uint8_t byte;

		if (w->v->ops->read(w->v, attr->id, 0, attr->size, 1, &byte, &s, &e) == 0) {
			look_require(s.len + s.zeros == 0);
			span_done(&s);
		}
	}
}

static inline void look_xattrs(struct look_walk *w, uint64_t id)
{
	struct err e = ERR_INIT;
	struct buf names, value;

	if (!w->v->ops->xattr)
		return;
	buf_init(&names, 1 << 16);
	buf_init(&value, 1 << 16);
	if (w->v->ops->xattr(w->v, id, NULL, &names, &e) == 0 && names.len > 0) {
		look_require(names.data[names.len - 1] == '\0');
		for (size_t at = 0; at < names.len;) {
			const char *name = (const char *)names.data + at;
			int rc;

			buf_clear(&value);
			rc = w->v->ops->xattr(w->v, id, name, &value, &e);
			look_require(rc <= 0 && rc != -ENODATA);
			at += strlen(name) + 1;
		}
	}
	buf_release(&names);
	buf_release(&value);
}

static inline void look_dir(struct look_walk *w, uint64_t dir);

static inline bool look_entry(void *arg, const char *name, uint64_t id, bool is_dir,
			      const struct view_attr *attr, uint64_t next)
{
	struct look_walk *w = arg;
	struct view_attr by_name, by_id;
	struct err e = ERR_INIT;
	uint64_t parent = w->parent;
	int rc;

	(void)next;
	w->entries++;
	w->sum->names++;
	look_require(id > VIEW_ROOT && id < VIEW_ID_LIMIT);
	look_require(name[0] && !strchr(name, '/') && strlen(name) <= 255 &&
		     strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
	rc = w->v->ops->lookup(w->v, parent, name, strlen(name), &by_name, &e);
	look_require(rc <= 0 && rc != -ENOENT && rc != -ENOTDIR);
	if (rc == 0) {
		look_require(by_name.id == id && by_name.is_dir == is_dir);
		look_require(!attr || (attr->id == id && attr->size == by_name.size));
		rc = w->v->ops->getattr(w->v, id, &by_id, &e);
		look_require(rc < 0 || (by_id.size == by_name.size && by_id.is_dir == is_dir));
		look_xattrs(w, id);
		if (rc == 0 && !is_dir)
			look_file(w, &by_id);
	}
	if (is_dir && w->depth < LOOK_DEPTH) {
		look_require(w->v->ops->parent(w->v, id) == parent);
		look_dir(w, id);
	}
	w->parent = parent;
	return !look_full(w);
}

/* look_again - a listing that is compared with one before it. */
struct look_again {
	uint64_t ids[LOOK_ENTRIES], nexts[LOOK_ENTRIES];
	uint32_t n, at;
	bool compare;
};

static inline bool look_note(void *arg, const char *name, uint64_t id, bool is_dir,
			     const struct view_attr *attr, uint64_t next)
{
	struct look_again *a = arg;

	(void)name;
	(void)is_dir;
	(void)attr;
	if (a->compare) {
		look_require(a->at < a->n && a->ids[a->at] == id);
		return ++a->at < a->n;
	}
	a->ids[a->n] = id;
	a->nexts[a->n] = next;
	return ++a->n < LOOK_ENTRIES;
}

/* look_middle - a listing goes on where a reader stopped. */
static inline void look_middle(struct look_walk *w, uint64_t dir)
{
	struct look_again *a = calloc(1, sizeof(*a));
	struct err e = ERR_INIT;

	look_require(a != NULL);
	if (w->v->ops->list(w->v, dir, 0, false, look_note, a, &e) == 0 && a->n > 1) {
		a->at = a->n / 2;
		a->compare = true;
		if (w->v->ops->list(w->v, dir, a->nexts[a->at - 1], false, look_note, a, &e) ==
		    0)
			look_require(a->at == a->n);
	}
	free(a);
}

static inline void look_dir(struct look_walk *w, uint64_t dir)
{
	static const char nothing[] = ".nczarrfs-is-not-there";
	struct view_attr attr;
	struct err e = ERR_INIT;
	int rc;

	w->parent = dir;
	w->depth++;
	look_require(w->v->ops->list(w->v, dir, 0, w->depth % 2, look_entry, w, &e) <= 0);
	/* of a group whose members could not all be read nobody knows what it has not */
	rc = w->v->ops->lookup(w->v, dir, nothing, sizeof(nothing) - 1, &attr, &e);
	look_require(rc == -ENOENT ||
		     (rc == -EIO && w->v->source && w->v->source->ds.n_unreadable > 0));
	if (!look_full(w))
		look_middle(w, dir);
	w->depth--;
}

static inline void look_view(struct view *v, struct look *sum, bool steady)
{
	struct look_walk w = {.v = v, .sum = sum, .steady = steady};

	sum->mounted++;
	look_xattrs(&w, VIEW_ROOT);
	look_dir(&w, VIEW_ROOT);
	v->ops->close(v);
}

static inline void look_refused(struct look *sum, const struct err *e)
{
	look_require(e->msg[0] != '\0' && e->code < 0 && e->code > -4096);
	sum->refused++;
	(void)snprintf(sum->why, sizeof(sum->why), "%s", e->msg);
}

/* look_tree - as a Zarr tree, in one of four forms. */
static inline void look_tree(struct source *s, unsigned form, bool steady, struct look *sum)
{
	struct zarr_view_options o = {.mode = ZARR_PURE,
				      .policy.filter = PLAN_PORTABLE,
				      .io = {.cache_bytes = 1 << 20},
				      .max_meta_bytes = (uint64_t)16 << 20};
	struct view *v = NULL;
	struct err e = ERR_INIT;

	if (form % 4 == 1) {
		o.mode = ZARR_NCZARR;
		o.policy.filter = PLAN_NONE;
		o.nested = o.strict_json = true;
		o.io = (struct chunkio_options){
			.cache_bytes = 1 << 16, .threads = 1, .ahead = 2};
	} else if (form % 4 == 2) {
		o.mode = ZARR_NOXARRAY;
		o.policy = fuzz_rules();
		o.io.cache_bytes = 1 << 16;
	} else if (form % 4 == 3) {
		o.format = 3;
		o.nested = o.strict_json = true;
		o.shard_bytes = 16384;
	}
	if (zarr_view_open(s, &o, &v, &e) == 0)
		look_view(v, sum, steady);
	else
		look_refused(sum, &e);
}

/* look_nc - as a virtual netCDF-4 file, in one of three forms. */
static inline void look_nc(struct source *s, unsigned form, bool steady, struct look *sum)
{
	struct nc_view_options o = {.name = "x.nc",
				    .policy.filter = PLAN_PORTABLE,
				    .io = {.cache_bytes = 1 << 18},
				    .max_image_bytes = (uint64_t)8 << 20,
				    .max_index_bytes = (uint64_t)4 << 20,
				    .build_timeout_ms = 5000,
				    .keep_going = form % 3 != 0};
	struct view *v = NULL;
	struct err e = ERR_INIT;

	if (form % 3 == 1) {
		o.policy.filter = PLAN_NONE;
		o.io.threads = 1;
		o.io.ahead = 2;
	} else if (form % 3 == 2) {
		o.policy = fuzz_rules();
	}
	if (nc_view_open(s, &o, &v, &e) == 0)
		look_view(v, sum, steady);
	else
		look_refused(sum, &e);
}

/* look_options - small limits, so that a file that lies meets them. */
static inline struct source_options look_options(void)
{
	return (struct source_options){.cut_bytes = 4096,
				       .max_chunk_bytes = (uint64_t)4 << 20,
				       .max_index_bytes = (uint64_t)4 << 20,
				       .max_meta_bytes = (uint64_t)16 << 20,
				       .read_timeout_ms = 2000,
				       .open_timeout_ms = 2000};
}

/* look_formats - all of them, as the program has them. */
#define LOOK_FORMATS 5
static inline const struct source_ops *const *look_formats(void)
{
	static const struct source_ops *const formats[LOOK_FORMATS] = {
		&hdf5_source_ops, &cdf_source_ops, &hdf4_source_ops, &zarr_source_ops,
		&refs_source_ops};

	return formats;
}

/* look_path - a dataset of any format, through one view of each kind. form: which ones. */
static inline void look_path(const char *path, unsigned form, struct look *sum)
{
	struct source_options opts = look_options();
	struct source *s = NULL;
	struct err e = ERR_INIT;
	bool steady;

	opts.keep_going = form % 2 == 1;
	if (source_open(look_formats(), LOOK_FORMATS, path, &opts, &s, &e)) {
		look_refused(sum, &e);
		return;
	}
	steady = s->ops != &hdf5_source_ops && s->ops != &hdf4_source_ops;
	look_tree(s, form, steady, sum);
	look_nc(s, form / 2, steady, sum);
	source_close(s);
}

#endif
