/* SPDX-License-Identifier: BSD-3-Clause */
/* store.c - the wrappers around a store's functions: what a caller hands in is checked before,
 * what an implementation gives back after, so that neither has to trust the other. */
#include "translate/contract/store.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NAME_LONGEST 255 /* bytes of a component that is listed */

/* part_ok - whether n bytes are one component of a key. */
static bool part_ok(const char *p, size_t n)
{
	return n > 0 && !(n == 1 && p[0] == '.') && !(n == 2 && p[0] == '.' && p[1] == '.');
}

bool store_key_ok(const char *key)
{
	const char *end = key + strnlen(key, STORE_KEY_MAX + 1);

	if (end - key > STORE_KEY_MAX)
		return false;
	for (;;) {
		const char *slash = memchr(key, '/', (size_t)(end - key));
		const char *stop = slash ? slash : end;

		if (!part_ok(key, (size_t)(stop - key)))
			return false;
		if (!slash)
			return true;
		key = slash + 1;
	}
}

bool store_key_join(const char *dir, const char *name, size_t len, char out[STORE_KEY_MAX + 1])
{
	size_t n = strlen(dir), at = n > 0 && len > 0 ? n + 1 : n;

	if (at > STORE_KEY_MAX || len > STORE_KEY_MAX - at)
		return false;
	memmove(out, dir, n);
	out[n] = '/';
	memcpy(out + at, name, len);
	out[at + len] = '\0';
	return true;
}

const char *store_key_name(const char *key)
{
	const char *slash = strrchr(key, '/');

	return slash ? slash + 1 : key;
}

size_t store_key_parent_len(const char *key)
{
	const char *slash = strrchr(key, '/');

	return slash ? (size_t)(slash - key) : 0;
}

void store_key_parent(const char *key, char out[STORE_KEY_MAX + 1])
{
	size_t n = store_key_parent_len(key);

	memmove(out, key, n);
	out[n] = '\0';
}

const char *store_key_below(const char *dir, const char *key)
{
	size_t n = strlen(dir);

	if (n == 0)
		return key;
	return strncmp(dir, key, n) == 0 && key[n] == '/' ? key + n + 1 : NULL;
}

static int contract_store_bad_key(const char *key, struct err *e)
{
	return err_set(e, -EINVAL, "'%.200s' is not a key", key);
}

/* contract_store_answer - what an implementation returned, as callers may see it. */
static int contract_store_answer(const struct store *s, const char *key, int rc, struct err *e)
{
	if (rc == -ENOTDIR)
		rc = err_set(e, -ENOENT, "'%s': no such file or key", key);
	if (rc > 0 || rc < -4095)
		rc = err_set(e, -EIO, "the %s store returned for '%s' the invalid value %d",
			     s->ops->name, key, rc);
	return rc;
}

/* sane - a stat without contradictions. */
static void sane(struct store_stat *st)
{
	if (st->odd)
		st->is_dir = false;
	if (st->odd || st->is_dir)
		st->size = 0;
}

/* stat_by - store_stat, by one of an implementation's functions. */
static int stat_by(struct store *s,
		   int (*stat)(struct store *s, const char *key, struct store_stat *ret,
			       struct err *e),
		   const char *key, struct store_stat *ret, struct err *e)
{
	int rc;

	if (*key && !store_key_ok(key))
		return contract_store_bad_key(key, e);
	*ret = (struct store_stat){0};
	rc = contract_store_answer(s, key, stat(s, key, ret, e), e);
	sane(ret);
	return rc;
}

int store_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	return stat_by(s, s->ops->stat, key, ret, e);
}

struct store_listing {
	store_emit *emit;
	void *arg;
};

static bool emit_checked(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	const struct store_listing *l = arg;
	size_t n = strnlen(name, NAME_LONGEST + 1);
	struct store_stat copy;

	if (n > NAME_LONGEST || !part_ok(name, n) || memchr(name, '/', n))
		return true;
	if (!st)
		return l->emit(l->arg, name, is_dir, NULL);
	copy = *st;
	sane(&copy);
	return l->emit(l->arg, name, copy.is_dir, &copy);
}

int store_list(struct store *s, const char *key, bool want_stat, store_emit *emit, void *arg,
	       struct err *e)
{
	struct store_listing l = {.emit = emit, .arg = arg};

	if (*key && !store_key_ok(key))
		return contract_store_bad_key(key, e);
	return contract_store_answer(s, key,
				     s->ops->list(s, key, want_stat, emit_checked, &l, e), e);
}

static bool contract_store_emit_deep(void *arg, const char *name, bool is_dir,
				     const struct store_stat *st)
{
	const struct store_listing *l = arg;
	struct store_stat copy;

	if (is_dir || !st || !store_key_ok(name))
		return true;
	copy = *st;
	sane(&copy);
	return l->emit(l->arg, name, false, &copy);
}

int store_list_deep(struct store *s, const char *key, store_emit *emit, void *arg,
		    struct err *e)
{
	struct store_listing l = {.emit = emit, .arg = arg};

