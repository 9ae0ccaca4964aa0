/* SPDX-License-Identifier: BSD-3-Clause */
/* changes.c - whether the store is still the one that was opened.
 *
 * A poll compares the versions of the documents and directories of the model, of the listed
 * directories of chunks, and of recently read objects. A version that is younger than a tick of
 * the clock proves nothing: such a directory is listed again. One poll sends a bounded number of
 * requests; the next polls continue.
 *
 * Recently read objects are in a lock-free table, because every read records itself there; if two
 * reads collide in one slot, only one of the records is lost. */
#include "nczarr/source/chunks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define ASKED_MAX 2048  /* requests of one poll */
#define REMOTE_ROOTS 2  /* documents of a remote root */
#define LISTING_ASKS 64 /* requests that a listing counts as */
#define LONG 200

int zr_watch_add(struct zr_watch *w, const struct zr_dir *dirs, size_t n, struct err *e)
{
	int rc = 0;

	if (n == 0)
		return 0;
	(void)pthread_mutex_lock(&w->lock);
	if (grow_array(&w->dirs, &w->c_dirs, w->n_dirs + n, sizeof(*dirs)) < 0) {
		rc = err_nomem(e);
	} else {
		memcpy(w->dirs + w->n_dirs, dirs, n * sizeof(*dirs));
		w->n_dirs += n;
	}
	(void)pthread_mutex_unlock(&w->lock);
	return rc;
}

/* ---- objects read lately ---- */

static size_t changes_slot_of(uint32_t array, uint64_t object)
{
	uint64_t h = (object ^ (uint64_t)array << 40) * 0x9e3779b97f4a7c15u;

	return (size_t)(h >> 32) % ZR_RECENT;
}

/* changes_read_slot - read a slot; false: empty, or being written. Each access has its own memory
 * order: fences are not needed, and race detectors do not support them. */
static bool changes_read_slot(const struct zr_recent *r, uint32_t *array, uint64_t *object,
			      uint64_t *version)
{
	uint32_t seq = atomic_load_explicit(&r->seq, memory_order_acquire);

	if (seq == 0 || seq % 2 != 0)
		return false;
	*array = atomic_load_explicit(&r->array, memory_order_acquire);
	*object = atomic_load_explicit(&r->object, memory_order_acquire);
	*version = atomic_load_explicit(&r->version, memory_order_acquire);
	return atomic_load_explicit(&r->seq, memory_order_relaxed) == seq;
}

uint64_t zr_recent_version(const struct zr_watch *w, uint32_t array, uint64_t object)
{
	uint32_t a;
	uint64_t o, version;

	if (changes_read_slot(&w->recent[changes_slot_of(array, object)], &a, &o, &version) &&
	    a == array && o == object)
		return version;
	return 0;
}

void zr_recent_note(struct zr_watch *w, uint32_t array, uint64_t object, uint64_t version)
{
	struct zr_recent *r = &w->recent[changes_slot_of(array, object)];
	uint32_t seq = atomic_load_explicit(&r->seq, memory_order_relaxed);

	if (seq % 2 != 0 || !atomic_compare_exchange_strong_explicit(&r->seq, &seq, seq + 1,
								     memory_order_acq_rel,
								     memory_order_relaxed))
		return;
	atomic_store_explicit(&r->array, array, memory_order_release);
	atomic_store_explicit(&r->object, object, memory_order_release);
	atomic_store_explicit(&r->version, version, memory_order_release);
	/* 0: a slot that was never used */
	atomic_store_explicit(&r->seq, seq + 2 ? seq + 2 : 2, memory_order_release);
}

/* ---- asking ---- */

/* changes_ignored - whether polls are suspended: our own commit is in progress, or the owner of a
 * borrowed store reports changes. */
static bool changes_ignored(struct zr_source *s)
{
	return s->borrowed || atomic_load(&s->held);
}

int zr_check(struct source *src, struct err *e)
{
	struct zr_source *s = zr_of(src);

	return changes_ignored(s) ? 0 : store_check(s->store, e);
}

void zr_hold(struct source *src, bool on)
{
	atomic_store(&zr_of(src)->held, on);
}

