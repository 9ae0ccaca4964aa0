/* SPDX-License-Identifier: BSD-3-Clause */
/* recover_folder.c - `nczarrfs recover` of a directory of datasets, such as a mirrored one: each
 * dataset with pending writes, in the order of their paths, each in a process of its own.
 *
 * Every dataset with a state directory is recovered, whatever it contains: a dataset that a mount
 * has just created is an empty file. The walk enters no Zarr store and follows no link, like
 * cmd/check/walk.c. */
#include "fusefs/write/writable_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/observe/log.h"
#include "base/core/str.h"
#include "base/observe/print.h"
#include "fusefs/mirror/view.h"
#include "fusefs/app/remote.h"

#define DEPTH_MAX 100 /* nesting limit of directories */
#define SUFFIX ".nczarrfs"
#define HASHED_BYTES 217 /* bytes before the suffix in the name of a state directory with a hash */

/* recover_walk - a walk through the directory. */
struct recover_walk {
	const struct app *setup;
	rw_recover_fn *one;
	uint64_t found, failed;
	bool missed; /* an entry could not be examined, which was reported */
};

static void recover_folder_missed(struct recover_walk *w, int errnum, const char *path)
{
	struct err e = ERR_INIT;

	(void)err_sys(&e, errnum, "'%s'", path);
	log_error("%s", e.msg);
	w->missed = true;
}

bool rw_state_is_there(const struct cfg *cfg, const char *path)
{
	auto_free char *dir = NULL, *real = NULL;
	struct err e = ERR_INIT;
	struct stat st;

	return rw_state_dir(cfg, path, &dir, &real, &e) == 0 && lstat(dir, &st) == 0;
}

/* is_dataset - true for a directory that is a Zarr store; false if it cannot be read. */
static bool is_dataset(const struct recover_walk *w, const char *path)
{
	const struct source_ops *of = NULL;

	return source_bidder(w->setup->formats, w->setup->n_formats, path, &of) < 0 || of;
}

/* recover_folder_put_one - print the result of a dataset. */
static void recover_folder_put_one(struct recover_walk *w, const char *path)
{
	if (w->setup->cfg->json)
		(void)fputs(w->found ? ",\n" : "\n", stdout); /* the final flush reports errors */
	(void)fflush(stdout);
	w->found++;
	w->failed += !w->one(w->setup, path);
}

/* without - report pending writes whose dataset was removed: they cannot be committed. */
static void without(struct recover_walk *w, const char *dir, const char *name)
{
	size_t n = strlen(name) - strlen(SUFFIX) - 1;
	auto_free char *base = strndup(name + 1, n);
	auto_free char *path = base ? path_join(dir, base) : NULL;
	auto_free char *state = path_join(dir, name);
	struct stat st;

	if (!path || !state) {
		recover_folder_missed(w, ENOMEM, dir);
		return;
	}
	if (n == HASHED_BYTES || lstat(path, &st) == 0 || !fs_rw_left(state))
		return;
	log_error("'%s': pending writes belong to a dataset that no longer exists: restore it, "
		  "or delete this directory to discard them",
		  state);
	w->missed = true;
}

static void recover_folder_look_in(struct recover_walk *w, const char *dir, unsigned depth);

static void recover_folder_look_at(struct recover_walk *w, const char *dir, const char *name,
				   unsigned depth)
{
	auto_free char *path = path_join(dir, name);
	struct stat st;

	if (!path) {
		recover_folder_missed(w, ENOMEM, dir);
		return;
	}
	if (mirror_hidden(name)) {
		without(w, dir, name);
		return;
	}
	if (lstat(path, &st) < 0) {
		/* ENOTCONN: the mount of a dead server has nothing to recover */
		if (errno != ENOENT && errno != ENOTCONN)
			recover_folder_missed(w, errno, path);
		return;
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return;
	if (rw_state_is_there(w->setup->cfg, path))
		recover_folder_put_one(w, path);
	else if (S_ISDIR(st.st_mode) && !is_dataset(w, path))
		recover_folder_look_in(w, path, depth + 1);
}

/* recover_folder_look_in - report what cannot be read, and recover the rest. */
static void recover_folder_look_in(struct recover_walk *w, const char *dir, unsigned depth)
{
	struct dirent **names;
	int n = -1;

	errno = ELOOP;
	if (depth < DEPTH_MAX)
		n = dir_names(dir, &names);
	if (n < 0) {
		recover_folder_missed(w, errno, dir);
		return;
	}
	for (int i = 0; i < n; i++) {
		recover_folder_look_at(w, dir, names[i]->d_name, depth);
		free(names[i]);
	}
	free(names);
}

int rw_recover_dir(const struct app *setup, const char *path, rw_recover_fn *one)
{
	struct recover_walk w = {.setup = setup, .one = one};
	auto_free char *shown = fs_shown(path);
	const char *name = shown ? shown : "";
	struct buf out = buf_of(1 << 16);
	bool good;

	if (setup->cfg->json) {
		buf_putc(&out, '{');
		str_put_member(&out, "source", name);
		buf_puts(&out, ", \"datasets\": [");
		if (fwrite(out.data, 1, out.len, stdout) != out.len)
			log_debug("standard output: could not be written");
		buf_clear(&out);
	}
	recover_folder_look_in(&w, path, 0);
	good = !w.failed && !w.missed;
	if (setup->cfg->json)
		buf_printf(&out, "], \"recovered\": %s, \"datasets_failed\": %" PRIu64 "}\n",
			   good ? "true" : "false", w.failed);
	else if (!w.found && good)
		buf_printf(&out, "'%s': nothing to recover: no dataset in it has pending "
				 "writes\n",
			   name);
	return print_text(&out) == 0 && good ? 0 : 1;
}
