/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - one file with new content, or with another name: what options.check looks at. */
#include <errno.h>
#include <string.h>

#include "translate/tree/tree_int.h"

struct pending_change {
	struct tree_change pub;
	const struct dirty_file *w; /* its content; NULL: that of `source` */
	const char *source;
};

static int pending_content(const struct tree_change *c, struct buf *out, struct err *e)
{
	const struct pending_change *p =
		CONTAINER_OF((uintptr_t)c, const struct pending_change, pub);
	struct store_io io = {.out = out, .before = out->len};
	size_t n;
	int rc;

	if (!p->w)
		return store_get(c->tree, p->source, out, NULL, e);
	rc = store_io_size(&io, c->key, p->w->size, e);
	rc = rc ? rc : work_read(p->w, 0, io.to, io.len, &n, e);
	if (rc)
		out->len = io.before;
	return rc;
}

int check_moved(struct tree *t, const char *key, const char *from, const struct dirty_file *w,
		bool stays, struct err *e)
{
	const struct pending_change p = {
		.pub = {.tree = t->content,
			.key = key,
			.from = stays ? NULL : from,
			.content = pending_content},
		.w = w,
		.source = from,
	};

	return t->o.check ? t->o.check(t->o.arg, &p.pub, e) : 0;
}

int check_work(struct tree *t, const char *key, const struct dirty_file *w, struct err *e)
{
	return check_moved(t, key, NULL, w, false, e);
}
