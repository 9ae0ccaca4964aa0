/* SPDX-License-Identifier: BSD-3-Clause */
/* scene_open.c - opens what a scene is about, the way the program does: fusefs/main.c is a part of
 * this file, so that its tables are those that are tested. */
#include <sys/syscall.h>

#include "fusefs/cmd/info/info_int.h"

int program_main(int argc, char **argv);
#define main program_main
#include "fusefs/main.c"
#undef main

#include "tests/faults/scene.h"

static const struct cfg_files no_files;

const char *in_dir, *work_dir, *web_url, *s3_url;

static struct {
	struct cfg cfg;
	bool has_cfg, has_rules;
	struct fs_rules rules;
	struct app setup;
	struct view *view;
} now;

const char *scene_where(const struct scene *s)
{
	static char where[1024];
	const char *name = strchr(s->input, ':');

	if (name && strncmp(s->input, "url", 3) == 0)
		(void)snprintf(where, sizeof(where), "%s/%s", web_url, name + 1);
	else if (name)
		(void)snprintf(where, sizeof(where), "s3://%s", name + 1);
	else
		(void)snprintf(where, sizeof(where), "%s/%s", in_dir, s->input);
	return where;
}

/* words - of a text between spaces, into copies that last until the next call. */
static int words(const char *text, const char **ret, int n, int cap, char *room, size_t len)
{
	size_t used = 0;

	for (const char *p = text; p && *p;) {
		size_t k = strcspn(p, " ");

		if (n + 2 > cap || used + k + 1 > len)
			return n;
		memcpy(room + used, p, k);
		room[used + k] = '\0';
		ret[n++] = "-o";
		ret[n++] = room + used;
		used += k + 1;
		p += k + (p[k] == ' ');
	}
	return n;
}

static void release(void)
{
	if (now.has_rules)
		fs_rules_release(&now.rules);
	if (now.has_cfg)
		cfg_release(&now.cfg);
	now.has_rules = now.has_cfg = false;
}

static int configure(const struct scene *s, const char *path, const char *more, struct err *e)
{
	static char room[2][2048];
	const char *argv[64] = {"nczarrfs"};
	int argc = 1, rc;

	argc = words(s->options, argv, argc, 60, room[0], sizeof(room[0]));
	argc = words(more, argv, argc, 60, room[1], sizeof(room[1]));
	argv[argc++] = path ? path : scene_where(s);
	argv[argc++] = "/mnt";
	argv[argc] = NULL;
	rc = cfg_parse(argc, (char *const *)(uintptr_t)argv, &no_files, &now.cfg, e);
	if (rc < 0)
		return rc;
	now.has_cfg = true;
	rc = fs_rules_init(&now.cfg, &now.rules, e);
	if (rc < 0)
		return rc;
	now.has_rules = true;
	now.setup = (struct app){
		.cfg = &now.cfg,
		.rules = &now.rules,
		.formats = formats,
		.n_formats = ARRAY_LEN(formats),
		.zarr = &zarr_source_ops,
		.hdf5 = &hdf5_source_ops,
		.view_open = view_open,
	};
	fs_remote_begin(&now.setup);
	fs_rw_prepare(&now.setup);
	return name_shown(&now.cfg, now.setup.file_name, e);
}

int scene_open(const struct scene *s, const char *path, const char *more, struct err *e)
{
	int rc = configure(s, path, more, e);

	now.view = NULL;
	if (rc == 0 && !now.cfg.write.rw)
		rc = fs_rw_repair(&now.setup, now.cfg.source, true, e);
	if (rc == 0)
		rc = fs_open(&now.setup, &now.view, e);
	if (rc < 0) {
		fs_remote_end();
		release();
	}
	return rc;
}

/* scene_close - what end of a mount does; a writer's finish may fail, and is tried again. */
int scene_close(struct err *e)
{
	int rc = 0;

	if (now.view && now.view->write && now.view->write->finish)
		rc = now.view->write->finish(now.view, true, e);
	view_close(now.view);
	now.view = NULL;
	fs_remote_end();
	release();
	return rc;
}

