/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.c - `nczarrfs check` of a directory of datasets: checks each of them, in the order of their
 * paths, in a process of its own as a single one.
 *
 * As in a mirror, the formats decide which files are datasets. A file that has the name of a
 * dataset but is none, such as an empty file "a.nc", is checked as well, because its owner has to
 * know that it cannot be opened. Links are not followed.
 *
 * With --resume the state is a directory with a file for each dataset. The file stays when its
 * dataset is complete: a later check uses the report in it, and reads no chunk. */
#include "fusefs/cmd/check/check_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/hash.h"
#include "base/observe/log.h"
#include "base/core/str.h"
#include "fusefs/cmd/commands.h"
#include "fusefs/mirror/view.h"

#define DEPTH_MAX 100 /* nesting limit of directories */
#define PATHS_MAX ((size_t)10 << 20)

/* walk_found - the datasets below a directory. */
struct walk_found {
	const struct app *setup;
	char **paths; /* owned */
	size_t n, cap;
	uint64_t others; /* files that are no datasets */
	bool missed;     /* an entry could not be examined, which was reported */
};

static void walk_missed(struct walk_found *f, const struct err *e)
{
	log_error("%s", e->msg);
	f->missed = true;
}

static int take_path(struct walk_found *f, char *path, struct err *e)
{
	if (f->n == PATHS_MAX)
		return err_set(e, -ERANGE,
			       "'%s': more than %zu datasets: check its "
			       "subdirectories separately",
			       f->setup->cfg->shown, PATHS_MAX);
	if (grow_array(&f->paths, &f->cap, f->n + 1, sizeof(*f->paths)) < 0)
		return err_nomem(e);
	f->paths[f->n++] = path;
	return 0;
}

static int walk_look_in(struct walk_found *f, const char *dir, unsigned depth, struct err *e);

/* walk_look_at - examine an entry of a directory. 1: it is a dataset, and path is taken. */
static int walk_look_at(struct walk_found *f, char *path, const char *name, unsigned depth,
			struct err *e)
{
	const struct source_ops *of = NULL;
	struct err why = ERR_INIT;
	struct stat st;
	int rc;

