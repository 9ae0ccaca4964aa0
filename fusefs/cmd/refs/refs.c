/* SPDX-License-Identifier: BSD-3-Clause */
/* refs.c - `nczarrfs refs`: opens the source as the view that its references describe, and writes
 * them to their destination.
 *
 * They are written in a child (run_in_child) under a temporary name next to their destination, and
 * renamed when they are complete. */
#include "fusefs/cmd/refs/refs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/os/open_beneath.h"
#include "base/core/endings.h"
#include "base/os/io.h"
#include "base/observe/log.h"
#include "base/core/str.h"
#include "base/observe/print.h"
#include "base/os/url.h"
#include "fusefs/app/remote.h"
#include "fusefs/cmd/refs/refs_int.h"
#include "fusefs/mirror/view.h"
#include "translate/concat/concat.h"
#include "translate/rechunk/rechunk.h"

#define HEAD_BYTES 4096 /* of an existing file */
#define REMOTE_THREADS 16 /* they wait for a server, and not for a processor */
#define INLINE_MAX ((uint64_t)64 << 20) /* bytes of a chunk that is embedded */

/* ---- the output ---- */

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

int refs_open_output(const struct refs_job *j, struct refs_set **ret, int *ret_fd,
		     struct err *e)
{
	int (*begin)(int fd, struct refs_set **ret, struct err *e) =
		j->setup->cfg->refs.table ? refs_set_table : refs_set_json;

	*ret_fd = -1;
	if (j->parquet)
		return refs_set_parquet(j->tmp, 0, ret, e);
	if (!j->out)
		return begin(STDOUT_FILENO, ret, e);
	*ret_fd = j->stream ? open(j->out, O_WRONLY | O_CLOEXEC | O_NOCTTY)
			    : open(j->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
				   0666);
	if (*ret_fd < 0)
		return err_sys(e, errno, "'%s'", j->out);
	return begin(*ret_fd, ret, e);
}