/* changes_same - whether a key has this version; 0: it is absent. */
static int changes_same(struct zr_source *s, const char *key, uint64_t version, struct err *e)
{
	struct store_stat st = {.version = 0};
	int rc = s->base.remote ? store_fresh(s->store, key, &st, e)
				: store_stat(s->store, key, &st, e);

	if (rc && rc != -ENOENT && rc != -EACCES)
		return rc;
	if (rc == -EACCES && s->base.remote)
		return rc; /* an error of the process, not of the key */
	if (rc == -EACCES || (rc == 0 ? st.version : 0) != version)
		return err_set(e, -ESTALE, "'%.*s' was %s after the source was opened", LONG,
			       key,
			       version == 0    ? "written"
			       : rc == -ENOENT ? "removed"
					       : "changed");
	return 0;
}

/* main_doc - a document that is removed with the store: of its root, if that has one; NULL:
 * none. */
static const struct zr_doc_seen *main_doc(const struct zr_source *s)
{
	const struct zr_doc_seen *some = NULL;

	for (size_t i = 0; i < s->n_seen; i++) {
		if (s->seen[i].version == 0)
			continue;
		if (!strchr(s->seen[i].key, '/'))
			return &s->seen[i];
		some = some ? some : &s->seen[i];
	}
	return some;
}

/* in_place - whether the path still leads to the opened directory: a directory can still be listed
 * after it was moved or removed. */
static int in_place(const struct zr_source *s, struct err *e)
{
	const struct stat *was = &s->base.ds.st;
	struct stat st;
	int rc;

	if (!s->in_dir)
		return 0; /* for example an archive: one open file */
	rc = stat(s->path, &st);
	if (rc < 0 && errno != ENOENT && errno != ENOTDIR)
		return err_sys(e, errno, "'%s'", s->path);
	if (rc < 0 || st.st_dev != was->st_dev || st.st_ino != was->st_ino)
		return err_set(e, -ESTALE, "'%s' was moved, replaced or removed", s->path);
	return 0;
}

/* changes_confirm - check that the store exists, after this many absences. A second thread waits
 * for the check of the first. */
static int changes_confirm(struct zr_source *s, const struct zr_doc_seen *doc, struct err *e)
{
	struct zr_watch *w = &s->data->watch;
	uint64_t n = atomic_load(&s->store->absences);
	int rc = 0;

	(void)pthread_mutex_lock(&w->confirming);
	if (atomic_load(&w->confirmed) < n) {
		n = atomic_load(&s->store->absences);
		rc = changes_same(s, doc->key, doc->version, e);
		if (rc == 0)
			atomic_store(&w->confirmed, n);
	}
	(void)pthread_mutex_unlock(&w->confirming);
	return rc;
}

int zr_absent(struct zr_source *s, struct err *e)
{
	const struct zr_doc_seen *doc;

	if (changes_ignored(s))
		return 0;
	if (!s->base.remote)
		return in_place(s, e);
	if (atomic_load(&s->data->watch.confirmed) >= atomic_load(&s->store->absences))
		return 0;
	doc = main_doc(s);
	return doc ? changes_confirm(s, doc, e) : 0;
}

static int same_object(struct zr_source *s, uint32_t array, uint64_t object, uint64_t version,
		       struct err *e)
{
	const struct zr_place *p;
	char key[ZR_OBJECT_KEY];
	int rc = zr_place_of(s, array, &p, e);

	rc = rc ? rc : zr_object_name(p, object, key, e);
	return rc ? rc : changes_same(s, key, version, e);
}

static int check_recent(struct zr_source *s, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < ZR_RECENT; i++) {
		uint64_t object, version;
		uint32_t array;

		if (changes_read_slot(&s->data->watch.recent[i], &array, &object, &version))
			rc = same_object(s, array, object, version, e);
	}
	return rc;
}

/* changes_check_dir - check dirs[i], and add its cost. */
static int changes_check_dir(struct zr_source *s, size_t i, const struct zr_dir *d,
			     size_t *cost, struct err *e)
{
	struct zr_watch *w = &s->data->watch;
	uint64_t coords[DS_RANK_MAX];
	const struct zr_place *p;
	char key[ZR_OBJECT_KEY];
	bool young = false;
	int rc;

	if (d->is_object)
		return same_object(s, d->array, d->prefix, d->version, e);
	rc = zr_place_of(s, d->array, &p, e);
	if (rc)
		return rc;
	if (!d->young) {
		grid_coords(d->level, p->grid, d->prefix, coords);
		rc = zr_level_key(p->meta, coords, d->level, key, e);
		return rc ? rc : changes_same(s, key, d->version, e);
	}
	*cost += LISTING_ASKS;
	rc = zr_list_again(p, d, &young, e);
	(void)pthread_mutex_lock(&w->lock);
	w->dirs[i].young = young;
	(void)pthread_mutex_unlock(&w->lock);
	return rc;
}