	if (lstat(path, &st) < 0) {
		if (errno != ENOENT) {
			(void)err_sys(&why, errno, "'%s'", path);
			walk_missed(f, &why);
		}
		return 0;
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	rc = source_bidder(f->setup->formats, f->setup->n_formats, path, &of);
	if (rc < 0 && err_is_transient(rc))
		return err_sys(e, -rc, "'%s'", path);
	if (rc < 0 || of || name_says_dataset(name, S_ISDIR(st.st_mode))) {
		rc = take_path(f, path, e);
		return rc < 0 ? rc : 1;
	}
	if (S_ISDIR(st.st_mode))
		return walk_look_in(f, path, depth + 1, e);
	f->others++;
	return 0;
}

/* walk_look_in - report what cannot be read, and check the rest. */
static int walk_look_in(struct walk_found *f, const char *dir, unsigned depth, struct err *e)
{
	struct err why = ERR_INIT;
	struct dirent **names;
	int n = -1, rc = 0;

	errno = ELOOP;
	if (depth < DEPTH_MAX)
		n = dir_names(dir, &names);
	if (n < 0 && errno == ENOMEM)
		return err_nomem(e);
	if (n < 0) {
		(void)err_sys(&why, errno, "'%s'", dir);
		walk_missed(f, &why);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		char *path = NULL;

		if (rc >= 0 && !mirror_hidden(name)) {
			path = path_join(dir, name);
			rc = path ? walk_look_at(f, path, name, depth, e) : err_nomem(e);
			if (rc <= 0)
				free(path);
		}
		free(names[i]);
	}
	free(names);
	return rc < 0 ? rc : 0;
}

/* ---- state files ---- */

/* walk_state_of - path of a dataset's state file, new. Its name is a hash of the dataset's path; if
 * two paths collide, the contents belong to another source for one of them. */
static char *walk_state_of(const char *state, const char *path)
{
	char name[24];

	/* fits */
	(void)snprintf(name, sizeof(name), "%016" PRIx64, hash_text(HASH_SEED, path));
	return path_join(state, name);
}

static int make_state(const char *state, struct err *e)
{
	struct stat st;

	if (!state || mkdir(state, 0777) == 0)
		return 0;
	if (errno != EEXIST)
		return err_sys(e, errno, "--resume: '%s'", state);
	if (stat(state, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(e, -EINVAL,
			       "--resume: '%s' exists and is not a directory, which a check of "
			       "several "
			       "datasets needs: use another name, or remove it",
			       state);
	return 0;
}

/* forget_state - remove the state files of a complete check. Other files stay, and so does their
 * directory. */
static void forget_state(const struct walk_found *f, const char *state)
{
	for (size_t i = 0; i < f->n; i++) {
		auto_free char *file = walk_state_of(state, f->paths[i]);

		if (file)
			(void)unlink(file);
	}
	if (rmdir(state) < 0)
		log_debug("'%s' stays", state);
}

/* ---- all datasets ---- */

struct sums {
	uint64_t good, damaged, unfinished, failed;
	bool interrupted;
};

/* check_each - check one dataset. Returns true to continue. */
static bool check_each(const struct walk_found *f, size_t i, struct sums *s)
{
	struct cfg cfg = *f->setup->cfg;
	struct app setup = *f->setup;
	const char *resume = cfg.check.resume;
	auto_free char *state = resume ? walk_state_of(resume, f->paths[i]) : NULL;
	struct check_reported reported;
	auto_buf text = buf_of(1 << 16);
	int status;

	if (resume && !state) {
		log_error("not enough memory");
		return false;
	}
	if (cfg.json) {
		buf_puts(&text, i ? ",\n" : "\n");
		if (!print_part(&text))
			return false;
	}
	cfg.source = cfg.shown = f->paths[i];
	cfg.check.resume = state;
	setup.cfg = &cfg;
	status = check_one(&setup, true, &reported);
	s->good += status == CHECK_GOOD;
	s->interrupted = reported.interrupted;
	s->damaged += status == CHECK_DAMAGED && reported.damaged;
	s->unfinished += status == CHECK_DAMAGED && !reported.damaged;
	s->failed += status == CHECK_FAILED;
	if (cfg.json && !reported.printed) {
		buf_putc(&text, '{');
		str_put_member(&text, "source", cfg.shown);
		buf_puts(&text, ", \"complete\": false, \"good\": false}\n");
		(void)print_part(&text);
	}
	return !s->interrupted;
}

static void put_sums(const struct walk_found *f, const struct sums *s, bool done,
		     struct buf *out)
{
	const struct cfg *cfg = f->setup->cfg;
	const bool not_good = s->damaged || s->unfinished;

	if (cfg->json) {
		buf_printf(
			out,
			"], \"complete\": %s, \"good\": %s, \"datasets_good\": %" PRIu64
			", \"datasets_damaged\": %" PRIu64 ", \"datasets_unfinished\": %" PRIu64
			", \"datasets_failed\": %" PRIu64 ", \"other_files\": %" PRIu64 "}\n",
			done && !s->failed ? "true" : "false",
			done && !s->failed && !not_good ? "true" : "false", s->good, s->damaged,
			s->unfinished, s->failed, f->others);
		return;
	}
	str_put_plain(out, cfg->shown);
	buf_printf(out, ": %zu datasets, %" PRIu64 " other files: %" PRIu64 " good", f->n,
		   f->others, s->good);
	if (s->damaged)
		buf_printf(out, ", %" PRIu64 " damaged", s->damaged);
	if (s->unfinished)
		buf_printf(out, ", %" PRIu64 " unfinished", s->unfinished);
	if (s->failed)
		buf_printf(out, ", %" PRIu64 " could not be checked", s->failed);
	buf_puts(out, done ? "\n" : ", incomplete\n");
}

static int check_found(const struct walk_found *f)
{
	const struct cfg *cfg = f->setup->cfg;
	struct sums s = {0};
	auto_buf text = buf_of(1 << 16);
	bool done = true;

	if (cfg->json) {
		buf_putc(&text, '{');
		str_put_member(&text, "source", cfg->shown);
		buf_puts(&text, ", \"datasets\": [");
		done = print_part(&text);
	}
	for (size_t i = 0; i < f->n && done; i++)
		done = check_each(f, i, &s);
	done = done && !f->missed;
	put_sums(f, &s, done, &text);
	done = print_part(&text) && done;
	if (cfg->check.resume && done && !s.failed)
		forget_state(f, cfg->check.resume);
	return !done || s.failed           ? CHECK_FAILED
	       : s.damaged || s.unfinished ? CHECK_DAMAGED
					   : CHECK_GOOD;
}

int check_dir(const struct app *setup)
{
	struct walk_found f = {.setup = setup};
	struct err e = ERR_INIT;
	int rc = make_state(setup->cfg->check.resume, &e), status = CHECK_FAILED;

	if (rc == 0)
		rc = walk_look_in(&f, setup->cfg->source, 0, &e);
	if (rc == 0 && f.n == 0 && !f.missed)
		rc = err_set(&e, -ENOENT, "'%s': no datasets found in this directory",
			     setup->cfg->shown);
	if (rc < 0)
		log_error("%s", e.msg);
	else
		status = check_found(&f);
	for (size_t i = 0; i < f.n; i++)
		free(f.paths[i]);
	free(f.paths);
	return status;
}
