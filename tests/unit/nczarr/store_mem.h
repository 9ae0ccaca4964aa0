/* SPDX-License-Identifier: BSD-3-Clause */
/* store_mem.h - a store in memory: objects in a sorted array. If a key is an object and a prefix of
 * others, it is presented as a folder. */
#ifndef TEST_STORE_MEM_H
#define TEST_STORE_MEM_H

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/os/io.h"
#include "nczarr/store/sorted_keys.h"
#include "nczarr/store/store.h"

/* store_mem_new - an empty store, or NULL when there is no memory. */
struct store *store_mem_new(void);
/* store_mem_put - set an object; data is copied. Returns 0 or -ENOMEM. The script is not called. */
int store_mem_put(struct store *s, const char *key, const void *data, size_t n) NZ_MUST_USE;
/* store_mem_script - a function that is called before each change and each store_fresh(), one at a
 * time. Returns 0; a negative errno: the result, without the change; a positive one: the change is
 * done, and the result is its negative (a lost answer). plain: a service without conditions. */
enum store_mem_what { STORE_MEM_PUT, STORE_MEM_REMOVE, STORE_MEM_FRESH };
typedef int store_mem_script(void *arg, enum store_mem_what what, const char *key);
void store_mem_set_script(struct store *s, store_mem_script *script, void *arg, bool plain);

struct mem_object {
	char *key;     /* owned */
	uint8_t *data; /* owned */
	size_t len;
	uint64_t version;
};

struct mem_store {
	struct store base;
	struct mem_object *objects; /* sorted; owned */
	size_t n, cap;
	uint64_t puts;
	pthread_mutex_t lock; /* recursive: callbacks of a listing may call the store */
	store_mem_script *script;
	void *script_arg;
	bool plain; /* no conditions */
};

static struct mem_store *memory_of(struct store *s)
{
	return CONTAINER_OF(s, struct mem_store, base);
}

static const char *object_name(const void *arg, size_t i, size_t *ret_len)
{
	const struct mem_store *m = arg;

	*ret_len = strlen(m->objects[i].key);
	return m->objects[i].key;
}

static struct sorted_keys memory_names_of(const struct mem_store *m)
{
	return (struct sorted_keys){.arg = m, .n = m->n, .name = object_name};
}

static void mem_close(struct store *s)
{
	struct mem_store *m = memory_of(s);

	for (size_t i = 0; i < m->n; i++) {
		free(m->objects[i].key);
		free(m->objects[i].data);
	}
	free(m->objects);
	(void)pthread_mutex_destroy(&m->lock);
	free(m);
}

static void stat_object(const struct mem_store *m, size_t i, bool has_below,
			struct store_stat *ret)
{
	const struct mem_object *o = i == SORTED_KEYS_NONE ? NULL : &m->objects[i];

	*ret = (struct store_stat){
		.is_dir = has_below,
		.size = o && !has_below ? o->len : 0,
		.version = o && !has_below ? o->version : m->puts + 1,
	};
}

static int stat_locked(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	const struct mem_store *m = memory_of(s);
	const struct sorted_keys t = memory_names_of(m);
	size_t len = strlen(key), i = sorted_keys_find(&t, key, len);
	bool is = sorted_keys_is(&t, i, key, len);
	bool has_below = len == 0 || sorted_keys_below(&t, i + is, key, len);

	if (!is && !has_below)
		return err_set(e, -ENOENT, "'%s': not found", key);
	stat_object(m, is ? i : SORTED_KEYS_NONE, has_below, ret);
	return 0;
}

struct memory_listing {
	const struct mem_store *m;
	bool want_stat;
	store_emit *emit;
	void *arg;
};

static bool memory_emit_one(void *arg, const char *part, size_t len, size_t i, bool has_below)
{
	const struct memory_listing *l = arg;
	struct store_stat st;
	char name[256];

	if (len >= sizeof(name))
		return true;
	memcpy(name, part, len);
	name[len] = '\0';
	if (!l->want_stat)
		return l->emit(l->arg, name, has_below, NULL);
	stat_object(l->m, i, has_below, &st);
	return l->emit(l->arg, name, has_below, &st);
}

