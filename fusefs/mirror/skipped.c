/* SPDX-License-Identifier: BSD-3-Clause */
/* skipped.c - warnings about datasets that a mirrored directory does not show.
 *
 * A dataset is skipped when its name in the other format is taken: a.nc is not shown as a.zarr if
 * there is a real a.zarr. That is known when a directory is listed. Before the mount only the names
 * in the top directory are compared, so that mounting a large directory stays fast. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/endings.h"
#include "base/observe/log.h"
#include "fusefs/mirror/mirror_int.h"

enum {
	TOP_ENTRIES = 10000, /* a larger directory is not checked before the mount */
	TOP_OPENED = 64,     /* files that are opened to detect datasets */
};

void mirror_log_skip(struct mirror *m, const char *dir, const char *source, const char *name,
		     const char *reason)
{
	auto_free char *path = path_join(m->setup->cfg->source, dir), *both = NULL;
	bool reported;

	if (!path || asprintf(&both, "%s/%s/%s", dir, source, name) < 0)
		return;
	const uint64_t hash = mirror_hash(m, both, strlen(both));

	(void)pthread_mutex_lock(&m->lock);
	reported = m->n_skips_reported == ARRAY_LEN(m->skips_reported);
	for (uint32_t i = 0; i < m->n_skips_reported; i++)
		reported = reported || m->skips_reported[i] == hash;
	if (!reported)
		m->skips_reported[m->n_skips_reported++] = hash;
	(void)pthread_mutex_unlock(&m->lock);
	/* differs from warn_taken, so that the log does not take it for a repetition */
	if (!reported)
		log_warn("in '%s', '%s' is not shown as '%s': %s",
			 *dir ? path : m->setup->cfg->source, source, name, reason);
}

/* top - the names in the top directory, sorted. */
struct top {
	struct top_entry {
		char *name; /* owned */
		mode_t type; /* S_IFMT bits */
	} *v;
	size_t n, cap;
};

static int top_order(const void *a, const void *b)
{
	const struct top_entry *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool top_has(const struct top *t, const char *name)
{
	const struct top_entry key = {.name = (char *)(uintptr_t)name}; /* only compared */

	return t->n && bsearch(&key, t->v, t->n, sizeof(*t->v), top_order);
}

static void top_free(struct top *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].name);
	free(t->v);
}

/* top_read - false: there are too many names, or they could not be read. */
static bool top_read(const struct mirror *m, struct top *t)
{
	DIR *d = opendir(m->setup->cfg->source);
	const struct dirent *entry;
	bool ok = d != NULL;

	while (ok && (errno = 0, entry = readdir(d))) {
		const char *name = entry->d_name;
		struct stat st;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || mirror_hidden(name) ||
		    (m->mount_name && strcmp(name, m->mount_name) == 0))
			continue;
		if (entry->d_type == DT_UNKNOWN &&
		    fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		ok = t->n < TOP_ENTRIES &&
		     grow_array(&t->v, &t->cap, t->n + 1, sizeof(*t->v)) == 0 &&
		     (t->v[t->n].name = strdup(name));
		if (ok && entry->d_type == DT_UNKNOWN)
			t->v[t->n++].type = st.st_mode & S_IFMT;
		else if (ok)
			t->v[t->n++].type = (mode_t)DTTOIF(entry->d_type);
	}
	ok = ok && errno == 0;
	if (d)
		(void)closedir(d); /* only read: no error to report */
	if (ok && t->n)
		qsort(t->v, t->n, sizeof(*t->v), top_order);
	return ok;
}

/* warn_taken - warn about an entry whose names in the other format exist. Returns the number of
 * warnings; *opened: number of files that were opened. */
static size_t warn_taken(const struct mirror *m, const struct top *t, const struct top_entry *at,
			 size_t *opened)
{
	char other[NAME_BYTES];
	size_t n = 0;
	unsigned rank;

	if (!S_ISREG(at->type) && !S_ISDIR(at->type))
		return 0;
	for (enum name_kind kind = NAME_TREE; kind <= NAME_NC4; kind++) {
		if (!name_counterpart(at->name, S_ISDIR(at->type), kind, other, &rank) ||
		    !top_has(t, other) || (*opened)++ >= TOP_OPENED ||
		    !mirror_has(m, at->name, kind))
			continue;
		log_warn("'%s/%s' is not shown as '%s': that name exists", m->setup->cfg->source,
			 at->name, other);
		n++;
	}
	return n;
}

/* warn_none - warn if all entries are files, and none of them is a dataset. */
static void warn_none(const struct mirror *m, const struct top *t)
{
	auto_buf endings = buf_of(1 << 12);
	size_t opened = 0;

	for (size_t i = 0; i < t->n; i++) {
		const char *name = t->v[i].name;

		if (!S_ISREG(t->v[i].type))
			return;
		if (ending_of(name) != ENDING_NONE &&
		    (opened++ == TOP_OPENED || mirror_has(m, name, NAME_PLAIN)))
			return;
	}
	for (size_t i = 0; i < ENDING_ROWS; i++)
		if (ending_rows[i].means != ENDING_JSON && ending_rows[i].means != ENDING_PARQUET)
			buf_printf(&endings, " %s", ending_rows[i].text);
	buf_putc(&endings, '\0');
	if (buf_ok(&endings))
		log_warn("no datasets found in '%s' (looked for%s)", m->setup->cfg->source,
			 (const char *)endings.data);
}

void mirror_warn_top(const struct mirror *m)
{
	size_t warned = 0, opened = 0;
	struct top t = {0};

	if (top_read(m, &t)) {
		for (size_t i = 0; i < t.n && warned < MIRROR_SKIPS_LOGGED; i++)
			warned += warn_taken(m, &t, &t.v[i], &opened);
		/* otherwise the user may want to create datasets in it */
		if (!m->setup->cfg->write.rw)
			warn_none(m, &t);
	}
	top_free(&t);
}
