/* SPDX-License-Identifier: BSD-3-Clause */
/* json_index.c - kerchunk's JSON as a sorted table of keys: version 1 with templates, and version
 * 0, which equals "refs" of version 1. Spec: kerchunk, "References specification".
 *
 * Only keys, addresses (each once) and inline values stay in memory: 48 bytes for a reference, and
 * its key. */
#include "nczarr/refs/refs_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/arena.h"
#include "base/core/base64.h"
#include "base/core/hash.h"
#include "base/core/map.h"
#include "base/core/str.h"

/* json_index_entry - strings are offsets in table.strings. */
struct json_index_entry {
	size_t key;
	uint32_t key_len;
	uint8_t what; /* INLINE or AT of struct refs_found */
	bool whole;
	size_t at; /* of data, or of the address */
	uint64_t off, len;
};

/* url - an address in the strings. */
struct url {
	struct link link;
	size_t at;
};

struct template
{
	const char *name, *text;
};

struct json_index_table {
	struct refs_index base;
	struct blob *file; /* remote; NULL; owned */
	struct buf strings;
	struct json_index_entry *entries; /* sorted by key; owned */
	size_t n, cap;
	uint64_t max; /* memory limit, in bytes */
	/* during reading */
	struct buf key;       /* of a member */
	struct map urls;      /* struct url */
	struct template *templates;
	size_t n_templates, c_templates;
	struct arena arena;   /* of addresses and templates */
};

static struct json_index_table *json_index_of(struct refs_index *x)
{
	return CONTAINER_OF(x, struct json_index_table, base);
}

static const char *json_index_entry_key(const void *arg, size_t i, size_t *ret_len)
{
	const struct json_index_table *t = arg;

	*ret_len = t->entries[i].key_len;
	return (const char *)t->strings.data + t->entries[i].key;
}

static struct sorted_keys json_index_keys_of(const struct json_index_table *t)
{
	return (struct sorted_keys){.arg = t, .n = t->n, .name = json_index_entry_key};
}

static void drop_reading(struct json_index_table *t)
{
	buf_release(&t->key);
	map_free(&t->urls);
	free(t->templates);
	t->templates = NULL;
	t->n_templates = 0;
	arena_release(&t->arena);
}

static void table_close(struct refs_index *x)
{
	struct json_index_table *t = json_index_of(x);

	drop_reading(t);
	if (!x->borrows)
		blob_close(t->file);
	buf_release(&t->strings);
	free(t->entries);
	free(t);
}

/* ---- addresses, each once ---- */

/* keep_url - table.strings ends with an address from offset `at` on: keep it, or find an equal
 * one. */
static int keep_url(struct json_index_table *t, size_t *at, struct err *e)
{
	const size_t n = t->strings.len - *at;
	const char *strings = (const char *)t->strings.data;
	const uint64_t h = hash_bytes(HASH_SEED, strings + *at, n), hash = h ^ h >> 29;
	struct url *x;

	MAP_EACH(x, &t->urls, hash, link)
		if (strncmp(strings + x->at, strings + *at, n) == 0 && !strings[x->at + n]) {
			t->strings.len = *at;
			*at = x->at;
			return 0;
		}
	x = arena_alloc(&t->arena, 1, sizeof(*x));
	if (!x || map_add(&t->urls, &x->link, hash) < 0)
		return err_nomem(e);
	x->at = *at;
	buf_putc(&t->strings, '\0');
	return 0;
}

/* ---- templates: {{name}}, nothing more ---- */

static int add_template(void *arg, struct scan *s, struct err *e)
{
	struct json_index_table *t = arg;
	auto_buf text = buf_of((size_t)1 << 16);
	int rc = scan_text(s, &text, e);
	struct template x;

	if (rc == 0 && (t->key.len >= STORE_KEY_MAX || text.len == text.max || !buf_ok(&text)))
		rc = buf_full(&text, e, -EBADMSG, "a template is too long");
	if (rc)
		return rc;
	x.name = arena_copy(&t->arena, t->key.data, t->key.len);
	x.text = arena_copy(&t->arena, text.data, text.len);
	if (!x.name || !x.text ||
	    grow_array(&t->templates, &t->c_templates, t->n_templates + 1, sizeof(x)))
		return err_nomem(e);
	t->templates[t->n_templates++] = x;
	return 0;
}

