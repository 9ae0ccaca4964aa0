/* SPDX-License-Identifier: BSD-3-Clause */
/* write_set.c - the document of a reference set: datasets are prepared at the same time, and write
 * to it one after the other, in the order of their numbers.
 *
 * The thread whose number it is may write without the lock. What a dataset wrote before it failed
 * is cut off again, unless the document is a pipe: readers would take its missing chunks for fill
 * values. */
#include "nczarr/refs/write_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/str.h"
#include "base/core/utf8.h"
#include "base/os/lock.h"
#include "nczarr/documents.h"

#define GROUP_DOC "{\"zarr_format\": 2}"
#define GROUP_LONG ((size_t)1 << 16) /* bytes of a group's path */

/* ---- the file ---- */

/* set_write - write bytes to the document, with the turn or before there are parts. */
static int set_write(struct refs_set *set, const uint8_t *data, size_t n, struct err *e)
{
	int rc = pq_write(set->fd, data, n, e);

	LOCK_SCOPE(&set->lock);

	set->bytes += rc ? 0 : n;
	return rc;
}

/* set_entries - write entries that each begin with ",\n"; the first of a document has no comma. */
static int set_entries(struct refs_set *set, const char *group, const struct buf *text,
		       struct err *e)
{
	const size_t skip = !set->has_entries && text->len > 0;
	int rc;

	if (!buf_ok(text))
		return err_nomem(e);
	if (set->kind == REFS_SET_TABLE)
		return refs_table_add(set, group, text, e);
	rc = set_write(set, text->data + skip, text->len - skip, e);
	set->has_entries |= text->len > 0;
	return rc;
}

/* set_break - no more output is possible. */
static void set_break(struct refs_set *set, int code, const struct err *e)
{
	LOCK_SCOPE(&set->lock);

	if (set->broken.code == 0) {
		set->broken = *e;
		set->broken.code = code;
	}
}

int refs_set_broken(struct refs_set *set, struct err *e)
{
	LOCK_SCOPE(&set->lock);

	if (set->broken.code && e)
		*e = set->broken;
	return set->broken.code;
}

uint64_t refs_set_bytes(struct refs_set *set)
{
	LOCK_SCOPE(&set->lock);

	return set->bytes;
}

/* ---- groups above the datasets ---- */

/* put_group - append ",\n" and a key of a group's document. */
static void put_group(struct refs_set *set, struct buf *out, const char *path, size_t n)
{
	auto_buf key = buf_of(GROUP_LONG + 16);

	buf_put(&key, path, n);
	buf_puts(&key, n ? "/.zgroup" : ".zgroup");
	buf_puts(out, ",\n");
	if (buf_ok(&key))
		str_put_json(out, (const char *)key.data, key.len);
	else
		out->failed = true;
	buf_puts(out, ": ");
	if (set->kind == REFS_SET_PARQUET)
		buf_puts(out, GROUP_DOC);
	else
		str_put_json(out, GROUP_DOC, sizeof(GROUP_DOC) - 1);
}

/* put_groups - append the documents of the groups above `group` that are not above set->last. */
static void put_groups(struct refs_set *set, struct buf *out, const char *group)
{
	const char *last = (const char *)set->last.data;
	bool same = last != NULL; /* the groups up to here are above `last`, too */

	if (!same)
		put_group(set, out, "", 0);
	for (const char *slash = strchr(group, '/'); slash; slash = strchr(slash + 1, '/')) {
		const size_t n = (size_t)(slash - group);

		same = same && strncmp(last, group, n + 1) == 0;
		if (!same)
			put_group(set, out, group, n);
	}
}

/* ---- parts ---- */

void refs_part_key(struct refs_part *p, const char *key)
{
	buf_puts(&p->text, ",\n");
	str_put_json(&p->text, key, strlen(key));
	buf_puts(&p->text, ": ");
}

/* part_turn - wait for the part's turn. */
static void part_turn(struct refs_part *p)
{
	struct refs_set *set = p->set;

	if (p->has_turn)
		return;
	(void)pthread_mutex_lock(&set->lock);
	while (set->turn != p->number)
		(void)pthread_cond_wait(&set->turn_passed, &set->lock);
	(void)pthread_mutex_unlock(&set->lock);
	p->has_turn = true;
	p->had_entries = set->has_entries;
	p->from = set->truncates ? lseek(set->fd, 0, SEEK_CUR) : 0;
}

/* part_pass - let the next part write. */
static void part_pass(struct refs_part *p)
{
	struct refs_set *set = p->set;

	part_turn(p);
	LOCK_SCOPE(&set->lock);
	set->turn++;
	(void)pthread_cond_broadcast(&set->turn_passed);
}

int refs_part_flush(struct refs_part *p, size_t above, struct err *e)
{
	struct refs_set *set = p->set;
	const bool first = !p->has_turn;
	auto_buf groups = buf_of((size_t)1 << 24);
	int rc;

	if (!buf_ok(&p->text))
		return err_nomem(e);
	if (p->text.len <= above)
		return 0;
	part_turn(p);
	rc = refs_set_broken(set, e);
	/* more of the part follows, and it may fail */
	if (rc == 0 && first && above > 0 && set->kind == REFS_SET_TABLE) {
		rc = refs_table_flush(set, e);
		pq_writer_mark(set->rows, &p->mark);
		p->from = set->truncates ? lseek(set->fd, 0, SEEK_CUR) : 0;
	}
	if (rc == 0 && first && *p->group && set->kind != REFS_SET_TABLE) {
		put_groups(set, &groups, p->group);
		rc = set_entries(set, p->group, &groups, e);
	}
	rc = rc ? rc : set_entries(set, p->group, &p->text, e);
	buf_clear(&p->text);
	return rc;
}

