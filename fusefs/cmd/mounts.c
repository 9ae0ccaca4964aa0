/* SPDX-License-Identifier: BSD-3-Clause */
/* mounts.c - the commands for named and existing mounts: mount, umount, list. */
#include "fusefs/cmd/commands.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "base/observe/log.h"
#include "base/core/str.h"
#include "base/observe/print.h"
#include "base/os/url.h"
#include "fusefs/daemon/umount_wait.h"
#include "fusefs/daemon/mountinfo.h"
#include "fusefs/daemon/mounter.h"

static const struct cfg_mount *find_named(const struct cfg *cfg, const char *name)
{
	for (size_t i = 0; i < cfg->config.n_mounts; i++)
		if (strcmp(cfg->config.mounts[i].name, name) == 0)
			return &cfg->config.mounts[i];
	return NULL;
}

/* on_target - our topmost mount on a target; NULL: none. */
static const struct mounted *on_target(const struct mounted *list, size_t n, const char *target)
{
	auto_free char *dir = mounted_resolve(target);
	const struct mounted *found = NULL;

	for (size_t i = 0; dir && i < n; i++)
		if (!list[i].hidden && strcmp(list[i].dir, dir) == 0)
			found = &list[i];
	return found;
}

/* another - true if the mount on a named mount's target certainly shows another source. */
static bool another(const struct mounted *m, const struct cfg_mount *named)
{
	return m && named && mounted_differs(m, named->source);
}

/* ---- mount ---- */

/* mount_one - run this program with the same flags and one name. Returns its exit status. */
static int mount_one(const struct cfg *cfg, const char *name)
{
	char **argv = calloc(cfg->passed.n + 5, sizeof(*argv));
	int status = 1, rc;
	size_t n = 0;
	pid_t pid;

	if (!argv)
		return 1;
	argv[n++] = (char *)(uintptr_t) "nczarrfs";
	for (size_t i = 0; i < cfg->passed.n; i++)
		argv[n++] = cfg->passed.v[i];
	argv[n++] = (char *)(uintptr_t) "mount";
	argv[n++] = (char *)(uintptr_t)name;
	rc = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ);
	if (rc)
		log_error("[mount %s]: %s", name,
			  rc == ENOENT ? "/proc is not mounted" : "could not be started");
	else
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	free(argv);
	return rc ? 1 : status;
}