/* find_template - find a name of n bytes, without surrounding white space. */
static const char *find_template(const struct json_index_table *t, const char *name, size_t n)
{
	for (; n > 0 && *name == ' '; n--)
		name++;
	while (n > 0 && name[n - 1] == ' ')
		n--;
	for (size_t i = 0; i < t->n_templates; i++)
		if (str_is(t->templates[i].name, name, n))
			return t->templates[i].text;
	return NULL;
}

/* json_index_too_large - the error if table.strings or the key is full, or memory is. */
static int json_index_too_large(const struct json_index_table *t, struct err *e)
{
	return buf_full(buf_ok(&t->key) ? &t->strings : &t->key, e, -ERANGE,
			"the references need more than %" PRIu64 " bytes (half of -o memory)",
			t->max);
}

/* fill_in - expand the templates in the address from offset `at` to the end. */
static int fill_in(struct json_index_table *t, size_t at, struct err *e)
{
	auto_free char *raw = NULL;
	const char *p, *open, *stop, *text;

	buf_putc(&t->strings, '\0');
	if (!buf_ok(&t->strings))
		return json_index_too_large(t, e);
	t->strings.len--;
	if (!strstr((const char *)t->strings.data + at, "{{"))
		return 0;
	raw = strdup((const char *)t->strings.data + at);
	if (!raw)
		return err_nomem(e);
	t->strings.len = at;
	for (p = raw; (open = strstr(p, "{{")); p = stop + 2) {
		stop = strstr(open, "}}");
		text = stop ? find_template(t, open + 2, (size_t)(stop - open) - 2) : NULL;
		if (!text || strstr(text, "{{"))
			return err_set(
				e, -EOPNOTSUPP,
				"'%.100s': only templates that are plain strings are supported",
				open);
		buf_put(&t->strings, p, (size_t)(open - p));
		buf_puts(&t->strings, text);
	}
	buf_puts(&t->strings, p);
	return 0;
}

/* ---- references ---- */

/* json_index_put_list - ["url"], or ["url", offset, length]. */
static int json_index_put_list(struct json_index_table *t, struct scan *s,
			       struct json_index_entry *x, struct err *e)
{
	int rc;

	s->p++; /* the bracket */
	x->what = REFS_AT;
	x->at = t->strings.len;
	if (scan_peek(s) != '"')
		return scan_bad(s, "a reference has no address", e);
	rc = scan_text(s, &t->strings, e);
	if (rc == 0 && memchr(t->strings.data + x->at, '\0', t->strings.len - x->at))
		rc = scan_bad(s, "an address contains a NUL", e);
	rc = rc ? rc : fill_in(t, x->at, e);
	rc = rc ? rc : keep_url(t, &x->at, e);
	if (rc)
		return rc;
	rc = scan_next(s, ']', e);
	x->whole = rc == 0;
	if (rc <= 0)
		return rc;
	rc = scan_u64(s, &x->off, e);
	if (rc == 0 && !scan_is(s, ','))
		rc = scan_bad(s, "a reference has no length", e);
	rc = rc ? rc : scan_u64(s, &x->len, e);
	if (rc == 0 && !scan_is(s, ']'))
		rc = scan_bad(s, "a reference is too long", e);
	return rc;
}

/* put_data - add a string, base64, or a document as an object. */
static int put_data(struct json_index_table *t, struct scan *s, struct json_index_entry *x,
		    struct err *e)
{
	const uint8_t *from = s->p;
	ssize_t n;
	int rc;

	x->what = REFS_INLINE;
	x->at = t->strings.len;
	if (scan_peek(s) != '"') {
		rc = scan_skip(s, e);
		buf_put(&t->strings, from, (size_t)(s->p - from));
		x->len = t->strings.len - x->at;
		return rc;
	}
	rc = scan_text(s, &t->strings, e);
	if (rc || !buf_ok(&t->strings))
		return rc;
	if (t->strings.len - x->at >= 7 && memcmp(t->strings.data + x->at, "base64:", 7) == 0) {
		auto_buf plain = buf_of(t->strings.len - x->at);

		n = base64_decode_loose(&plain, (const char *)t->strings.data + x->at + 7,
					t->strings.len - x->at - 7);
		if (n >= 0)
			rc = err_set(e, -EBADMSG, "base64: character %zd is not valid", n);
		t->strings.len = x->at;
		buf_put(&t->strings, plain.data, plain.len);
		if (rc == 0 && !buf_ok(&plain))
			rc = err_nomem(e);
	}
	x->len = t->strings.len - x->at;
	return rc;
}

