/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.c - `nczarrfs check` of a directory of datasets: checks each of them, in the order of their
 * paths, in a process of its own as a single one.
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
#include "base/observe/print.h"
#include "fusefs/app/dataset_list.h"
#include "fusefs/mirror/view.h"

/* walk_found - the datasets below a directory. */
struct walk_found {
	const struct app *setup;
	struct dataset_list list;
};

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
		return err_set(
			e, -EINVAL,
			"--resume: '%s' exists and is not a directory, which a check of several "
			"datasets needs: use another name, or remove it",
			state);
	return 0;
}

/* forget_state - remove the state files of a complete check. Other files stay, and so does their
 * directory. */
static void forget_state(const struct walk_found *f, const char *state)
{
	for (size_t i = 0; i < f->list.n; i++) {
		auto_free char *file = walk_state_of(state, f->list.paths[i]);

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
	auto_free char *state = resume ? walk_state_of(resume, f->list.paths[i]) : NULL;
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
	cfg.source = cfg.shown = f->list.paths[i];
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
		buf_printf(out,
			   "], \"complete\": %s, \"good\": %s, \"datasets_good\": %" PRIu64
			   ", \"datasets_damaged\": %" PRIu64 ", \"datasets_unfinished\": %" PRIu64
			   ", \"datasets_failed\": %" PRIu64 ", \"other_files\": %" PRIu64 "}\n",
			   done && !s->failed ? "true" : "false",
			   done && !s->failed && !not_good ? "true" : "false", s->good,
			   s->damaged, s->unfinished, s->failed, f->list.others);
		return;
	}
	str_put_plain(out, cfg->shown);
	buf_printf(out, ": %zu datasets, %" PRIu64 " other files: %" PRIu64 " good", f->list.n,
		   f->list.others, s->good);
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
	for (size_t i = 0; i < f->list.n && done; i++)
		done = check_each(f, i, &s);
	done = done && !f->list.missed;
	put_sums(f, &s, done, &text);
	done = print_part(&text) && done;
	if (cfg->check.resume && done && !s.failed)
		forget_state(f, cfg->check.resume);
	return !done || s.failed             ? CHECK_FAILED
	       : s.damaged || s.unfinished ? CHECK_DAMAGED
					   : CHECK_GOOD;
}

int check_dir(const struct app *setup)
{
	struct walk_found f = {.setup = setup};
	struct err e = ERR_INIT;
	int rc = make_state(setup->cfg->check.resume, &e), status = CHECK_FAILED;

	rc = rc ? rc : dataset_list_find(setup, setup->cfg->source, NULL, NULL, &f.list, &e);
	if (rc == 0 && f.list.n == 0 && !f.list.missed)
		rc = err_set(&e, -ENOENT, "'%s': no datasets found in this directory",
			     setup->cfg->shown);
	if (rc < 0)
		log_error("%s", e.msg);
	else
		status = check_found(&f);
	dataset_list_release(&f.list);
	return status;
}