/* rename_new - rename tmp to a name that does not exist. Returns 0, or -1 with errno: EEXIST. */
static int rename_new(const struct refs_job *j)
{
	struct stat st;

	if (renameat2(AT_FDCWD, j->tmp, AT_FDCWD, j->out, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	/* a file system without the flag, such as NFS */
	if (!j->parquet && link(j->tmp, j->out) == 0) {
		(void)unlink(j->tmp); /* a second name of the output at worst */
		return 0;
	}
	if (!j->parquet && errno == EEXIST)
		return -1;
	if (lstat(j->out, &st) == 0) {
		errno = EEXIST;
		return -1;
	}
	return rename(j->tmp, j->out);
}

/* give_name - rename the complete output. */
static int give_name(const struct refs_job *j, struct err *e)
{
	/* only what was there at the start, and is still a reference file, is replaced */
	const bool replaced = j->replaces && are_references(j->out);

	if ((replaced ? rename(j->tmp, j->out) : rename_new(j)) == 0)
		return 0;
	if (errno != EEXIST && errno != ENOTEMPTY)
		return err_sys(e, errno, "'%s'", j->out);
	return err_set(e, -EEXIST,
		       "'%s' was created by another program meanwhile: remove it, or choose "
		       "another name",
		       j->out);
}

int refs_close_output(const struct refs_job *j, struct refs_set *set, int fd, struct err *e)
{
	int rc = refs_set_end(set, e);

	if (rc < 0 || !j->tmp)
		return rc;
	if (!j->parquet)
		rc = io_sync(fd, true, e);
	return rc ? rc : give_name(j, e);
}

/* plain_key - an address of an object store in the form that readers of references expect: gs://,
 * and without percent encoding. Takes r; new. */
static char *plain_key(char *r, struct err *e)
{
	auto_buf b = buf_of((size_t)1 << 16);
	size_t skip = strcspn(r, ":");

	buf_puts(&b, r[0] == 'g' ? "gs" : "s3");
	if (url_decode(&b, r + skip, strlen(r + skip), e) < 0) {
		free(r);
		return NULL;
	}
	buf_putc(&b, '\0');
	free(r);
	r = buf_ok(&b) ? (char *)buf_take(&b, &skip) : NULL;
	if (!r)
		(void)err_nomem(e);
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
	if (!r || cfg->refs.address || !cfg->is_remote)
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

struct refs_options refs_options_of(const struct refs_job *j, const char *address)
{
	return (struct refs_options){.address = address,
				     .inlined = j->setup->cfg->refs.inlined,
				     .max_inline = INLINE_MAX};
}

int refs_unchanged(struct source *s, int rc, struct err *e)
{
	const uint32_t files = concat_files(rechunk_inner(s));
	struct err why = ERR_INIT;

	for (uint32_t at = 0; rc == 0 && at < files; at += CONCAT_FILES_POLLED)
		if (source_poll(s, &why) == -ESTALE)
			rc = err_set(e, -ESTALE, "%s", why.msg);
	if (rc != -ESTALE)
		return rc;
	why = *e;
	return err_set(e, rc, "%s: run the command again", why.msg);
}

/* check_address - reject an address to which paths cannot be appended, before files are read. */
static int check_address(const struct refs_job *j, struct err *e)
{
	const struct cfg *cfg = j->setup->cfg;
	const bool appended = j->several || (cfg->concat.dim && cfg->refs.address);

	if (!appended || !strpbrk(j->address, "?#") || strncasecmp(j->address, "http", 4) != 0)
		return 0;
	return err_set(e, -EINVAL,
		       "-o address=: '%s' has a query or a fragment, so that it cannot be the "
		       "address of a directory",
		       j->address);
}

uint32_t refs_threads(const struct cfg *cfg)
{
	cpu_set_t set;

	if (cfg->limits.decode_threads)
		return cfg->limits.decode_threads;
	if (cfg->is_remote)
		return REMOTE_THREADS;
	return sched_getaffinity(0, sizeof(set), &set) < 0 ? 2 : 2 * (uint32_t)CPU_COUNT(&set);
}

/* ---- one dataset ---- */

/* refs_progress - the progress of one dataset. */
struct refs_progress {
	struct refs_set *set;
	struct progress progress;
};

static void show_chunks(void *arg, uint64_t done, uint64_t all)
{
	struct refs_progress *s = arg;

	progress_show(&s->progress, all ? (double)done / (double)all : 1, done, "chunks",
		      refs_set_bytes(s->set));
}

static int refs_one(const struct refs_job *j, struct err *e)
{
	const struct cfg *cfg = j->setup->cfg;
	/* without an address, the files of a concatenation keep their own paths */
	auto_free char *folder =
		cfg->concat.dim && cfg->refs.address ? concat_folder(cfg->source) : NULL;
	struct refs_progress one = {.set = NULL};
	struct refs_options opts = refs_options_of(j, j->address);
	struct source *source;
	struct view *view = NULL;
	int fd = -1, rc = 0;

	if (cfg->concat.dim && cfg->refs.address && !folder)
		rc = err_nomem(e);
	rc = rc ? rc : fs_open_quietly(j->setup, &view, e);
	if (rc < 0)
		return rc;
	source = view->source;
	fs_rules_warn(j->setup->rules, cfg, &source->ds, NULL);
	opts.folder = folder;
	opts.files = concat_files(rechunk_inner(source));
	opts.threads = refs_threads(cfg);
	opts.window = cfg->limits.open_datasets / 2;
	opts.progress = show_chunks;
	opts.progress_arg = &one;
	rc = refs_open_output(j, &one.set, &fd, e);
	if (rc == 0) {
		progress_begin(&one.progress);
		rc = refs_set_add(one.set, 0, "", source, view, &opts, e);
		progress_end(&one.progress);
		rc = refs_unchanged(source, rc, e);
	}
	rc = rc ? rc : refs_close_output(j, one.set, fd, e);
	refs_set_free(one.set);
	close_fd(&fd); /* it was synced */
	view_close(view);
	return rc;
}

/* ---- reports ---- */

/* is_stdout - whether a path such as /dev/stdout is standard output, which a report must not
 * follow. */
static bool is_stdout(const char *path)
{
	struct stat a, b;

	return stat(path, &a) == 0 && fstat(STDOUT_FILENO, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* report_json - report the result for programs. */
static int report_json(const struct refs_job *j)
{
	const struct cfg *cfg = j->setup->cfg;
	struct buf text = buf_of(1 << 16);

	buf_putc(&text, '{');
	str_put_member(&text, "source", cfg->shown);
	str_put_member(&text, "references", cfg->out);
	str_put_member(&text, "format",
		       cfg->refs.table ? "table"
		       : j->parquet    ? "parquet"
				       : "json");
	if (j->several)
		buf_printf(&text, ", \"datasets\": %" PRIu64 ", \"left_out\": %" PRIu64
			   ", \"unreadable\": %" PRIu64,
			   j->datasets, j->left_out, j->unreadable);
	buf_puts(&text, "}\n");
	return print_text(&text);
}

/* report_text - report the result for people. */
static int report_text(const struct refs_job *j)
{
	struct stat st;
	struct buf text = buf_of(1 << 16);

	str_put_plain(&text, j->setup->cfg->out);
	buf_puts(&text,
		 j->setup->cfg->refs.table ? ": table of the chunks of " : ": references to ");
	if (j->several)
		buf_printf(&text, "%" PRIu64 " dataset%s of ", j->datasets,
			   j->datasets == 1 ? "" : "s");
	str_put_plain(&text, j->setup->cfg->shown);
	if (j->left_out)
		buf_printf(&text, " (%" PRIu64 " left out)", j->left_out);
	if (j->unreadable)
		buf_printf(&text, " (%" PRIu64 " files or directories could not be read)",
			   j->unreadable);
	if (j->parquet || stat(j->out, &st) < 0) {
		buf_puts(&text, j->parquet ? ", Parquet files written\n" : " written\n");
	} else {
		buf_puts(&text, ", ");
		progress_bytes(&text, (uint64_t)st.st_size);
		buf_puts(&text, " written\n");
	}
	return print_text(&text);
}

static int refs_make(void *arg)
{
	struct refs_job *j = arg;
	const struct cfg *cfg = j->setup->cfg;
	struct err e = ERR_INIT;
	int rc;

	if (cfg->is_remote && !cfg->concat.dim) {
		/* remote access has a thread: the process that forks has to exist before it */
		rc = app_prepare(j->setup, &e);
		rc = rc ? rc : fs_remote_folder(j->setup, cfg->source, &j->folder, &e);
	} else {
		rc = mirror_only(j->setup, &e);
	}
	j->several = rc > 0;
	if (rc >= 0) {
		j->address = refs_address_of(cfg, &e);
		rc = j->address ? check_address(j, &e) : e.code;
	}
	if (rc == 0)
		rc = j->several ? refs_directory(j, &e) : refs_one(j, &e);
	if (rc < 0 && e.code)
		log_error("%s", e.msg);
	free(j->address);
	store_close(j->folder);
	if (rc < 0)
		return 1;
	if (!j->out || is_stdout(j->out))
		return 0;
	if (cfg->json)
		return report_json(j);
	return !j->stream ? report_text(j) : 0;
}

/* ---- the command ---- */

/* may_replace - check an existing output: only older references are replaced, and never the
 * source. */
static int may_replace(struct refs_job *j, const struct stat *st, struct err *e)
{
	struct stat source;

	if (stat(j->setup->cfg->source, &source) == 0 && source.st_dev == st->st_dev &&
	    source.st_ino == st->st_ino)
		return err_set(e, -EINVAL,
			       "'%s' is the source: choose another file for the "
			       "references",
			       j->out);
	j->stream = !j->parquet && !S_ISREG(st->st_mode);
	if (j->parquet || (j->setup->cfg->refs.table && !j->stream))
		return err_set(e, -EEXIST,
			       "'%s' already exists: remove it, or choose another name",
			       j->out);
	if (!j->stream && !are_references(j->out))
		return err_set(e, -EEXIST,
			       "'%s' already exists and is not a reference file: remove it, or "
			       "choose another name",
			       j->out);
	j->replaces = !j->stream;
	return 0;
}

/* name_tmp - choose the temporary name. Its random part, unlike a process number, is never that of
 * a run on another machine or in another container, whose file would be removed. */
static int name_tmp(struct refs_job *j, struct err *e)
{
	uint64_t part;

	if (getrandom(&part, sizeof(part), 0) != (ssize_t)sizeof(part))
		return err_sys(e, errno ? errno : EIO, "getrandom");
	j->tmp = str_printf("%s.nczarrfs-%016" PRIx64, j->out, part);
	return j->tmp ? 0 : err_nomem(e);
}

/* refuse_nested - in Parquet, the keys of chunks have the form 0.0, which readers compute. */
static int refuse_nested(const struct refs_job *j, struct err *e)
{
	return j->setup->cfg->zarr.nested
		       ? err_set(e, -EINVAL,
				 "Parquet files support dimension_separator=. only: leave it "
				 "out, or write JSON")
		       : 0;
}

/* settle_out - choose the kind of references and the output path. *ret_real: out without links;
 * new, or NULL. */
static int settle_out(struct refs_job *j, char **ret_real, struct err *e)
{
	const char *out = j->setup->cfg->out;
	const bool table = j->setup->cfg->refs.table;
	struct stat st;
	bool there;
	int rc = table ? refuse_nested(j, e) : 0;

	if (rc < 0 || !out || strcmp(out, "-") == 0)
		return rc;
	j->out = out;
	there = stat(out, &st) == 0;
	if (!there && lstat(out, &st) == 0)
		return err_set(e, -ENOENT, "'%s' is a dangling symbolic link", out);
	if (table && ending_of(out) == ENDING_JSON)
		return err_set(
			e, -EINVAL,
			"'%s': -o table writes a Parquet file: choose a name that ends in "
			".parquet",
			out);
	j->parquet =
		!table && (ending_of(out) == ENDING_PARQUET ||
			   (ending_of(out) != ENDING_JSON && there && S_ISDIR(st.st_mode)));
	if (there && S_ISDIR(st.st_mode) && !j->parquet)
		return err_set(e, -EISDIR, "'%s' is a directory", out);
	if (j->parquet && (rc = refuse_nested(j, e)) < 0)
		return rc;
	if (there)
		rc = may_replace(j, &st, e);
	if (rc < 0 || j->stream)
		return rc;
	if (there && (*ret_real = realpath(out, NULL)))
		j->out = *ret_real; /* the target of a link is replaced, and not the link */
	return name_tmp(j, e);
}

int fs_refs(const struct app *setup)
{
	struct refs_job j = {.setup = setup};
	auto_free char *real = NULL;
	struct err e = ERR_INIT;
	int status;

	if (settle_out(&j, &real, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	status = run_in_child(setup->cfg->shown, 0, refs_make, &j);
	if (status && j.tmp)
		remove_beneath(AT_FDCWD, j.tmp);
	free(j.tmp);
	return status;
}
