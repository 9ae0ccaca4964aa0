/* store_mem.c - objects in memory, in a sorted array. Where a key is an object and others are
 * below it, it is shown as a folder. */
#include "nczarr/store_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct object {
	char *key;     /* owned */
	uint8_t *data; /* owned */
	size_t len;
	uint64_t version;
};

struct mem_store {
	struct store base;
	struct object *objects; /* sorted; owned */
	size_t n, cap;
	uint64_t puts;
};

static struct mem_store *of(struct store *s)
{
	return CONTAINER_OF(s, struct mem_store, base);
}

static const char *object_name(const void *arg, size_t i, size_t *ret_len)
{
	const struct mem_store *m = arg;

	*ret_len = strlen(m->objects[i].key);
	return m->objects[i].key;
}

static struct keytab names_of(const struct mem_store *m)
{
	return (struct keytab){.arg = m, .n = m->n, .name = object_name};
}

static void mem_close(struct store *s)
{
	struct mem_store *m = of(s);

	for (size_t i = 0; i < m->n; i++) {
		free(m->objects[i].key);
		free(m->objects[i].data);
	}
	free(m->objects);
	free(m);
}

static void stat_object(const struct mem_store *m, size_t i, bool has_below,
			struct store_stat *ret)
{
	const struct object *o = i == KEYTAB_NONE ? NULL : &m->objects[i];

	*ret = (struct store_stat){
		.is_dir = has_below,
		.size = o && !has_below ? o->len : 0,
		.version = o && !has_below ? o->version : m->puts + 1,
	};
}

static int mem_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	const struct mem_store *m = of(s);
	const struct keytab t = names_of(m);
	size_t len = strlen(key), i = keytab_find(&t, key, len);
	bool is = keytab_is(&t, i, key, len);
	bool has_below = len == 0 || keytab_below(&t, i + is, key, len);

	if (!is && !has_below)
		return err_set(e, -ENOENT, "'%s': not there", key);
	stat_object(m, is ? i : KEYTAB_NONE, has_below, ret);
	return 0;
}

struct listing {
	const struct mem_store *m;
	bool want_stat;
	store_emit *emit;
	void *arg;
};

static bool emit_one(void *arg, const char *part, size_t len, size_t i, bool has_below)
{
	const struct listing *l = arg;
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

static int mem_list(struct store *s, const char *key, bool want_stat, store_emit *emit,
		    void *arg, struct err *e)
{
	const struct mem_store *m = of(s);
	const struct keytab t = names_of(m);
	struct listing l = {.m = m, .want_stat = want_stat, .emit = emit, .arg = arg};

	if (!keytab_list(&t, key, strlen(key), emit_one, &l) && *key)
		return err_set(e, -ENOENT, "'%s': nothing is below it", key);
	return 0;
}

/* find_object - the object of a key, never a folder. */
static int find_object(const struct mem_store *m, const char *key, const struct object **ret,
		       struct err *e)
{
	const struct keytab t = names_of(m);
	size_t len = strlen(key), i = keytab_find(&t, key, len);
	bool is = keytab_is(&t, i, key, len);

	if (keytab_below(&t, i + is, key, len))
		return err_set(e, -EISDIR, "'%s' is a folder", key);
	if (!is)
		return err_set(e, -ENOENT, "'%s': not there", key);
	*ret = &m->objects[i];
	return 0;
}

static int mem_read(struct store *s, const char *key, uint64_t off, uint8_t *out, size_t len,
		    uint64_t *ret_version, struct err *e)
{
	const struct object *o;
	int rc = find_object(of(s), key, &o, e);

	if (rc < 0)
		return rc;
	if (off > o->len || len > o->len - off)
		return err_set(e, -EIO, "'%s' ends at %zu, before offset %" PRIu64, key, o->len,
			       off + len);
	if (len)
		memcpy(out, o->data + off, len);
	if (ret_version)
		*ret_version = o->version;
	return 0;
}

static int mem_get(struct store *s, const char *key, struct buf *out, struct err *e)
{
	const struct object *o;
	int rc = find_object(of(s), key, &o, e);

	if (rc < 0)
		return rc;
	if (o->len > out->max - out->len)
		return err_set(e, -ERANGE, "'%s' has %zu bytes, more than the %zu allowed", key,
			       o->len, out->max - out->len);
	buf_put(out, o->data, o->len);
	return buf_ok(out) ? 0 : err_nomem(e);
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
	.get = mem_get,
	.check = mem_check,
};

struct store *store_mem_new(void)
{
	struct mem_store *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->base.ops = &g_ops;
	return &m->base;
}

int store_mem_put(struct store *s, const char *key, const void *data, size_t n)
{
	struct mem_store *m = of(s);
	const struct keytab t = names_of(m);
	size_t len = strlen(key), i = keytab_find(&t, key, len);
	auto_free uint8_t *copy = alloc_array(n, 1);
	auto_free char *name = strdup(key);

	if (!copy || !name)
		return -ENOMEM;
	if (n)
		memcpy(copy, data, n);
	if (!keytab_is(&t, i, key, len)) {
		if (grow_array(&m->objects, &m->cap, m->n + 1, sizeof(*m->objects)))
			return -ENOMEM;
		memmove(m->objects + i + 1, m->objects + i, (m->n - i) * sizeof(*m->objects));
		m->objects[i] = (struct object){.key = steal(&name)};
		m->n++;
	}
	free(m->objects[i].data);
	m->objects[i].data = steal(&copy);
	m->objects[i].len = n;
	m->objects[i].version = store_version(++m->puts);
	return 0;
}