struct view *scene_view(void)
{
	return now.view;
}

const struct app *scene_setup(void)
{
	return &now.setup;
}

/* ---- parts of the program that are no mount ---- */

int config_begin(const struct scene *s)
{
	struct err e = ERR_INIT;
	int rc = configure(s, NULL, NULL, &e);
	uint64_t h = MIX_START;

	if (rc == 0) {
		h = mix(h, now.cfg.source, strlen(now.cfg.source));
		h = mix(h, &now.cfg.limits.cache_size, sizeof(now.cfg.limits.cache_size));
		h = mix(h, &now.cfg.rules.filters.n, sizeof(now.cfg.rules.filters.n));
		h = mix(h, &now.cfg.rules.quantize.n, sizeof(now.cfg.rules.quantize.n));
		h = mix(h, &now.cfg.fuse_opts.n, sizeof(now.cfg.fuse_opts.n));
		for (size_t i = 0; i < now.cfg.fuse_opts.n; i++)
			h = mix(h, now.cfg.fuse_opts.v[i], strlen(now.cfg.fuse_opts.v[i]));
		h = mix(h, now.setup.file_name, strlen(now.setup.file_name));
	}
	answer(rc, h, &e, "configuration");
	release();
	return rc;
}

int filters_begin(const struct scene *s)
{
	struct err e = ERR_INIT;
	int rc = configure(s, NULL, NULL, &e);
	struct buf out;

	if (rc == 0) {
		buf_init(&out, (size_t)1 << 26);
		fs_filters(&now.cfg, &out);
		answer(buf_ok(&out) ? 0 : -ENOMEM,
		       buf_ok(&out) ? mix(MIX_START, out.data, out.len) : 0, NULL, "filters");
		buf_release(&out);
	} else {
		answer(rc, 0, &e, "filters");
	}
	release();
	return rc;
}

int info_begin(const struct scene *s)
{
	struct err e = ERR_INIT;
	struct buf out;
	int rc = scene_open(s, NULL, NULL, &e);

	if (rc < 0) {
		answer(rc, 0, &e, "info");
		return rc;
	}
	buf_init(&out, (size_t)1 << 26);
	rc = info_report(&out, &now.setup, now.view, &e);
	if (rc == 0 && !buf_ok(&out))
		rc = -ENOMEM;
	answer(rc, rc == 0 ? mix(MIX_START, out.data, out.len) : 0, &e, "info");
	buf_release(&out);
	(void)scene_close(&e);
	return rc;
}

/* refs_begin - a document of references, into a memory file of the test's. */
int refs_begin(const struct scene *s)
{
	static uint8_t text[1 << 20];
	static int fd = -1;
	const struct refs_options opts = {
		.address = "/a.nc", .inlined = now.cfg.refs.inlined, .max_inline = 64 << 20};
	struct refs_set *set = NULL;
	struct err e = ERR_INIT;
	ssize_t n;
	int rc = scene_open(s, NULL, NULL, &e);

	if (rc < 0) {
		answer(rc, 0, &e, "references");
		return rc;
	}
	if (fd < 0)
		fd = (int)syscall(SYS_memfd_create, "refs", 0);
	if (syscall(SYS_ftruncate, fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		wrong("the test's own file");
	rc = refs_set_json(fd, &set, &e);
	if (rc == 0)
		rc = refs_set_add(set, 0, "", now.view->source, now.view, &opts, &e);
	if (rc == 0)
		rc = refs_set_end(set, &e);
	refs_set_free(set);
	n = syscall(SYS_pread64, fd, text, sizeof(text), 0);
	answer(rc, rc == 0 && n > 0 ? mix(MIX_START, text, (size_t)n) : 0, &e, "references");
	(void)scene_close(&e);
	return rc;
}
