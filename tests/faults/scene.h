/* SPDX-License-Identifier: BSD-3-Clause */
/* scene.h - what the fault loops run: things that this program does, without a mount, each of which
 * gives answers. An answer under a fault is what it is without one, or an error that says so. */
#ifndef FAULTS_SCENE_H
#define FAULTS_SCENE_H

#include "fusefs/app/fusefs.h"

/* scene - one thing that is done. begin, use and end have faults in them; all may be NULL. */
struct scene {
	const char *name;
	const char *input;        /* below the folder of inputs; "url:x": x behind the web server;
	                           * "s3:x": the bucket x */
	const char *options;      /* of -o, between spaces */
	bool writes;              /* use is not called again after a fault: it tries again itself */
	void (*prepare)(const struct scene *s); /* before each round, without faults */
	int (*begin)(const struct scene *s);
	void (*use)(const struct scene *s);
	void (*end)(const struct scene *s);
	void (*after)(const struct scene *s);   /* without faults: what has come of it */
	int (*script)(const struct scene *s, int step); /* writers: 0, 1, ... until -ENOENT */
	unsigned skip;            /* inject_class bits that it has nothing for */
};

extern const struct scene scenes[];
extern const size_t n_scenes;

/* The folder of inputs, one for what is written, and the servers' addresses; NULL: none. */
extern const char *in_dir, *work_dir, *web_url, *s3_url;

/* answer - what was got for a question: rc, and with 0 a hash of it. */
void answer(int rc, uint64_t hash, const struct err *e, const char *fmt, ...) NZ_PRINTF(4, 5);
/* answer_of - what it is without a fault: false when it never was asked then. */
bool answer_of(const char *question, int *ret_rc);
/* wrong - something that must not be. */
void wrong(const char *fmt, ...) NZ_PRINTF(1, 2);
/* no_faults - from here on nothing fails in this round. Returns whether something did. */
bool no_faults(void);
/* faults_now - whether answers may be errors. */
bool faults_now(void);

uint64_t mix(uint64_t h, const void *p, size_t n);
#define MIX_START 1469598103934665603u

/* ---- scene_open.c: what the program opens ---- */

/* scene_open - cfg, setup, source and view of a scene, as the program has them. more: options
 * besides. path NULL: its input. */
int scene_open(const struct scene *s, const char *path, const char *more, struct err *e);
int scene_close(struct err *e);
struct view *scene_view(void);
const struct app *scene_setup(void);
/* scene_where - the path or address of a scene's input; static. */
const char *scene_where(const struct scene *s);

/* ---- scene_walk.c ---- */

/* walk_view - every directory, name, attribute, and byte of a view; tag: of the answers. */
void walk_view(struct view *v, const char *tag);

/* ---- scene_write.c ---- */

int write_begin(const struct scene *s);
void write_use(const struct scene *s);
void write_end(const struct scene *s);
void write_after(const struct scene *s);
void write_prepare(const struct scene *s);
int tree_script(const struct scene *s, int step);
int keys_script(const struct scene *s, int step);
int file_script(const struct scene *s, int step);
void recover_prepare(const struct scene *s);
int recover_begin(const struct scene *s);

int config_begin(const struct scene *s);
int refs_begin(const struct scene *s);
int info_begin(const struct scene *s);
int filters_begin(const struct scene *s);
int create_begin(const struct scene *s);

void copy_tree(const char *from, const char *to);
void remove_tree(const char *path);

#endif
