/* SPDX-License-Identifier: BSD-3-Clause */
/* scene_write.c - writers: the steps of a text file, each of which is tried again without a fault
 * when it fails, so that in the end everything is in the dataset.
 *
 *	put KEY FILE       as cp does; FILE below the folder of the steps
 *	move KEY FILE      to another name, which is renamed
 *	patch KEY FILE     FILE: offset, length (8 bytes each, little-endian), bytes, and again
 *	mkdir KEY, unlink KEY, rmdir KEY, sync KEY */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fusefs/write/writable.h"
#include "tests/faults/inject.h"
#include "tests/faults/scene.h"

#define STEPS 64

struct step {
	char op[8], key[200];
	uint8_t *data;
	size_t len;
};

static struct {
	const struct scene *scene;
	struct step steps[STEPS];
	int n;
	char path[1024]; /* of what is written */
} t;

/* ---- files of the test's own: before and after a round ---- */

static uint8_t *load(const char *path, size_t *ret)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	uint8_t *p;

	if (!f || fstat(fileno(f), &st) < 0) {
		perror(path);
		exit(2);
	}
	p = malloc((size_t)st.st_size + 1);
	if (!p || fread(p, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
		exit(2);
	p[st.st_size] = '\0';
	(void)fclose(f);
	*ret = (size_t)st.st_size;
	return p;
}

static void copy_file(const char *from, const char *to)
{
	size_t n;
	uint8_t *p = load(from, &n);
	FILE *f = fopen(to, "wb");

	if (!f || fwrite(p, 1, n, f) != n || fclose(f) != 0) {
		perror(to);
		exit(2);
	}
	free(p);
}

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

void copy_tree(const char *from, const char *to)
{
	struct stat st;
	DIR *d;

	if (stat(from, &st) < 0) {
		perror(from);
		exit(2);
	}
	if (!S_ISDIR(st.st_mode)) {
		copy_file(from, to);
		return;
	}
	d = mkdir(to, 0755) < 0 && errno != EEXIST ? NULL : opendir(from);
	if (!d) {
		perror(to);
		exit(2);
	}
	for (struct dirent *x; (x = readdir(d));) {
		char a[1200], b[1200];

		if (is_dot(x->d_name))
			continue;
		(void)snprintf(a, sizeof(a), "%s/%s", from, x->d_name);
		(void)snprintf(b, sizeof(b), "%s/%s", to, x->d_name);
		copy_tree(a, b);
	}
	(void)closedir(d);
}

void remove_tree(const char *path)
{
	DIR *d;

	if (unlink(path) == 0 || errno == ENOENT)
		return;
	d = opendir(path);
	for (struct dirent *x; d && (x = readdir(d));) {
		char below[1200];

		(void)snprintf(below, sizeof(below), "%s/%s", path, x->d_name);
		if (!is_dot(x->d_name))
			remove_tree(below);
	}
	if (d)
		(void)closedir(d);
	(void)rmdir(path);
}

/* "tree.steps" says what is done to it; work_dir/NAME is what it is done to. */
static void read_steps(const struct scene *s)
{
	char path[1024], file[200], *line, *rest;
	uint8_t *text;
	size_t n;

	if (t.scene == s)
		return;
	t.scene = s;
	t.n = 0;
	(void)snprintf(path, sizeof(path), "%s/%s.steps/steps", in_dir, s->input);
	text = load(path, &n);
	for (line = strtok_r((char *)text, "\n", &rest); line && t.n < STEPS;
	     line = strtok_r(NULL, "\n", &rest)) {
		struct step *x = &t.steps[t.n++];

		memset(x, 0, sizeof(*x));
		if (sscanf(line, "%7s %199s %199s", x->op, x->key, file) == 3) {
			(void)snprintf(path, sizeof(path), "%s/%s.steps/%s", in_dir, s->input,
				       file);
			x->data = load(path, &x->len);
		}
	}
	free(text);
}

void write_prepare(const struct scene *s)
{
	char from[1024];
	struct stat st;

	read_steps(s);
	remove_tree(work_dir);
	if (mkdir(work_dir, 0755) < 0)
		exit(2);
	(void)snprintf(t.path, sizeof(t.path), "%s/%s", work_dir, s->input);
	(void)snprintf(from, sizeof(from), "%s/%s", in_dir, s->input);
	if (stat(from, &st) == 0)
		copy_tree(from, t.path);
}

/* ---- a step ---- */

/* parent_of - the directory that a key is in, and its last name. */
static int parent_of(struct view *v, const char *key, uint64_t *ret, const char **ret_name,
		     struct err *e)
{
	struct view_attr a;
	uint64_t dir = VIEW_ROOT;

	for (;;) {
		const char *end = strchr(key, '/');
		int rc;

		if (!end) {
			*ret = dir;
			*ret_name = key;
			return 0;
		}
		rc = v->ops->lookup(v, dir, key, (size_t)(end - key), &a, e);
		if (rc < 0)
			return rc;
		if (a.unknown)
			return err_set(e, -EIO, "unsure");
		dir = a.id;
		key = end + 1;
	}
}

static int write_all(struct view *v, uint64_t id, uint64_t fh, const struct step *x,
		     struct err *e)
{
	int rc = 0;

	for (size_t at = 0; rc == 0 && at < x->len; at += 4096)
		rc = v->write->write(v, id, fh, at, x->data + at,
				     x->len - at < 4096 ? x->len - at : 4096, e);
	return rc;
}

static uint64_t le64(const uint8_t *p)
{
	uint64_t v = 0;

	for (int i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

static int patch_all(struct view *v, uint64_t id, uint64_t fh, const struct step *x,
		     struct err *e)
{
	int rc = 0;

	for (size_t at = 0; rc == 0 && at + 16 <= x->len; at += 16 + le64(x->data + at + 8))
		rc = v->write->write(v, id, fh, le64(x->data + at), x->data + at + 16,
				     le64(x->data + at + 8), e);
	return rc;
}

/* finish_file - what close(2) does. */
static int finish_file(struct view *v, uint64_t id, uint64_t fh, int rc, struct err *e)
{
	if (rc == 0 && v->write->flush)
		rc = v->write->flush(v, id, fh, e);
	v->write->release(v, id, fh);
	return rc;
}

static int put(struct view *v, const struct step *x, uint64_t dir, const char *name,
	       struct err *e)
{
	struct view_handle h = {0};
	struct view_attr a;
	int rc = v->write->create(v, dir, name, O_WRONLY | O_TRUNC, 0644, &a, &h,
				  e);

	if (rc == -EEXIST) { /* the kernel looks it up first */
		rc = v->ops->lookup(v, dir, name, strlen(name), &a, e);
		if (rc == 0)
			rc = v->write->open(v, a.id, O_WRONLY | O_TRUNC, &h, e);
	}
	if (rc < 0)
		return rc;
	return finish_file(v, a.id, h.fh, write_all(v, a.id, h.fh, x, e), e);
}

static int patch(struct view *v, const struct step *x, uint64_t dir, const char *name,
		 struct err *e)
{
	struct view_handle h = {0};
	struct view_attr a;
	int rc = v->ops->lookup(v, dir, name, strlen(name), &a, e);

	if (rc == 0)
		rc = v->write->open(v, a.id, O_RDWR, &h, e);
	if (rc < 0)
		return rc;
	return finish_file(v, a.id, h.fh, patch_all(v, a.id, h.fh, x, e), e);
}

static int move(struct view *v, const struct step *x, uint64_t dir, const char *name,
		struct err *e)
{
	char other[300];
	int rc;

	(void)snprintf(other, sizeof(other), "%s.partial", name);
	rc = put(v, x, dir, other, e);
	if (rc < 0)
		return rc;
	return v->write->rename(v, dir, other, dir, name, 0, e);
}

static int step(struct view *v, const struct step *x, struct err *e)
{
	const char *name = NULL;
	struct view_attr a;
	uint64_t dir = 0;
	int rc;

	if (strcmp(x->op, "sync") == 0)
		return v->write->fsyncdir ? v->write->fsyncdir(v, VIEW_ROOT, e) : 0;
	rc = parent_of(v, x->key, &dir, &name, e);
	if (rc < 0)
		return rc;
	if (strcmp(x->op, "put") == 0)
		return put(v, x, dir, name, e);
	if (strcmp(x->op, "move") == 0)
		return move(v, x, dir, name, e);
	if (strcmp(x->op, "patch") == 0)
		return patch(v, x, dir, name, e);
	if (strcmp(x->op, "mkdir") == 0)
		return v->write->mkdir(v, dir, name, 0755, &a, e);
	if (strcmp(x->op, "unlink") == 0)
		return v->write->unlink(v, dir, name, e);
	if (strcmp(x->op, "rmdir") == 0)
		return v->write->rmdir(v, dir, name, e);
	return -EINVAL;
}

/* ---- a scene ---- */

int write_begin(const struct scene *s)
{
	struct err e = ERR_INIT;
	const struct scene plain = {.name = s->name, .input = s->input};
	int rc = scene_open(s, t.path, "rw", &e);

	if (rc == -EEXIST) /* an attempt before made it, as the message says */
		rc = scene_open(&plain, t.path, "rw", &e);
	answer(rc, 0, &e, "open to write");
	return rc;
}

static bool done_before(const struct step *x, int rc)
{
	return (rc == -EEXIST && strcmp(x->op, "mkdir") == 0) ||
	       (rc == -ENOENT && (strcmp(x->op, "unlink") == 0 || strcmp(x->op, "rmdir") == 0));
}

void write_use(const struct scene *s)
{
	struct view *v = scene_view();

	(void)s;
	for (int i = 0; i < t.n; i++) {
		const struct step *x = &t.steps[i];
		struct err e = ERR_INIT;
		int rc = step(v, x, &e);

		answer(rc, 0, &e, "step %d, %s %s", i, x->op, x->key);
		if (rc == 0 || !no_faults())
			continue;
		e = (struct err)ERR_INIT;
		rc = step(v, x, &e);
		/* a commit that failed behind its manifest: the next opening ends it */
		if (rc < 0 && strstr(e.msg, "recover it first"))
			break;
		if (rc < 0 && !done_before(x, rc))
			wrong("%s %s, once more: %s", x->op, x->key, e.msg);
	}
}

void write_end(const struct scene *s)
{
	struct err e = ERR_INIT;
	int rc = scene_close(&e);

	(void)s;
	answer(rc, 0, &e, "the end of writing");
}

void write_after(const struct scene *s)
{
	const struct scene plain = {.name = s->name, .input = s->input};
	struct err e = ERR_INIT;
	int rc = scene_open(&plain, t.path, NULL, &e);
	uint64_t names = 0;
	DIR *d;

	answer(rc, 0, &e, "open what was written");
	if (rc < 0)
		return;
	walk_view(scene_view(), "after");
	(void)scene_close(&e);
	d = opendir(work_dir);
	for (struct dirent *x; d && (x = readdir(d));)
		names += mix(MIX_START, x->d_name, strlen(x->d_name));
	if (d)
		(void)closedir(d);
	answer(0, names, NULL, "what is beside it");
}

/* ---- recovering ---- */

/* recover_prepare - a mount that wrote and died. */
void recover_prepare(const struct scene *s)
{
	struct err e = ERR_INIT;
	int status;
	pid_t pid;

	write_prepare(s);
	pid = fork();
	if (pid == 0) {
		struct view *v;

		if (scene_open(s, t.path, "rw commit_delay=3600000", &e) < 0)
			_exit(1);
		v = scene_view();
		for (int i = 0; i < t.n; i++)
			if (strcmp(t.steps[i].op, "sync") != 0 && step(v, &t.steps[i], &e) < 0)
				_exit(1);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		wrong("the mount that is to die did not get there: %s", e.msg);
}

int recover_begin(const struct scene *s)
{
	const struct scene plain = {.name = s->name, .input = s->input};
	struct err e = ERR_INIT;
	int rc = scene_open(&plain, t.path, NULL, &e);

	if (rc == 0)
		rc = scene_close(&e);
	answer(rc, 0, &e, "recover");
	return rc;
}