static int list_locked(struct store *s, const char *key, bool want_stat, store_emit *emit,
		       void *arg, struct err *e)
{
	const struct mem_store *m = memory_of(s);
	const struct sorted_keys t = memory_names_of(m);
	struct memory_listing l = {.m = m, .want_stat = want_stat, .emit = emit, .arg = arg};

	if (!sorted_keys_list(&t, key, strlen(key), memory_emit_one, &l) && *key)
		return err_set(e, -ENOENT, "'%s': no such directory", key);
	return 0;
}

/* memory_find_object - find the object of a key, never a folder. */
static int memory_find_object(const struct mem_store *m, const char *key,
			      const struct mem_object **ret, struct err *e)
{
	const struct sorted_keys t = memory_names_of(m);
	size_t len = strlen(key), i = sorted_keys_find(&t, key, len);
	bool is = sorted_keys_is(&t, i, key, len);

	if (sorted_keys_below(&t, i + is, key, len))
		return err_set(e, -EISDIR, "'%s' is a directory", key);
	if (!is)
		return err_set(e, -ENOENT, "'%s': not found", key);
	*ret = &m->objects[i];
	return 0;
}

static int memory_read_locked(struct store *s, const char *key, struct store_io *io,
			      struct err *e)
{
	const struct mem_object *o;
	int rc = memory_find_object(memory_of(s), key, &o, e);

	if (rc == 0)
		rc = store_io_size(io, key, o->len, e);
	if (rc < 0)
		return rc;
	if (io->len)
		memcpy(io->to, o->data + io->off, io->len);
	io->version = o->version;
	return 0;
}

static int mem_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	int rc;

	(void)pthread_mutex_lock(&memory_of(s)->lock);
	rc = stat_locked(s, key, ret, e);
	(void)pthread_mutex_unlock(&memory_of(s)->lock);
	return rc;
}

static int mem_list(struct store *s, const char *key, bool want_stat, store_emit *emit,
		    void *arg, struct err *e)
{
	int rc;

	(void)pthread_mutex_lock(&memory_of(s)->lock);
	rc = list_locked(s, key, want_stat, emit, arg, e);
	(void)pthread_mutex_unlock(&memory_of(s)->lock);
	return rc;
}

static int mem_read(struct store *s, const char *key, struct store_io *io, struct err *e)
{
	int rc;

	(void)pthread_mutex_lock(&memory_of(s)->lock);
	rc = memory_read_locked(s, key, io, e);
	(void)pthread_mutex_unlock(&memory_of(s)->lock);
	return rc;
}

/* ---- writing ---- */

/* scripted - result of the script for a change: 0: do it; < 0: do not; > 0: do it, and return its
 * negative. */
static int scripted(struct mem_store *m, enum store_mem_what what, const char *key,
		    struct err *e)
{
	int rc = m->script ? m->script(m->script_arg, what, key) : 0;

	return rc < 0 ? err_set(e, rc, "'%s': the script says so", key) : rc;
}

static int memory_bytes_of(const struct store_put *what, uint8_t **ret, struct err *e)
{
	auto_free uint8_t *p = alloc_array((size_t)what->len, 1);
	int rc = p ? 0 : err_nomem(e);

	if (rc == 0 && what->len > 0 && what->data)
		memcpy(p, what->data, (size_t)what->len);
	else if (rc == 0 && what->len > 0)
		rc = io_pread(what->fd, p, (size_t)what->len, what->off, e);
	if (rc == 0)
		*ret = steal(&p);
	return rc;
}

static int memory_holds(const struct mem_store *m, const char *key,
			const struct store_put *what, struct err *e)
{
	const struct mem_object *o;
	bool is = memory_find_object(m, key, &o, NULL) == 0;

	if (m->plain && (what->absent || what->version))
		return err_set(e, -EOPNOTSUPP, "'%s': there are no conditions", key);
	if (what->absent && is)
		return err_set(e, -EEXIST, "'%s' is there", key);
	if (what->version && (!is || o->version != what->version))
		return err_set(e, -ESTALE, "'%s' is another version", key);
	return 0;
}

/* memory_enter - insert an object; takes data. */
static int memory_enter(struct mem_store *m, const char *key, uint8_t *data, size_t n)
{
	const struct sorted_keys t = memory_names_of(m);
	size_t len = strlen(key), i = sorted_keys_find(&t, key, len);
	auto_free uint8_t *copy = data;

	if (!sorted_keys_is(&t, i, key, len)) {
		auto_free char *name = strdup(key);

		if (!name || grow_array(&m->objects, &m->cap, m->n + 1, sizeof(*m->objects)))
			return -ENOMEM;
		memmove(m->objects + i + 1, m->objects + i, (m->n - i) * sizeof(*m->objects));
		m->objects[i] = (struct mem_object){.key = steal(&name)};
		m->n++;
	}
	free(m->objects[i].data);
	m->objects[i].data = steal(&copy);
	m->objects[i].len = n;
	m->objects[i].version = store_version(++m->puts);
	return 0;
}