static int add_ref(void *arg, struct scan *s, struct err *e)
{
	struct json_index_table *t = arg;
	struct json_index_entry x = {.key = t->strings.len, .key_len = (uint32_t)t->key.len};
	const uint8_t c = scan_peek(s);
	int rc;

	buf_put(&t->strings, t->key.data, t->key.len);
	buf_putc(&t->strings, '\0');
	if (!buf_ok(&t->strings) || !buf_ok(&t->key))
		return json_index_too_large(t, e);
	if (strlen((const char *)t->strings.data + x.key) != x.key_len ||
	    !store_key_ok((const char *)t->strings.data + x.key))
		return err_set(e, -EBADMSG, "'%.200s' is not a valid key",
			       (const char *)t->strings.data + x.key);
	if (c == '[')
		rc = json_index_put_list(t, s, &x, e);
	else if (c == '"' || c == '{')
		rc = put_data(t, s, &x, e);
	else
		rc = scan_bad(s, "a string or a list is expected", e);
	if (rc)
		return err_wrap(e, rc, "'%.100s'", (const char *)t->strings.data + x.key);
	if (!buf_ok(&t->strings) || t->strings.len + (t->n + 1) * sizeof(x) > t->max)
		return json_index_too_large(t, e);
	if (grow_array(&t->entries, &t->cap, t->n + 1, sizeof(x)))
		return err_nomem(e);
	t->entries[t->n++] = x;
	return 0;
}

/* json_index_parts - positions of the members of version 1. */
struct json_index_parts {
	struct buf key;
	struct scan refs, templates, gen;
	bool v1;
};

static int json_index_find_part(void *arg, struct scan *s, struct err *e)
{
	struct json_index_parts *p = arg;
	struct scan *const to[] = {&p->refs, &p->templates, &p->gen};
	static const char *const names[] = {"refs", "templates", "gen"};

	if (!buf_ok(&p->key))
		return buf_full(&p->key, e, -ERANGE, "a key is longer than %zu bytes",
				p->key.max);
	for (size_t i = 0; i < ARRAY_LEN(to); i++)
		if (str_is(names[i], (const char *)p->key.data, p->key.len) &&
		    scan_peek(s) != '"')
			*to[i] = *s;
	return scan_skip(s, e);
}

static int json_index_find_parts(struct scan s, struct json_index_parts *ret, struct err *e)
{
	int rc;

	*ret = (struct json_index_parts){.key = buf_of((size_t)1 << 20)};
	rc = scan_members(&s, &ret->key, json_index_find_part, ret, e);
	if (rc == 0 && scan_peek(&s))
		rc = scan_bad(&s, "there is more after the end of the file's object", e);
	buf_release(&ret->key);
	ret->v1 = ret->refs.p && scan_peek(&ret->refs) == '{';
	return rc;
}

static int json_index_by_key(const void *a, const void *b, void *arg)
{
	const struct json_index_entry *x = a, *y = b;
	const char *strings = arg;

	return sorted_keys_cmp(strings + x->key, x->key_len, strings + y->key, y->key_len);
}

static int json_index_sort(struct json_index_table *t, struct err *e)
{
	if (t->n > 1)
		qsort_r(t->entries, t->n, sizeof(*t->entries), json_index_by_key,
			t->strings.data);
	for (size_t i = 1; i < t->n; i++)
		if (json_index_by_key(&t->entries[i - 1], &t->entries[i], t->strings.data) == 0)
			return err_set(e, -EBADMSG, "key '%.200s' occurs twice",
				       (const char *)t->strings.data + t->entries[i].key);
	return 0;
}

static int json_index_read_all(struct json_index_table *t, struct scan s, struct err *e)
{
	struct json_index_parts p;
	int rc = json_index_find_parts(s, &p, e);

	if (rc)
		return rc;
	if (p.v1 && p.gen.p && p.gen.p < p.gen.end && scan_peek(&p.gen) == '[') {
		p.gen.p++;
		if (scan_peek(&p.gen) != ']')
			return err_set(e, -EOPNOTSUPP,
				       "generated references (\"gen\") are not supported: "
				       "write them out, for instance with fsspec");
	}
	if (p.v1 && p.templates.p)
		rc = scan_members(&p.templates, &t->key, add_template, t, e);
	rc = rc ? rc : scan_members(p.v1 ? &p.refs : &s, &t->key, add_ref, t, e);
	rc = rc ? rc : json_index_sort(t, e);
	drop_reading(t);
	return rc;
}

/* ---- looking up ---- */