int mounts_mount(const struct app *setup)
{
	const struct cfg *cfg = setup->cfg;
	struct err e = ERR_INIT;
	struct mounted *list = NULL;
	size_t n = 0;
	int bad = 0;

	if (mounted_list(&list, &n, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	for (size_t i = 0; i < cfg->more.n; i++)
		bad += mount_one(cfg, cfg->more.v[i]) != 0;
	for (size_t i = 0; cfg->all && i < cfg->config.n_mounts; i++) {
		const struct cfg_mount *m = &cfg->config.mounts[i];
		const struct mounted *there = on_target(list, n, m->target);

		if (!m->automatic)
			continue;
		if (there && mounted_ask(there->dir) != MOUNTED_DEAD) {
			bad += another(there, m);
			if (another(there, m))
				log_error("[mount %s]: '%s' is already mounted on '%s': run "
					  "nczarrfs umount '%s' first",
					  m->name, there->source, there->dir, there->dir);
			continue;
		}
		bad += mount_one(cfg, m->name) != 0;
	}
	mounted_free(list, n);
	return bad > 0;
}

/* ---- umount ---- */

/* leaving - unmounted mounts whose processes still commit. */
struct leaving {
	struct umount_wait *list;
	size_t n;
	int bad; /* number of mounts with data that is not in the dataset */
};

/* try_off - unmount; true on success, otherwise errno has the reason. ESTALE: our mount is not the
 * one on its mountpoint any more, and the one that is there is not touched. */
static bool try_off(const struct mounted *m)
{
	if (fs_mount_id(m->dir) != m->id) {
		errno = ESTALE;
		return false;
	}
	if (umount2(m->dir, 0) == 0)
		return true;
	if (errno != EPERM || geteuid() == 0)
		return false;
	if (mounter_ask_fusermount(m->dir, m->id))
		return true;
	errno = EPERM;
	return false;
}

static void say_why_not(const struct mounted *m, int error)
{
	struct err e = ERR_INIT;

	if (error == EPERM && geteuid() != 0) {
		log_error("'%s': could not be unmounted: it is in use (to see by which "
			  "processes: fuser -vm '%s'), or belongs to another user",
			  m->dir, m->dir);
	} else if (error == ESTALE) {
		log_error("'%s': not unmounted: it is not mounted any more, or another mount "
			  "covers it (see nczarrfs list)",
			  m->dir);
	} else if (error == EBUSY) {
		log_error("'%s': still in use; to see by which processes: fuser -vm "
			  "'%s'", m->dir, m->dir);
	} else {
		(void)err_sys(&e, error, "'%s'", m->dir);
		log_error("%s", e.msg);
	}
}

static void wait_for_all(struct leaving *l)
{
	for (size_t i = 0; i < l->n; i++)
		l->bad += !umount_wait_wait(&l->list[i]);
	l->n = 0;
}

/* take_off - unmount. A mount may be in use by the process of an earlier one, whose source lies in
 * it; then wait for that process and try again. */
static bool take_off(const struct mounted *m, struct leaving *l)
{
	bool off = try_off(m);

	if (!off && l->n > 0) {
		wait_for_all(l);
		off = try_off(m);
	}
	if (!off)
		say_why_not(m, errno);
	return off;
}

/* take_off_writable - as take_off_for_good, but the final commit is awaited after all other mounts
 * were unmounted. */
static bool take_off_writable(const struct mounted *m, struct leaving *l)
{
	struct err e = ERR_INIT;
	struct umount_wait en;
	bool dead = mounted_ask(m->dir) == MOUNTED_DEAD;
	bool known = !dead && umount_wait_ask(m, &en, &e) == 0;

	if (!take_off(m, l)) {
		if (known)
			umount_wait_free(&en);
		return false;
	}
	if (known)
		l->list[l->n++] = en;
	else if (dead)
		log_error(
			"'%s': unmounted, but its server had died: pending writes are committed "
			"by nczarrfs recover or by the next mount",
			m->dir);
	else
		log_error("'%s': unmounted, but it is not known whether all writes are in the "
			  "dataset: %s",
			  m->dir, e.msg);
	return known;
}

/* take_off_for_good - unmount, and wait until its processes have released the source, so that the
 * filesystem below can be unmounted next. Returns true if it is unmounted and all writes are known
 * to be in the dataset. */
static bool take_off_for_good(const struct mounted *m, struct leaving *l)
{
	struct err e = ERR_INIT;
	struct umount_wait en;
	bool known;

	if (m->writable)
		return take_off_writable(m, l);
	known = mounted_ask(m->dir) == MOUNTED_LIVE && umount_wait_ask(m, &en, &e) == 0;
	if (!take_off(m, l)) {
		if (known)
			umount_wait_free(&en);
		return false;
	}
	if (known)
		umount_wait_pass(&en);
	return true;
}

/* umount_one - what: the name of a section, or a mountpoint. list: the present mounts. Returns
 * true on success. */
static bool umount_one(const struct cfg *cfg, const struct mounted *list, size_t n,
		       const char *what, struct leaving *l)
{
	const struct cfg_mount *named = strchr(what, '/') ? NULL : find_named(cfg, what);
	auto_free char *dir = NULL;
	const struct mounted *m;

	if (!named && what[0] != '/') { /* mounted_resolve needs an absolute path */
		auto_free char *cwd = getcwd(NULL, 0);

		dir = cwd ? str_printf("%s/%s", cwd, what) : NULL;
	}
	m = on_target(list, n, named ? named->target : dir ? dir : what);
	if (another(m, named)) {
		log_error("'%s': not mounted: '%s' is mounted on '%s': run nczarrfs umount '%s' "
			  "to unmount that",
			  what, m->source, m->dir, m->dir);
		return false;
	}
	if (m)
		return take_off_for_good(m, l);
	if (named)
		log_error("'%s': not mounted on '%s'", what, named->target);
	else
		log_error("'%s': not an nczarrfs mountpoint, and there is no section [mount %s] "
			  "(see nczarrfs list)",
			  what, what);
	return false;
}

int mounts_umount(const struct app *setup)
{
	const struct cfg *cfg = setup->cfg;
	struct err e = ERR_INIT;
	struct mounted *list = NULL;
	struct leaving l = {0};
	size_t n = 0;
	int bad = 0;

	if (mounted_list(&list, &n, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	l.list = alloc_array(n + cfg->more.n, sizeof(*l.list));
	if (!l.list) {
		mounted_free(list, n);
		log_error("not enough memory");
		return 1;
	}
	for (size_t i = 0; i < cfg->more.n; i++) {
		struct mounted *now = NULL;
		size_t n_now = 0;
		const bool known = mounted_list(&now, &n_now, &e) == 0;

		if (!known)
			log_error("%s", e.msg);
		bad += !known || !umount_one(cfg, now, n_now, cfg->more.v[i], &l);
		mounted_free(now, n_now);
	}
	for (size_t i = n; cfg->all && i-- > 0;) /* later mounts lie on top of earlier ones */
		if (geteuid() == 0 || list[i].user == geteuid())
			bad += !take_off_for_good(&list[i], &l);
	wait_for_all(&l);
	free(l.list);
	mounted_free(list, n);
	return bad + l.bad > 0;
}

/* ---- list ---- */

static const char *const states[] = {
	[MOUNTED_LIVE] = "mounted",
	[MOUNTED_DEAD] = "dead",
	[MOUNTED_SILENT] = "does not answer",
	[MOUNTED_FOREIGN] = "another user's",
};

/* mounts_row - a row of the list. m: NULL: it is not mounted; named: NULL: it has no name. */
struct mounts_row {
	const struct cfg_mount *named;
	const struct mounted *m;
};

static const char *mounts_state_of(const struct mounts_row *r)
{
	enum mounted_state state;

	if (!r->m)
		return "not mounted";
	state = mounted_ask(r->m->dir);
	return state == MOUNTED_LIVE && another(r->m, r->named) ? "another source"
								: states[state];
}

static void put_json(const struct mounts_row *r, bool first, struct buf *out)
{
	buf_puts(out, first ? "\n  {" : ",\n  {");
	str_put_member(out, "name", r->named ? r->named->name : NULL);
	str_put_member(out, "source", r->m ? r->m->source : r->named->source);
	str_put_member(out, "target", r->m ? r->m->dir : r->named->target);
	str_put_member(out, "state", mounts_state_of(r));
	buf_printf(out, ", \"writable\": %s, ",
		   !r->m            ? "null"
		   : r->m->writable ? "true"
				    : "false");
	if (r->m)
		buf_printf(out, "\"user\": %u", (unsigned)r->m->user);
	else
		buf_puts(out, "\"user\": null");
	str_put_member(out, "where", r->named ? r->named->where : NULL);
	buf_putc(out, '}');
}

#define COLUMNS "%-12s %-16s %-4s  "

static void put_line(const struct mounts_row *r, struct buf *out)
{
	buf_printf(out, COLUMNS, r->named ? r->named->name : "-", mounts_state_of(r),
		   !r->m            ? "-"
		   : r->m->writable ? "rw"
				    : "ro");
	str_put_plain(out, r->m ? r->m->dir : r->named->target);
	buf_puts(out, "  ");
	str_put_plain(out, r->m ? r->m->source : r->named->source);
	buf_putc(out, '\n');
}

int mounts_list(const struct app *setup)
{
	const struct cfg *cfg = setup->cfg;
	struct err e = ERR_INIT;
	struct mounted *list = NULL;
	size_t n = 0, rows = 0;
	struct buf text = buf_of((size_t)1 << 26);

	if (mounted_list(&list, &n, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	if (cfg->json)
		buf_putc(&text, '[');
	for (size_t i = 0; i < cfg->config.n_mounts + n; i++) {
		struct mounts_row r = {0};

		if (i < cfg->config.n_mounts) {
			r.named = &cfg->config.mounts[i];
			r.m = on_target(list, n, r.named->target);
		} else {
			r.m = &list[i - cfg->config.n_mounts];
			for (size_t k = 0; k < cfg->config.n_mounts; k++)
				if (on_target(list, n, cfg->config.mounts[k].target) == r.m)
					r.named = &cfg->config.mounts[k];
			if (r.named ||
			    r.m->hidden) /* it is in the list, or cannot be reached */
				continue;
		}
		if (cfg->json) {
			put_json(&r, rows == 0, &text);
		} else {
			if (rows == 0)
				buf_printf(&text, COLUMNS "%s  %s\n", "NAME", "STATE", "MODE",
					   "MOUNTPOINT", "SOURCE");
			put_line(&r, &text);
		}
		rows++;
	}
	if (cfg->json)
		buf_puts(&text, rows ? "\n]\n" : "]\n");
	else if (rows == 0) /* standard output is for programs: no row, no output */
		(void)fputs("nczarrfs: note: nothing is mounted, and no configuration file names a "
			    "mount\n",
			    stderr);
	mounted_free(list, n);
	return print_text(&text);
}