static int put_locked(struct mem_store *m, const char *key, const struct store_put *what,
		      uint64_t *ret_version, struct err *e)
{
	int later = scripted(m, STORE_MEM_PUT, key, e);
	uint8_t *data = NULL;
	int rc = later < 0 ? later : memory_holds(m, key, what, e);

	if (rc == 0)
		rc = memory_bytes_of(what, &data, e);
	if (rc)
		return rc;
	if (memory_enter(m, key, data, (size_t)what->len) < 0)
		return err_nomem(e);
	if (ret_version)
		*ret_version = store_version(m->puts);
	return later ? err_set(e, -later, "'%s': no answer came", key) : 0;
}

static int mem_put(struct store *s, const char *key, const struct store_put *what,
		   uint64_t *ret_version, struct err *e)
{
	struct mem_store *m = memory_of(s);
	int rc;

	(void)pthread_mutex_lock(&m->lock);
	rc = put_locked(m, key, what, ret_version, e);
	(void)pthread_mutex_unlock(&m->lock);
	return rc;
}

static void remove_object(struct mem_store *m, const char *key)
{
	const struct sorted_keys t = memory_names_of(m);
	size_t len = strlen(key), i = sorted_keys_find(&t, key, len);

	if (!sorted_keys_is(&t, i, key, len))
		return;
	free(m->objects[i].key);
	free(m->objects[i].data);
	m->n--;
	memmove(m->objects + i, m->objects + i + 1, (m->n - i) * sizeof(*m->objects));
	m->puts++;
}

static int mem_remove(struct store *s, const char *key, struct err *e)
{
	struct mem_store *m = memory_of(s);
	int rc;

	(void)pthread_mutex_lock(&m->lock);
	rc = scripted(m, STORE_MEM_REMOVE, key, e);
	if (rc >= 0)
		remove_object(m, key);
	if (rc > 0)
		rc = err_set(e, -rc, "'%s': no answer came", key);
	(void)pthread_mutex_unlock(&m->lock);
	return rc;
}

static int mem_fresh(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	struct mem_store *m = memory_of(s);
	int rc;

	(void)pthread_mutex_lock(&m->lock);
	rc = scripted(m, STORE_MEM_FRESH, key, e);
	if (rc >= 0)
		rc = stat_locked(s, key, ret, e);
	(void)pthread_mutex_unlock(&m->lock);
	return rc;
}

static int mem_check(struct store *s NZ_UNUSED, struct err *e NZ_UNUSED)
{
	return 0;
}

static const struct store_ops g_ops = {
	.name = "memory",
	.close = mem_close,
	.stat = mem_stat,
	.list = mem_list,
	.read = mem_read,
	.check = mem_check,
	.fresh = mem_fresh,
	.put = mem_put,
	.remove = mem_remove,
};

struct store *store_mem_new(void)
{
	struct mem_store *m = calloc(1, sizeof(*m));
	pthread_mutexattr_t attr;

	if (!m)
		return NULL;
	m->base.ops = &g_ops;
	(void)pthread_mutexattr_init(&attr); /* none of these can fail */
	(void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	(void)pthread_mutex_init(&m->lock, &attr);
	(void)pthread_mutexattr_destroy(&attr);
	return &m->base;
}

int store_mem_put(struct store *s, const char *key, const void *data, size_t n)
{
	struct mem_store *m = memory_of(s);
	uint8_t *copy = alloc_array(n, 1);
	int rc;

	if (!copy)
		return -ENOMEM;
	if (n)
		memcpy(copy, data, n);
	(void)pthread_mutex_lock(&m->lock);
	rc = memory_enter(m, key, copy, n);
	(void)pthread_mutex_unlock(&m->lock);
	return rc;
}

void store_mem_set_script(struct store *s, store_mem_script *script, void *arg, bool plain)
{
	memory_of(s)->script = script;
	memory_of(s)->script_arg = arg;
	memory_of(s)->plain = plain;
}

#endif