/* part_undo - remove what the part wrote. */
static void part_undo(struct refs_part *p, const struct err *why)
{
	struct refs_set *set = p->set;
	struct err e = ERR_INIT;

	if (!p->has_turn)
		return; /* nothing */
	if (!set->truncates) {
		set_break(set, why->code, why);
		return;
	}
	if (set->kind == REFS_SET_TABLE)
		pq_writer_back(set->rows, &p->mark);
	set->pending = 0;
	if (p->from < 0 || ftruncate(set->fd, p->from) < 0 ||
	    lseek(set->fd, p->from, SEEK_SET) < 0)
		set_break(set, err_sys(&e, errno, "cannot write the references"), &e);
	set->has_entries = p->had_entries;
}

/* check_group - reject a path that keys cannot express. */
static int check_group(const char *group, struct err *e)
{
	const char *const *reserved = zr_format_of(2, true)->reserved;
	const size_t n = strlen(group);

	if (n >= GROUP_LONG)
		return err_set(e, -ENAMETOOLONG, "its path is too long");
	if (!utf8_ok(group, n))
		return err_set(e, -EILSEQ, "its name is not UTF-8, as keys of Zarr have to be");
	for (const char *p = group; *p; p += *p == '/') {
		const size_t len = strcspn(p, "/");

		for (size_t i = 0; reserved[i]; i++)
			if (strlen(reserved[i]) == len && strncmp(reserved[i], p, len) == 0)
				return err_set(
					e, -EINVAL,
					"'%s' is the name of a metadata file of Zarr, and "
					"a group cannot have it",
					reserved[i]);
		p += len;
	}
	return 0;
}

int refs_set_add(struct refs_set *set, uint64_t number, const char *group, struct source *s,
		 struct view *v, const struct refs_options *opts, struct err *e)
{
	static int (*const add[])(struct refs_part * p, struct source * s, struct view * v,
				  const struct refs_options *opts, bool *ret_out,
				  struct err *e) = {
		[REFS_SET_JSON] = refs_set_json_add,
		[REFS_SET_PARQUET] = refs_set_parquet_add,
		[REFS_SET_TABLE] = refs_set_table_add,
	};
	struct refs_part p = {
		.set = set, .number = number, .group = group, .text = buf_of(SIZE_MAX / 2)};
	struct err why = ERR_INIT;
	bool out = false;
	int rc;

	rc = check_group(group, &why);
	rc = rc ? rc : add[set->kind](&p, s, v, opts, &out, &why);
	if (rc == 0) {
		rc = refs_part_flush(&p, 0, &why);
		out = rc < 0;
	}
	if (rc == 0) {
		part_turn(&p);
		buf_clear(&set->last);
		buf_puts(&set->last, group);
		buf_putc(&set->last, '\0');
		rc = buf_ok(&set->last) ? 0 : err_nomem(&why);
		out = rc < 0;
	}
	if (out)
		set_break(set, rc, &why);
	else if (rc < 0)
		part_undo(&p, &why);
	part_pass(&p);
	buf_release(&p.text);
	return rc < 0 ? err_set(e, rc, "%s", why.msg) : 0;
}

void refs_set_pass(struct refs_set *set, uint64_t number)
{
	struct refs_part p = {.set = set, .number = number, .group = ""};

	part_pass(&p);
}

/* ---- the set ---- */

int refs_set_new(int fd, enum refs_kind kind, const char *head, struct refs_set **ret,
		 struct err *e)
{
	struct refs_set *set = alloc_array(1, sizeof(*set));
	struct stat st;
	int rc;

	if (!set)
		return err_nomem(e);
	*set = (struct refs_set){
		.fd = fd, .kind = kind, .dir_fd = -1, .last = buf_of(GROUP_LONG)};
	set->truncates = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	(void)pthread_mutex_init(&set->lock, NULL); /* cannot fail without attributes */
	(void)pthread_cond_init(&set->turn_passed, NULL);
	rc = set_write(set, (const uint8_t *)head, strlen(head), e);
	if (rc < 0) {
		set->fd = -1; /* the caller's */
		refs_set_free(set);
		return rc;
	}
	*ret = set;
	return 0;
}

int refs_set_json(int fd, struct refs_set **ret, struct err *e)
{
	return refs_set_new(fd, REFS_SET_JSON, "{\"version\": 1, \"refs\": {", ret, e);
}

int refs_set_end(struct refs_set *set, struct err *e)
{
	auto_buf tail = buf_of(256);
	int rc = refs_set_broken(set, e);

	if (rc == 0 && set->kind == REFS_SET_TABLE)
		return pq_writer_end(set->rows, set->fd, e);
	if (set->kind == REFS_SET_PARQUET)
		buf_printf(&tail, "\n}, \"record_size\": %" PRIu64 "}\n", set->records);
	else
		buf_puts(&tail, "\n}}\n");
	rc = rc ? rc : set_write(set, tail.data, tail.len, e);
	if (rc == 0 && set->kind == REFS_SET_PARQUET)
		rc = refs_set_parquet_sync(set, e);
	return rc;
}

void refs_set_free(struct refs_set *set)
{
	if (!set)
		return;
	if (set->kind == REFS_SET_PARQUET)
		refs_set_parquet_release(set);
	if (set->kind == REFS_SET_TABLE)
		refs_table_release(set);
	buf_release(&set->last);
	(void)pthread_cond_destroy(&set->turn_passed);
	(void)pthread_mutex_destroy(&set->lock);
	free(set);
}
