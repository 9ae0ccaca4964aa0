/* SPDX-License-Identifier: BSD-3-Clause */
/* scene_walk.c - asks a view everything that a kernel can ask. Allocates nothing itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/faults/scene.h"

#define ENTRIES 20000
#define TEXT ((size_t)1 << 20)
#define PIECE ((size_t)64 << 10)

struct node {
	uint64_t id;
	const char *name;
	bool is_dir;
};

static struct {
	struct view *v;
	const char *tag;
	struct node nodes[ENTRIES];
	size_t n;
	char text[TEXT];
	size_t used;
	uint64_t names; /* of the listing: in no order */
	uint32_t level;
} w;

static uint8_t room[PIECE], piece[PIECE];

static bool collect(void *arg, const char *name, uint64_t id, bool is_dir,
		    const struct view_attr *attr, uint64_t next)
{
	size_t n = strlen(name) + 1;

	(void)arg;
	(void)next;
	if (w.n == ENTRIES || n > TEXT - w.used) {
		wrong("%s: too many entries for this test", w.tag);
		return false;
	}
	memcpy(w.text + w.used, name, n);
	w.nodes[w.n++] = (struct node){.id = id, .name = w.text + w.used, .is_dir = is_dir};
	w.used += n;
	w.names += mix(mix(MIX_START, name, n), &is_dir, sizeof(is_dir));
	if (attr && attr->unknown && faults_now())
		return true;
	if (attr && !is_dir && attr->is_dir)
		wrong("%s: '%s' is and is not a directory", w.tag, name);
	return true;
}

/* take - what one read gave. A range of a descriptor is read as the kernel would. */
static int take(struct span *s, uint64_t *h)
{
	ssize_t n = (ssize_t)s->len;

	if (s->len && !s->mem) {
		n = s->len <= PIECE ? syscall(SYS_pread64, s->fd, piece, s->len, s->off) : -1;
		if (n == (ssize_t)s->len)
			*h = mix(*h, piece, s->len);
	} else if (s->len) {
		*h = mix(*h, s->mem, s->len);
	}
	for (size_t i = 0; i < s->zeros; i++)
		*h = mix(*h, "", 1);
	span_done(s);
	return n == (ssize_t)s->len ? 0 : -EIO;
}

static void read_file(const char *path, uint64_t id, uint64_t size)
{
	struct err e = ERR_INIT;
	uint64_t h = MIX_START, at = 0;
	int rc = 0;

	while (rc == 0 && at < size) {
		struct span s = {0};
		size_t n;

		rc = w.v->ops->read(w.v, id, 0, at, PIECE, room, &s, &e);
		if (rc < 0)
			break;
		n = s.len + s.zeros;
		if (n == 0 || n > size - at) {
			wrong("%s: a read at %" PRIu64 " of %" PRIu64 " gives %zu", path, at,
			      size, n);
			span_done(&s);
			return;
		}
		rc = take(&s, &h);
		at += n;
	}
	answer(rc, h, &e, "%s content", path);
}

static void ask_xattrs(const char *path, uint64_t id)
{
	struct err e = ERR_INIT;
	char names[2048];
	struct buf out;
	size_t n = 0;
	int rc;

	if (!w.v->ops->xattr)
		return;
	buf_init(&out, 65536);
	rc = w.v->ops->xattr(w.v, id, NULL, &out, &e);
	if (rc == 0 && !buf_ok(&out))
		rc = -ENOMEM;
	if (rc == 0 && out.len < sizeof(names)) {
		n = out.len;
		memcpy(names, out.data ? out.data : (const uint8_t *)"", n);
	}
	answer(rc, mix(MIX_START, names, n), &e, "%s xattrs", path);
	buf_release(&out);
	for (size_t i = 0; i < n; i += strlen(names + i) + 1) {
		rc = w.v->ops->xattr(w.v, id, names + i, &out, &e);
		if (rc == 0 && !buf_ok(&out))
			rc = -ENOMEM;
		answer(rc, rc ? 0 : mix(MIX_START, out.data, out.len), &e, "%s xattr %s", path,
		       names + i);
		buf_release(&out);
	}
}

static void walk(uint64_t dir, const char *path);

static void visit(uint64_t dir, const char *path, const struct node *x)
{
	struct view_attr a = {0}, b = {0};
	struct err e = ERR_INIT;
	char below[1024];
	uint64_t h;
	int rc = w.v->ops->lookup(w.v, dir, x->name, strlen(x->name), &a, &e);

	(void)snprintf(below, sizeof(below), "%s/%s", path, x->name);
	if (rc == 0 && a.unknown && faults_now()) {
		struct span s = {0};

		rc = w.v->ops->read(w.v, a.id, 0, 0, PIECE, room, &s, &e);
		if (rc == 0)
			span_done(&s);
		answer(rc == 0 ? -EIO : rc, 0, &e, "%s", below);
		if (w.v->ops->forget)
			w.v->ops->forget(w.v, a.id, 1);
		return;
	}
	h = mix(mix(MIX_START, &a.size, sizeof(a.size)), &a.is_dir, sizeof(a.is_dir));
	answer(rc, h, &e, "%s", below);
	if (rc < 0)
		return;
	rc = w.v->ops->getattr(w.v, a.id, &b, &e);
	if (rc == 0 && !b.unknown && (a.size != b.size || a.is_dir != b.is_dir))
		wrong("%s: attributes are %" PRIu64 " and %" PRIu64, below, a.size, b.size);
	answer(rc, 0, &e, "%s attributes", below);
	ask_xattrs(below, a.id);
	if (a.is_dir)
		walk(a.id, below);
	else if (!a.is_link)
		read_file(below, a.id, a.size);
	if (w.v->ops->forget)
		w.v->ops->forget(w.v, a.id, 1);
}

static void walk(uint64_t dir, const char *path)
{
	size_t first = w.n, used = w.used, end;
	struct view_attr none;
	struct err e = ERR_INIT;
	int rc;

	w.names = 0;
	rc = w.v->ops->list(w.v, dir, 0, w.level++ % 2, collect, NULL, &e);
	answer(rc, w.names, &e, "%s/", path);
	end = w.n;
	for (size_t i = first; rc == 0 && i < end; i++)
		visit(dir, path, &w.nodes[i]);
	rc = w.v->ops->lookup(w.v, dir, "no-such-name", 12, &none, &e);
	if (rc == 0 && none.unknown && faults_now())
		rc = -EIO;
	answer(rc, 0, &e, "%s/no-such-name", path);
	w.n = first;
	w.used = used;
}

void walk_view(struct view *v, const char *tag)
{
	w.v = v;
	w.tag = tag;
	w.n = w.used = 0;
	w.level = 0;
	walk(VIEW_ROOT, tag);
}
