/* SPDX-License-Identifier: BSD-3-Clause */
/* refs.c - `nczarrfs refs`: opens the source as the view that its references describe, and writes
 * them to their destination.
 *
 * They are written in a child (run_in_child) under a temporary name next to their destination, and
 * renamed when they are complete. */
#include "fusefs/cmd/refs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/os/open_beneath.h"
#include "base/core/endings.h"
#include "base/os/io.h"
#include "base/observe/log.h"
#include "base/core/str.h"
#include "base/os/url.h"
#include "fusefs/cmd/commands.h"
#include "fusefs/cmd/progress.h"

#define HEAD_BYTES 4096 /* of an existing file */

struct refs_job {
	const struct app *setup;
	const struct fs_refs_table *table;
	const char *out; /* NULL: standard output */
	bool parquet;
	bool stream; /* out exists and is no regular file: a pipe, a device */
	char *tmp;   /* temporary name next to out; owned */
};

static int refs_write_json(const struct refs_job *j, struct source *s, struct view *v,
			   const char *address, struct err *e)
{
	const struct cfg *cfg = j->setup->cfg;
	auto_fd int fd = -1;
	int rc;

	if (!j->out)
		return j->table->json(s, v, cfg, address, STDOUT_FILENO, e);
	if (j->stream) {
		fd = open(j->out, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		return fd < 0 ? err_sys(e, errno, "'%s'", j->out)
			      : j->table->json(s, v, cfg, address, fd, e);
	}
	fd = open(j->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return err_sys(e, errno, "'%s'", j->out);
	rc = j->table->json(s, v, cfg, address, fd, e);
	if (rc == 0)
		rc = io_sync(fd, true, e);
	if (rc == 0 && rename(j->tmp, j->out) < 0)
		rc = err_sys(e, errno, "'%s'", j->out);
	return rc;
}

static int refs_write_parquet(const struct refs_job *j, struct source *s, struct view *v,
			      const char *address, struct err *e)
{
	int rc = j->table->parquet(s, v, j->setup->cfg, address, j->tmp, e);

	if (rc == 0 && renameat2(AT_FDCWD, j->tmp, AT_FDCWD, j->out, RENAME_NOREPLACE) < 0)
		rc = errno == EEXIST || errno == ENOTEMPTY
			     ? err_set(e, -EEXIST,
				       "'%s' already exists: remove it, or choose another name",
				       j->out)
			     : err_sys(e, errno, "'%s'", j->out);
	return rc;
}

/* plain_key - an address of an object store in the form that readers of references expect: gs://,
 * and without percent encoding. Takes r; new. */
static char *plain_key(char *r, struct err *e)
{
	struct buf b;
	size_t skip = strcspn(r, ":");

	buf_init(&b, (size_t)1 << 16);
	buf_puts(&b, r[0] == 'g' ? "gs" : "s3");
	if (url_decode(&b, r + skip, strlen(r + skip), e) < 0) {
		buf_release(&b);
		free(r);
		return NULL;
	}
	buf_putc(&b, '\0');
	free(r);
	r = buf_ok(&b) ? (char *)buf_take(&b, &skip) : NULL;
	if (!r)
		(void)err_nomem(e);
	buf_release(&b);
	return r;
}

/* refs_address_of - the address that references begin with: new. Options in it that only select how
 * it is read are left out, and an address that may contain a signature or token is rejected. */
static char *refs_address_of(const struct cfg *cfg, struct err *e)
{
	char *r = strdup(cfg->refs.address ? cfg->refs.address : cfg->source);
	size_t n;

	if (!r)
		(void)err_nomem(e);
	if (!r || cfg->refs.address || !cfg->remote)
		return r;
	r[strcspn(r, "#")] = '\0';
	if (strchr(r, '?')) {
		free(r);
		(void)err_set(e, -EINVAL,
			      "'%s': the query of this address would be readable in the "
			      "references: give the address to write with -o address=",
			      cfg->shown);
		return NULL;
	}
	for (n = strlen(r); n > 0 && r[n - 1] == '/'; n--)
		r[n - 1] = '\0';
	return strncmp(r, "s3:", 3) == 0 || strncmp(r, "gs:", 3) == 0 ||
			       strncmp(r, "gs3:", 4) == 0
		       ? plain_key(r, e)
		       : r;
}

static int refs_make(void *arg)
{
	const struct refs_job *j = arg;
	const struct cfg *cfg = j->setup->cfg;
	auto_free char *address = NULL;
	struct source *source = NULL;
	struct view *view = NULL;
	struct err e = ERR_INIT;
	int rc;

	address = refs_address_of(cfg, &e);
	rc = address ? fs_open_quietly(j->setup, &source, &view, &e) : e.code;
	if (rc < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	if (!source)
		rc = err_set(&e, -EISDIR,
			     "'%s' is a directory, not a dataset: name a dataset in it",
			     cfg->shown);
	if (rc == 0)
		rc = (j->parquet ? refs_write_parquet : refs_write_json)(j, source, view,
									 address, &e);
	if (rc < 0)
		log_error("%s", e.msg);
	if (view)
		view->ops->close(view);
	source_close(source);
	return rc < 0;
}

/* say_json - report the result for programs. */
static int say_json(const struct cfg *cfg, const char *out, bool parquet)
{
	struct buf text;

	buf_init(&text, 1 << 16);
	buf_putc(&text, '{');
	str_put_member(&text, "source", cfg->shown);
	str_put_member(&text, "references", out);
	str_put_member(&text, "format", parquet ? "parquet" : "json");
	buf_puts(&text, "}\n");
	return print_text(&text);
}

/* say_text - report the result for people. */
static int say_text(const struct refs_job *j)
{
	struct stat st;
	struct buf text;

	buf_init(&text, 1 << 16);
	str_put_plain(&text, j->setup->cfg->out);
	buf_puts(&text, ": references to ");
	str_put_plain(&text, j->setup->cfg->shown);
	if (j->parquet || stat(j->out, &st) < 0) {
		buf_puts(&text, j->parquet ? ", Parquet files written\n" : " written\n");
	} else {
		buf_puts(&text, ", ");
		progress_bytes(&text, (uint64_t)st.st_size);
		buf_puts(&text, " written\n");
	}
	return print_text(&text);
}

/* are_references - true if new references may replace a file: it is empty, or has older references.
 * All writers begin with an object that has one of these names near its start. */
static bool are_references(const char *path)
{
	static const char *const names[] = {"\"refs\"", "\".zgroup\"", "\"zarr.json\"",
					    "\".zmetadata\""};
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[HEAD_BYTES + 1];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, HEAD_BYTES, 0);

	if (n <= 0)
		return n == 0;
	text[n] = '\0';
	if (text[strspn(text, " \t\r\n")] != '{')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strstr(text, names[i]))
			return true;
	return false;
}

/* may_replace - check an existing output: only older references are replaced, and never the
 * source. */
static int may_replace(struct refs_job *j, const struct stat *st, struct err *e)
{
	struct stat source;

	if (stat(j->setup->cfg->source, &source) == 0 && source.st_dev == st->st_dev &&
	    source.st_ino == st->st_ino)
		return err_set(e, -EINVAL, "'%s' is the source: choose another file for the "
					   "references",
			       j->out);
	if (j->parquet)
		return err_set(e, -EEXIST,
			       "'%s' already exists: remove it, or choose another name", j->out);
	j->stream = !S_ISREG(st->st_mode);
	if (!j->stream && !are_references(j->out))
		return err_set(e, -EEXIST,
			       "'%s' already exists and is not a reference file: remove it, or "
			       "choose another name",
			       j->out);
	return 0;
}

/* settle_out - choose the kind of references and the output path. *ret_real: out without links;
 * new, or NULL. */
static int settle_out(struct refs_job *j, char **ret_real, struct err *e)
{
	const char *out = j->setup->cfg->out;
	struct stat st;
	bool there;
	int rc = 0;

	if (!out || strcmp(out, "-") == 0)
		return 0;
	j->out = out;
	there = stat(out, &st) == 0;
	if (!there && lstat(out, &st) == 0)
		return err_set(e, -ENOENT, "'%s' is a dangling symbolic link", out);
	j->parquet = ending_of(out) == ENDING_PARQUET ||
		     (ending_of(out) != ENDING_JSON && there && S_ISDIR(st.st_mode));
	if (there && S_ISDIR(st.st_mode) && !j->parquet)
		return err_set(e, -EISDIR, "'%s' is a directory", out);
	if (there)
		rc = may_replace(j, &st, e);
	if (rc < 0 || j->stream)
		return rc;
	if (there && (*ret_real = realpath(out, NULL)))
		j->out = *ret_real; /* the target of a link is replaced, and not the link */
	return asprintf(&j->tmp, "%s.nczarrfs-%ld", j->out, (long)getpid()) < 0 ? err_nomem(e) : 0;
}

int fs_refs(const struct app *setup, const struct fs_refs_table *table)
{
	const struct cfg *cfg = setup->cfg;
	struct refs_job j = {.setup = setup, .table = table};
	auto_free char *real = NULL;
	struct err e = ERR_INIT;
	int status;

	if (settle_out(&j, &real, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	status = run_in_child(cfg->shown, 0, refs_make, &j);
	if (!status && cfg->json && j.out)
		status = say_json(cfg, cfg->out, j.parquet);
	else if (!status && j.out && !j.stream)
		status = say_text(&j);
	if (status && j.tmp)
		remove_beneath(AT_FDCWD, j.tmp);
	free(j.tmp);
	return status;
}