/* poll_remote - each check is a request: the documents of the root are checked each time, one of
 * the others in turn. */
static int poll_remote(struct zr_source *s, struct err *e)
{
	struct zr_watch *w = &s->data->watch;
	size_t roots = 0, first = s->n_seen, at;
	int rc = store_check(s->store, e);

	for (size_t i = 0; !rc && i < s->n_seen && roots < REMOTE_ROOTS; i++) {
		if (s->seen[i].version == 0 || strchr(s->seen[i].key, '/'))
			continue;
		roots++;
		first = i;
		rc = changes_same(s, s->seen[i].key, s->seen[i].version, e);
	}
	for (size_t i = 0; !rc && i < s->n_seen; i++) {
		(void)pthread_mutex_lock(&w->lock);
		at = w->cursor < s->n_seen ? w->cursor : 0;
		w->cursor = at + 1;
		(void)pthread_mutex_unlock(&w->lock);
		if (s->seen[at].version != 0 && (at > first || strchr(s->seen[at].key, '/')))
			return changes_same(s, s->seen[at].key, s->seen[at].version, e);
	}
	return rc;
}

int zr_poll(struct source *src, struct err *e)
{
	struct zr_source *s = zr_of(src);
	struct zr_watch *w = &s->data->watch;
	size_t asked = 0, visited = 0, total = 1, i;
	struct zr_dir d;
	int rc;

	if (changes_ignored(s))
		return 0;
	if (src->remote)
		return poll_remote(s, e);
	rc = store_check(s->store, e);
	rc = rc ? rc : check_recent(s, e);
	for (; !rc && asked < ASKED_MAX && visited < total; asked++, visited++) {
		(void)pthread_mutex_lock(&w->lock);
		total = s->n_seen + w->n_dirs;
		i = w->cursor < total ? w->cursor : 0;
		w->cursor = i + 1;
		if (i >= s->n_seen && i < total)
			d = w->dirs[i - s->n_seen];
		(void)pthread_mutex_unlock(&w->lock);
		if (total == 0)
			break;
		if (i < s->n_seen)
			rc = changes_same(s, s->seen[i].key, s->seen[i].version, e);
		else
			rc = changes_check_dir(s, i - s->n_seen, &d, &asked, e);
	}
	return rc;
}

/* All pieces of an object have one version, or reading fails.
 *
 * The kernel reads a chunk in pieces, several at a time, and caches them. If an object is replaced
 * between two pieces, only the store's versions reveal it: so the version at the first read of an
 * object holds for the life of the source. 32 bits of it are stored for each object, in memory
 * that is only touched for objects that were read. */

#define OBJECTS_MAX ((uint64_t)1 << 26) /* of an array; beyond, only recent ones are checked */

struct zr_versions {
	uint64_t n;
	_Atomic uint32_t of[]; /* n objects; 0: not read yet */
};

static struct zr_versions *versions_of(struct zr_data *d, uint32_t array, uint64_t n)
{
	_Atomic(struct zr_versions *) *slot = &d->versions[array];
	struct zr_versions *v = atomic_load_explicit(slot, memory_order_acquire), *none = NULL;

	if (v || n > OBJECTS_MAX)
		return v;
	v = alloc_array(1, sizeof(*v) + (size_t)n * sizeof(v->of[0]));
	if (v)
		v->n = n;
	if (v && !atomic_compare_exchange_strong_explicit(slot, &none, v, memory_order_acq_rel,
							  memory_order_acquire)) {
		free(v);
		v = none;
	}
	return v;
}

bool zr_version_agree(const struct zr_place *p, uint64_t object, uint64_t version)
{
	struct zr_watch *w = &p->s->data->watch;
	struct zr_versions *v = versions_of(p->s->data, p->id, p->n_objects);
	uint64_t recent = zr_recent_version(w, p->id, object);
	uint32_t own = (uint32_t)(version ^ version >> 32) | 1, held = 0;

	if (recent == 0)
		zr_recent_note(w, p->id, object, version);
	if (!v || object >= v->n)
		return recent == 0 || recent == version;
	return atomic_compare_exchange_strong_explicit(&v->of[object], &held, own,
						       memory_order_acq_rel,
						       memory_order_acquire) ||
	       held == own;
}

void zr_versions_release(struct zr_data *d)
{
	for (uint32_t i = 0; d->versions && i < d->n_places; i++)
		free(atomic_load_explicit(&d->versions[i], memory_order_acquire));
	free(d->versions);
}