static void json_index_found(const struct json_index_table *t, size_t i, struct refs_found *ret)
{
	const struct json_index_entry *x = &t->entries[i];

	*ret = (struct refs_found){.what = x->what,
				   .off = x->off,
				   .len = x->len,
				   .whole = x->whole,
				   .version = store_version(store_mix(0, i))};
	if (x->what == REFS_INLINE)
		ret->data = t->strings.data + x->at;
	else
		ret->url = (const char *)t->strings.data + x->at;
}

static int table_find(struct refs_index *index, const char *key, struct refs_found *ret,
		      struct err *e)
{
	const struct json_index_table *t = json_index_of(index);
	const struct sorted_keys k = json_index_keys_of(t);
	size_t len = strlen(key), i = sorted_keys_find(&k, key, len);
	bool is = sorted_keys_is(&k, i, key, len);

	if (len == 0 || sorted_keys_below(&k, i + is, key, len)) {
		*ret = (struct refs_found){.what = REFS_FOLDER, .version = 1};
		return 0;
	}
	if (!is)
		return err_set(e, -ENOENT, "'%s': no reference to it exists", key);
	json_index_found(t, i, ret);
	return 0;
}

static void table_done(struct refs_index *x NZ_UNUSED, struct refs_found *f NZ_UNUSED)
{
}

struct json_index_listing {
	const struct json_index_table *t;
	bool (*emit)(void *arg, const char *name, bool is_dir, const struct refs_found *f);
	void *arg;
};

static bool json_index_emit_one(void *arg, const char *part, size_t len, size_t i,
				bool has_below)
{
	const struct json_index_listing *l = arg;
	struct refs_found f;
	char name[256];

	if (len >= sizeof(name))
		return true;
	memcpy(name, part, len);
	name[len] = '\0';
	if (has_below || i == SORTED_KEYS_NONE)
		return l->emit(l->arg, name, true, NULL);
	json_index_found(l->t, i, &f);
	return l->emit(l->arg, name, false, &f);
}

static int table_list(struct refs_index *x, const char *key,
		      bool (*emit)(void *arg, const char *name, bool is_dir,
				   const struct refs_found *f),
		      void *arg, struct err *e)
{
	const struct json_index_table *t = json_index_of(x);
	const struct sorted_keys k = json_index_keys_of(t);
	struct json_index_listing l = {.t = t, .emit = emit, .arg = arg};

	if (!sorted_keys_list(&k, key, strlen(key), json_index_emit_one, &l) && *key)
		return err_set(e, -ENOENT, "'%s': no such directory", key);
	return 0;
}

static int table_check(struct refs_index *x, struct err *e)
{
	struct json_index_table *t = json_index_of(x);

	return t->file ? blob_check(t->file, false, e) : 0;
}

static const struct refs_index_ops table_ops = {
	.close = table_close,
	.find = table_find,
	.done = table_done,
	.list = table_list,
	.check = table_check,
};

int refs_table_parse(const void *doc, size_t n, uint64_t max_meta, struct refs_index **ret,
		     struct err *e)
{
	struct json_index_table *t = alloc_array(1, sizeof(*t));
	int rc;

	if (!t)
		return err_nomem(e);
	t->base.ops = &table_ops;
	t->max = max_meta;
	t->strings = t->key = buf_of((size_t)u64_min(max_meta, SIZE_MAX / 2));
	arena_init(&t->arena, SIZE_MAX / 2);
	rc = json_index_read_all(
		t, (struct scan){.p = doc, .end = (const uint8_t *)doc + n, .begin = doc}, e);
	for (size_t i = 0; rc == 0 && i < t->n && !t->base.remote; i++) {
		struct refs_found f;

		json_index_found(t, i, &f);
		t->base.remote =
			f.url && strstr(f.url, "://") && strncmp(f.url, "file:", 5) != 0;
	}
	if (rc)
		table_close(&t->base);
	else
		*ret = &t->base;
	return rc;
}

int refs_table_open(struct blob *file, uint64_t max_meta, struct refs_index **ret,
		    struct err *e)
{
	auto_free uint8_t *doc = NULL;
	int rc;

	if (file->size > max_meta || file->size > SIZE_MAX / 4)
		return err_set(e, -ERANGE,
			       "the reference file has %" PRIu64 " bytes, the limit is %" PRIu64
			       " bytes (half of -o memory)",
			       file->size, max_meta);
	doc = malloc((size_t)file->size + 1);
	if (!doc)
		return err_nomem(e);
	rc = blob_read(file, 0, doc, (size_t)file->size, e);
	rc = rc ? rc : refs_table_parse(doc, (size_t)file->size, max_meta, ret, e);
	if (rc == 0 && file->fd < 0)
		json_index_of(*ret)->file = file;
	return rc;
}
