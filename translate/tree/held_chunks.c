/* SPDX-License-Identifier: BSD-3-Clause */
/* held_chunks.c - chunks that keep their bytes when a commit would show them with others.
 *
 * The dataset stores some chunks otherwise than they were written (Blosc, shards), and shows them
 * encoded anew: the same elements, in other bytes. A program that reads a file in pieces, and opens
 * it for each (the blocks of a Blosc buffer, the index of a shard), must not get pieces of both. So
 * the bytes of each such file that was opened for reading while it was staged are kept when its
 * record goes, and shown in place of the dataset's until the file or its array is written, or too
 * many were kept since. */
#include <errno.h>
#include <string.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/observe/log.h"
#include "translate/tree/tree_int.h"

enum {
	HELD_COMMITS = ARRAY_LEN(((struct holds *)NULL)->works),
	HELD_MOST = 65536,  /* files */
};

static bool held_chunks_is_doc(const char *key)
{
	const char *name = store_key_name(key);

	return name[0] == '.' || strcmp(name, "zarr.json") == 0;
}

/* doc_key - of a document in the directory that has the first n bytes of key. */
static bool doc_key(const char *key, size_t n, const char *doc, char out[STORE_KEY_MAX + 1])
{
	memcpy(out, key, n);
	out[n] = '\0';
	return store_key_join(out, doc, strlen(doc), out);
}

/* ---- held chunks ---- */

static int held_chunks_by_key(const void *a, const void *b)
{
	return strcmp(((const struct held_chunk *)a)->key, ((const struct held_chunk *)b)->key);
}

const struct held_chunk *held_find(const struct tree *t, const char *key)
{
	const struct held_chunk want = {.key = (char *)(uintptr_t)key};
	const struct holds *h = &t->holds;

	return h->n ? bsearch(&want, h->v, h->n, sizeof(*h->v), held_chunks_by_key) : NULL;
}

int held_read(const struct held_chunk *x, const char *key, struct store_io *io, struct err *e)
{
	size_t n;
	int rc = store_io_size(io, key, x->size, e);

	return rc ? rc : work_read(x->in, x->at + io->off, io->to, io->len, &n, e);
}

/* held_chunks_settle - remove dropped entries, and works without entries. */
static void held_chunks_settle(struct tree *t)
{
	struct holds *h = &t->holds;
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++)
		if (h->v[i].key)
			h->v[n++] = h->v[i];
	h->n = n;
	n = 0;
	for (size_t i = 0; i < h->n_works; i++) {
		bool used = false;

		for (size_t k = 0; k < h->n && !used; k++)
			used = h->v[k].in == h->works[i];
		if (used)
			h->works[n++] = h->works[i];
		else
			work_free(t, h->works[i]);
	}
	h->n_works = n;
}

static void held_chunks_drop(struct held_chunk *x)
{
	free(x->key);
	x->key = NULL;
}

/* drop_all - drop the entries in a work, or all if it is NULL. */
static void drop_all(struct tree *t, const struct dirty_file *in)
{
	for (size_t i = 0; i < t->holds.n; i++)
		if (!in || t->holds.v[i].in == in)
			held_chunks_drop(&t->holds.v[i]);
	held_chunks_settle(t);
}

void held_free(struct tree *t)
{
	drop_all(t, NULL);
	free(t->holds.v);
	t->holds = (struct holds){.n = 0};
}

/* ---- what to hold ---- */

/* keeping - one commit. */
struct keeping {
	struct tree *t;
	const struct snapshot *old, *now;
	struct store *was;           /* the stage over old */
	struct dirty_file *work;     /* NULL: nothing is held yet */
	char dir[STORE_KEY_MAX + 1]; /* of the last array; "\n": none yet */
	unsigned recoded;   /* result of `recoded` for it */
};

/* recoded - the result of options.recoded for an array. staged: its old metadata file is the staged
 * one, else that of the dataset. */
static unsigned recoded(struct keeping *k, const char *dir, const char *doc, bool staged)
{
	auto_buf was = buf_of(TREE_DOC_MAX), is = buf_of(TREE_DOC_MAX);

	if (store_get(staged ? k->was : k->old->files, doc, &was, NULL, NULL) < 0 ||
	    store_get(k->now->files, doc, &is, NULL, NULL) < 0)
		return 0;
	return k->t->o.recoded(k->t->o.arg, k->now, dir, doc, was.data, was.len, is.data,
			       is.len);
}

/* held_chunks_array_of - the number of bytes of a chunk's key that are its array's directory. -1:
 * it has no array, or its chunks need not be held. */
static ptrdiff_t held_chunks_array_of(struct keeping *k, const char *key)
{
	char doc[STORE_KEY_MAX + 1];
	struct found f;

	for (ptrdiff_t n = (ptrdiff_t)strlen(key) - 1; n >= 0; n--) {
		if (n > 0 && key[n] != '/')
			continue;
		if (strncmp(k->dir, key, (size_t)n) == 0 && k->dir[n] == '\0')
			return k->recoded ? n : -1;
		for (size_t i = 0; i < ARRAY_DOCS; i++) {
			if (!doc_key(key, (size_t)n, array_docs[i], doc) ||
			    tree_base(k->now, doc, &f, NULL) < 0 || f.kind != FOUND_FILE)
				continue;
			memcpy(k->dir, key, (size_t)n);
			k->dir[n] = '\0';
			k->recoded = recoded(k, k->dir, doc, true);
			return k->recoded ? n : -1;
		}
	}
	return -1;
}