	if (!s->ops->list_deep)
		return err_set(e, -EOPNOTSUPP, "the %s store lists one level at a time",
			       s->ops->name);
	if (*key && !store_key_ok(key))
		return contract_store_bad_key(key, e);
	return contract_store_answer(
		s, key, s->ops->list_deep(s, key, contract_store_emit_deep, &l, e), e);
}

int store_read_io(struct store *s, const char *key, struct store_io *io, struct err *e)
{
	int rc;

	if (!store_key_ok(key))
		return contract_store_bad_key(key, e);
	rc = contract_store_answer(s, key, s->ops->read(s, key, io, e), e);
	if (rc == 0 && io->out && !buf_ok(io->out))
		rc = err_nomem(e);
	if (rc < 0 && io->out)
		io->out->len = io->before;
	return rc;
}

int store_io_size(struct store_io *io, const char *key, uint64_t size, struct err *e)
{
	if (io->clip) {
		io->off = u64_min(io->off, size);
		io->len = (size_t)u64_min(io->len, size - io->off);
		return 0;
	}
	if (!io->out) {
		if (io->off <= size && io->len <= size - io->off)
			return 0;
		return err_set(e, -EIO, "'%.200s' ends at %" PRIu64 ", before offset %" PRIu64,
			       key, size, io->off + io->len);
	}
	io->out->len = io->before;
	if (size > io->out->max - io->before)
		return err_set(e, -ERANGE, "'%.200s' has %" PRIu64 " bytes, the limit is %zu",
			       key, size, io->out->max - io->before);
	io->off = 0;
	io->len = (size_t)size;
	io->to = size ? buf_grow(io->out, (size_t)size) : NULL;
	return size && !io->to ? err_nomem(e) : 0;
}

int store_read(struct store *s, const char *key, uint64_t off, uint8_t *out, size_t len,
	       uint64_t *ret_version, struct err *e)
{
	struct store_io io = {.off = off, .len = len, .to = out};
	uint64_t end;
	int rc;

	if (ckd_add(&end, off, (uint64_t)len) || end > INT64_MAX)
		return err_set(e, -EIO, "'%.200s': offset %" PRIu64 " plus %zu bytes overflows",
			       key, off, len);
	rc = store_read_io(s, key, &io, e);
	if (rc == 0 && ret_version)
		*ret_version = io.version;
	return rc;
}

int store_get(struct store *s, const char *key, struct buf *out, uint64_t *ret_version,
	      struct err *e)
{
	struct store_io io = {.out = out, .before = out->len};
	int rc;

	if (!buf_ok(out))
		return err_set(e, -EINVAL, "'%.200s': its buffer has failed before", key);
	rc = store_read_io(s, key, &io, e);
	if (rc == 0 && ret_version)
		*ret_version = io.version;
	return rc;
}

int store_check(struct store *s, struct err *e)
{
	return s->ops->check ? contract_store_answer(s, "", s->ops->check(s, e), e) : 0;
}

void store_want(struct store *s, const struct store_range *r, size_t n)
{
	if (!s->remote || !s->ops->want)
		return;
	for (size_t i = 0; i < n; i++)
		if (!store_key_ok(r[i].key))
			return;
	s->ops->want(s, r, n);
}

int store_fresh(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	return stat_by(s, s->ops->fresh ? s->ops->fresh : s->ops->stat, key, ret, e);
}

int store_where(struct store *s, const char *key, struct store_place *ret, struct err *e)
{
	if (!store_key_ok(key))
		return contract_store_bad_key(key, e);
	ret->full = false;
	ret->whole = true;
	ret->off = 0;
	if (s->ops->place)
		return contract_store_answer(s, key, s->ops->place(s, key, ret, e), e);
	buf_puts(ret->key, key);
	return buf_ok(ret->key) ? 0 : err_nomem(e);
}

void store_forget(struct store *s, const char *key)
{
	if (s->remote && s->ops->forget && store_key_ok(key))
		s->ops->forget(s, key);
}

int store_put(struct store *s, const char *key, const struct store_put *what,
	      uint64_t *ret_version, struct err *e)
{
	if (!store_key_ok(key))
		return contract_store_bad_key(key, e);
	if (!s->ops->put)
		return err_set(e, -EROFS, "'%s': the %s store cannot be written", key,
			       s->ops->name);
	return contract_store_answer(s, key, s->ops->put(s, key, what, ret_version, e), e);
}

int store_remove(struct store *s, const char *key, struct err *e)
{
	int rc;

	if (!store_key_ok(key))
		return contract_store_bad_key(key, e);
	if (!s->ops->remove)
		return err_set(e, -EROFS, "'%s': the %s store cannot be written", key,
			       s->ops->name);
	rc = contract_store_answer(s, key, s->ops->remove(s, key, e), e);
	return rc == -ENOENT ? 0 : rc;
}

int store_movable(struct store *s, const char *key, int dir, struct err *e)
{
	return s->ops->movable ? s->ops->movable(s, key, dir, e) : 0;
}

int store_move(struct store *s, const char *key, int dir, const char *path, bool out,
	       struct err *e)
{
	return store_key_ok(key) ? s->ops->move(s, key, dir, path, out, e)
				 : contract_store_bad_key(key, e);
}

int store_flush(struct store *s, bool all, struct err *e)
{
	return s->ops->flush ? s->ops->flush(s, all, e) : 0;
}
