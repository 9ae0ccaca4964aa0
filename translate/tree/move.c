/* move.c - a directory gets another name: everything below it appears under the new one
 * before the old one goes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "translate/tree/tree_int.h"

/* below - keys below a directory, relative to it, directories before what is in them. */
struct below {
	struct buf names; /* a byte 'd' or 'f', the key, a NUL */
	size_t dir;       /* offset of the one that is being listed */
	bool full;
};

static bool gather(void *arg, const char *name, bool is_dir)
{
	struct below *b = arg;
	char key[STORE_KEY_MAX + 1];
	const char *dir = (const char *)b->names.data + b->dir + 1;
	int n = snprintf(key, sizeof(key), "%s%s%s", dir, *dir ? "/" : "", name);

	b->full |= n < 0 || (size_t)n >= sizeof(key);
	buf_putc(&b->names, is_dir ? 'd' : 'f');
	buf_put(&b->names, key, strlen(key) + 1);
	b->full |= !buf_ok(&b->names);
	return !b->full;
}

static int join(const char *dir, const char *rest, char out[STORE_KEY_MAX + 1], struct err *e)
{
	int n = snprintf(out, STORE_KEY_MAX + 1, "%s%s%s", dir, *rest ? "/" : "", rest);

	return n < 0 || n > STORE_KEY_MAX
		       ? err_set(e, -ENAMETOOLONG, "a name below '%.200s'", dir)
		       : 0;
}

/* all_below - breadth first, so that a directory comes before what it holds. */
static int all_below(struct tree *t, const struct ground *g, const char *key, struct below *b,
		     struct err *e)
{
	int rc = 0;

	buf_putc(&b->names, 'd');
	buf_put(&b->names, "", 1);
	for (size_t at = 0; !rc && buf_ok(&b->names) && at < b->names.len;) {
		char dir[STORE_KEY_MAX + 1];
		size_t len = strlen((const char *)b->names.data + at);

		b->dir = at;
		if (b->names.data[at] == 'd') {
			rc = join(key, (const char *)b->names.data + at + 1, dir, e);
			if (!rc)
				rc = tree_each(t, g, dir, gather, b, e);
		}
		at += len + 1;
	}
	if (!rc && (b->full || !buf_ok(&b->names)))
		rc = err_set(e, -ENOMEM, "too much is below '%.200s'", key);
	return rc;
}

/* described - whether a directory says itself what is in it, so that all that is below it means
 * under the new name what it means under the old one. */
static bool described(const struct below *b)
{
	static const char *const docs[] = {".zgroup", ".zarray", "zarr.json"};

	for (size_t at = 0; at < b->names.len;) {
		const char *text = (const char *)b->names.data + at;

		for (size_t i = 0; i < ARRAY_LEN(docs); i++)
			if (*text == 'f' && strcmp(text + 1, docs[i]) == 0)
				return true;
		at += strlen(text) + 1;
	}
	return false;
}

struct move {
	struct tree *t;
	const struct ground *g;
	bool alias;
};

static int move_file(const struct move *m, const char *from, const char *to, struct err *e)
{
	struct stage *s = m->t->stage;
	struct stage_entry x;
	struct found f;
	int rc = tree_settle(m->t, m->g, from, to, false, e);

	if (rc)
		return rc;
	stage_find(s, from, &x, NULL);
	if (x.kind == STAGE_DATA)
		return stage_link(s, from, to, e);
	/* what an alias means may be changed by a commit that runs: its content does not */
	if (m->alias && x.kind != STAGE_ALIAS)
		return stage_alias(s, to, from, e);
	rc = tree_find_below(m->t, m->g, from, &f, e);
	return rc ? rc : copy_base(m->t, m->g, from, to, &f, e);
}

static int move_all(const struct move *m, const struct below *b, const char *from,
		    const char *to, struct err *e)
{
	char was[STORE_KEY_MAX + 1], is[STORE_KEY_MAX + 1];
	int rc = 0;

	for (size_t at = 0; !rc && at < b->names.len;) {
		const char *text = (const char *)b->names.data + at;

		rc = join(from, text + 1, was, e);
		if (!rc)
			rc = join(to, text + 1, is, e);
		if (!rc)
			rc = *text == 'd' ? stage_mkdir(m->t->stage, is, e)
					  : move_file(m, was, is, e);
		at += strlen(text) + 1;
	}
	return rc;
}

/* rename_nodes - of what the kernel knows. */
static int rename_nodes(struct tree *t, const char *from, const char *to, struct err *e)
{
	struct node **v, *n = node_find(t, from), *old = node_find(t, to);
	char key[STORE_KEY_MAX + 1];
	size_t count;
	int rc = nodes_below(t, from, &v, &count, e);

	if (old)
		node_detach(t, old);
	node_put(t, old);
	if (!rc && n)
		rc = node_rename(t, n, to, e);
	node_put(t, n);
	if (!v)
		return rc;
	for (size_t i = 0; i < count; i++) {
		if (!rc)
			rc = join(to, v[i]->key + strlen(from) + 1, key, e);
		if (!rc)
			rc = node_rename(t, v[i], key, e);
		node_put(t, v[i]);
	}
	free(v);
	return rc;
}

int rename_dir(struct tree *t, const struct ground *g, const char *from, const char *to,
	       struct err *e)
{
	struct move m = {.t = t, .g = g};
	struct below b = {0};
	int rc;

	buf_init(&b.names, (size_t)1 << 30);
	rc = all_below(t, g, from, &b, e);
	m.alias = !t->o.whole && described(&b);
	if (!rc) {
		rc = move_all(&m, &b, from, to, e);
		/* of what did not get there whole nothing stays; when this fails, too, the new
		 * name is there besides */
		if (rc && stage_gone(t->stage, to, NULL) < 0)
			(void)err_wrap(e, rc, "'%.100s' is there in part", to);
	}
	buf_release(&b.names);
	if (!rc)
		rc = stage_gone(t->stage, from, e);
	return rc ? rc : rename_nodes(t, from, to, e);
}
