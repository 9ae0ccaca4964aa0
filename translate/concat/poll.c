/* SPDX-License-Identifier: BSD-3-Clause */
/* poll.c - checks whether the pattern still matches the joined files: once a second it compares the
 * names and identities of all files. */
#define LOG_COMPONENT LOG_SOURCE
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/core/hash.h"
#include "base/observe/log.h"

#define YOUNG_S 3         /* seconds in which a folder's time proves nothing */

uint64_t concat_set_digest(const struct concat_member *v, size_t n)
{
	uint64_t sum = n;

	for (size_t i = 0; i < n; i++)
		sum += hash_bytes(hash_text(HASH_SEED, v[i].path), v[i].id.v, sizeof(v[i].id.v));
	return sum;
}

/* poll_kept - whether all that is joined is among v, as it was. */
static bool poll_kept(const struct concat *j, const struct concat_member *v, size_t n)
{
	for (size_t i = 0, k = 0; i < j->n_members; i++) {
		const struct concat_member *m = NULL;

		/* both have an order, though not the same one: look from where the last was */
		for (size_t tried = 0; tried < n && !m; tried++, k = (k + 1) % n)
			if (strcmp(v[k].path, j->members[i].path) == 0)
				m = &v[k];
		if (!m || !concat_id_same(&m->id, &j->members[i].id))
			return false;
	}
	return true;
}

/* poll_decide - the set has been another one for a second. If it only adds files, and cannot be
 * joined, it is ignored: a file may be incomplete. */
static int poll_decide(struct concat *j, uint64_t digest, bool all_kept, struct err *e)
{
	struct concat *now = NULL;
	struct err why = ERR_INIT;
	int rc;

	if (!all_kept)
		return err_set(e, -ESTALE, "a joined file changed or was removed");
	if (digest == j->refused_set)
		return 0;
	rc = concat_new(j->formats, j->n_formats, j->pattern, &j->opts, &now, &why);
	concat_free(now);
	if (rc == 0)
		return err_set(e, -ESTALE, "'%s' matches other files now",
			       concat_name(j->pattern));
	j->refused_set = digest;
	log_warn("'%s': new files cannot be joined and are not shown: %s",
		 concat_name(j->pattern), why.msg);
	return 0;
}

/* next_open - an open member, in turn; CONCAT_NONE: there is none. */
static uint32_t next_open(struct concat *j)
{
	uint32_t member;
	LOCK_SCOPE(&j->lock);

	if (j->n_open == 0)
		return CONCAT_NONE;
	member = j->open_list[j->poll_at++ % j->n_open];
	return j->slots[member].state == CONCAT_OPEN ? member : CONCAT_NONE;
}

/* poll_dir - the id of a directory does not reflect its contents: ask it. One that is closed is
 * opened, which compares it with the joined one. */
static int poll_dir(struct concat *j, uint32_t member, struct err *e)
{
	const struct concat_opened *at;
	int rc;

	if (member == CONCAT_NONE || !j->members[member].id.dir)
		return 0;
	rc = concat_take(j, member, &at, e);
	if (rc == 0) {
		rc = source_poll(at->source, e);
		concat_give(j, member);
	}
	return rc == -ESTALE ? rc : 0;
}

/* poll_files - some of the members in turn: a file that is written in place is not seen in its
 * folder. */
static int poll_files(struct concat *j, struct err *e)
{
	size_t n = j->n_members < CONCAT_FILES_POLLED ? j->n_members : CONCAT_FILES_POLLED;

	for (; n > 0; n--) {
		const struct concat_member *m = &j->members[j->file_at++ % j->n_members];
		struct concat_id id;
		struct stat st;

		if (stat(m->path, &st) == 0)
			concat_id_of(&st, &id);
		else if (errno != ENOENT)
			continue; /* an accident: the next look tells */
		else
			return err_set(e, -ESTALE, "'%s' no longer exists",
				       concat_name(m->path));
		if (!concat_id_same(&id, &m->id))
			return err_set(e, -ESTALE, "'%s' changed", concat_name(m->path));
	}
	return 0;
}

static int poll_some(struct concat *j, struct err *e)
{
	int rc = poll_files(j, e);

	rc = rc ? rc : poll_dir(j, next_open(j), e);
	return rc == 0 ? poll_dir(j, (uint32_t)(j->dir_at++ % j->n_members), e) : rc;
}

/* may_list - whether the pattern may name other files than the last time. Names that come and go
 * change their folder's time, but for what happens within one tick of the clock; of patterns with
 * several folders that is not looked at. */
static bool may_list(struct concat *j)
{
	auto_free char *folder = concat_folder(j->pattern);
	const char *wild = strpbrk(j->pattern, "*?[");
	const struct timespec now = clock_wall();
	struct stat st;
	bool same;

	if (!folder || (wild && strchr(wild, '/')) || stat(folder, &st) < 0)
		return true;
	same = st.st_mtim.tv_sec == j->folder_time.tv_sec &&
	       st.st_mtim.tv_nsec == j->folder_time.tv_nsec;
	j->folder_time = st.st_mtim;
	return !same || j->seen_set != j->poll_set ||
	       (now.tv_sec >= st.st_mtim.tv_sec && now.tv_sec - st.st_mtim.tv_sec < YOUNG_S);
}

int concat_poll(struct source *s, struct err *e)
{
	struct concat *j = concat_of(s);
	struct concat_member *v = NULL;
	struct err why = ERR_INIT;
	uint64_t digest;
	size_t n = 0;
	bool same;
	int rc;

	if (atomic_load(&j->stale))
		return err_set(e, -ESTALE, "one of the joined files changed");
	if (!may_list(j))
		return poll_some(j, e);
	rc = concat_list(j, &v, &n, &why);
	if (rc == -ENOENT)
		return err_set(e, -ESTALE, "'%s': no file matches any more",
			       concat_name(j->pattern));
	if (rc < 0)
		return 0; /* an accident: the next look tells */
	digest = concat_set_digest(v, n);
	same = digest == j->poll_set;
	if (!same && digest == j->seen_set)
		rc = poll_decide(j, digest, poll_kept(j, v, n), e);
	j->seen_set = digest;
	concat_members_free(v, n);
	return rc == 0 ? poll_some(j, e) : rc;
}