/* review - drop held chunks of files that are staged, of arrays that were replaced, and of arrays
 * that became longer again after they were shorter: the dataset has fill values there. */
static void review(struct keeping *k)
{
	struct tree *t = k->t;
	char key[STORE_KEY_MAX + 1];
	struct stage_entry s;

	for (size_t i = 0; i < t->holds.n; i++) {
		struct held_chunk *x = &t->holds.v[i];

		stage_find(t->stage, x->key, &s, NULL);
		if (s.kind != STAGE_NOTHING)
			held_chunks_drop(x);
		for (size_t d = 0; x->key && d < ARRAY_DOCS; d++) {
			if (!doc_key(x->key, x->dir, array_docs[d], key))
				continue;
			stage_find(t->stage, key, &s, NULL);
			if (s.kind == STAGE_NOTHING || pins_have(t, key))
				continue;
			if (strncmp(k->dir, key, x->dir) != 0 || k->dir[x->dir]) {
				memcpy(k->dir, key, x->dir);
				k->dir[x->dir] = '\0';
				k->recoded = recoded(k, k->dir, key, false);
			}
			if (!k->recoded || (x->cut && (k->recoded & TREE_LONGER)))
				held_chunks_drop(x);
			x->cut |= (k->recoded & TREE_SHORTER) != 0;
		}
	}
	memcpy(k->dir, "\n", 2);
	held_chunks_settle(t);
}

/* held_chunks_make_room - drop the oldest entries, so that those of one more commit can be held. */
static void held_chunks_make_room(struct tree *t)
{
	struct holds *h = &t->holds;
	uint64_t all = 0;

	for (size_t i = 0; i < h->n_works; i++)
		all += h->works[i]->size;
	while (h->n_works > 1 && (h->n_works == HELD_COMMITS || all > t->o.max_staged)) {
		all -= h->works[0]->size;
		drop_all(t, h->works[0]);
	}
}

/* held_chunks_keep - hold a file that was opened for reading, if it is staged and will be shown
 * with other bytes. */
static int held_chunks_keep(struct keeping *k, const struct tree_node *node)
{
	struct tree *t = k->t;
	struct holds *h = &t->holds;
	struct stage_entry staged;
	struct store_stat f;
	struct found base;
	struct held_chunk x = {.in = k->work};
	ptrdiff_t dir;
	int rc;

	if (node->is_dir || node->gone || !node->opened || held_chunks_is_doc(node->key))
		return 0;
	stage_find(t->stage, node->key, &staged, NULL);
	if (staged.kind != STAGE_DATA || store_stat(t->content, node->key, &f, NULL) < 0 ||
	    tree_base(k->now, node->key, &base, NULL) < 0 || base.kind != FOUND_FILE)
		return 0;
	dir = held_chunks_array_of(k, node->key);
	if (dir < 0 || f.size > t->o.max_staged)
		return 0;
	if (!k->work) /* a commit that keeps nothing drops nothing */
		held_chunks_make_room(t);
	if (h->n >= HELD_MOST || (k->work && k->work->size > t->o.max_staged - f.size))
		return 0;
	if (!k->work)
		k->work = x.in = work_new();
	if (!x.in)
		return -ENOMEM;
	x.at = x.in->size;
	x.dir = (size_t)dir;
	x.changed = f.changed;
	x.stamp = f.version;
	rc = tree_copy(t, node->key, x.in, x.at, NULL);
	x.size = x.in->size - x.at;
	x.key = rc ? NULL : strdup(node->key);
	if (!x.key || grow_array(&h->v, &h->cap, h->n + 1, sizeof(x)) < 0) {
		free(x.key);
		return rc ? rc : -ENOMEM;
	}
	h->v[h->n++] = x;
	return 0;
}

void held_keep(struct tree *t, const struct snapshot *old, const struct snapshot *now)
{
	struct keeping k = {.t = t, .old = old, .now = now, .dir = "\n"};
	struct holds *h = &t->holds;
	struct tree_node **nodes = NULL;
	size_t n = 0;
	int rc = 0;

	if (!t->o.recoded)
		return;
	rc = stage_store(t->stage, UINT64_MAX, old->files, &k.was, NULL);
	if (rc)
		drop_all(t, NULL);
	else
		review(&k);
	if (!rc && atomic_load(&t->n_opened) > 0)
		rc = nodes_below(t, "", &nodes, &n, NULL);
	for (size_t i = 0; i < n; i++) {
		rc = rc ? rc : held_chunks_keep(&k, nodes[i]);
		node_put(nodes[i]);
	}
	free(nodes);
	store_close(k.was);
	if (rc)
		log_warn("there is no space to keep chunks that are being read: their bytes "
			 "change with this commit");
	if (!k.work)
		return;
	qsort(h->v, h->n, sizeof(*h->v), held_chunks_by_key);
	h->works[h->n_works++] = k.work;
	held_chunks_settle(t);
}
