/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_plugin.c - what a process with a plugin in it may answer, which is anything: the server's
 * side (codecs/plugin/plugin_client.c, codecs/plugin/plugin_table.c, codecs/plugin/plugin.c)
 * without processes. What base/process/child.h and codecs/plugin/plugin_scan.c have is here, and
 * says what the input says.
 *
 * Properties: nothing crashes; no result is longer than was asked for; every failure has a message;
 * a table of filters is made of any description that is taken.
 *
 * Input: the answers in turn. Each is a byte that says how it goes, then its result or error, and
 * what is written into the shared memory.
 *
 *   make fuzz TIME=60 FUZZ=plugin */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/core/cursor.h"
#include "codecs/plugin/plugin.h"
#include "codecs/plugin/plugin_table.h"

#define ID 4242u
#define LIBRARY "/nowhere/libfuzz.so"
#define ROOM 300

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* ---- the other side ---- */

static struct slice script; /* what is left of the input */
static bool scripted;       /* answers come from it; else the first description */

/* peer - a child that is none. Its socket is no descriptor, which poll(2) passes over. */
struct peer {
	struct plugin_request q;
	uint64_t pending; /* bytes of text that follow the answer */
	int fd;           /* of the region; 0: there is no such child */
};

static struct peer peers[16];

static struct peer *of(int sock)
{
	require(sock <= -2 && sock > -2 - (int)ARRAY_LEN(peers));
	return &peers[-2 - sock];
}

int child_start(const struct child_kind *kind, void *own, const void *data, size_t size,
		const int *fds, struct child_proc *ret, struct err *e)
{
	(void)kind;
	(void)own;
	(void)data;
	(void)size;
	(void)e;
	for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
		if (peers[i].fd)
			continue;
		peers[i] = (struct peer){.fd = dup(fds[0])};
		require(peers[i].fd > 0);
		*ret = (struct child_proc){
			.pid = 1, .sock = -2 - (int)i, .life = -1, .report = -1};
		return 0;
	}
	abort();
}

int child_end(struct child_proc *c)
{
	if (!c->pid)
		return 0;
	(void)close(of(c->sock)->fd); /* of memory */
	*of(c->sock) = (struct peer){.fd = 0};
	*c = (struct child_proc){.sock = -1, .life = -1, .report = -1};
	return (int)rd_u8(&script) % 32;
}

void child_renew(struct child_proc *c, uint64_t cpu_ms)
{
	(void)c;
	(void)cpu_ms;
}

const char *child_why(int sig, char room[CHILD_WHY_MAX])
{
	(void)snprintf(room, CHILD_WHY_MAX, "died (signal %d)", sig);
	return room;
}

bool child_send(int sock, const void *data, size_t n, int flags)
{
	struct peer *p = of(sock);

	(void)flags;
	require(n == sizeof(p->q));
	memcpy(&p->q, data, n);
	p->pending = 0;
	return !scripted || rd_u8(&script) != 1;
}

/* scribble - bytes of the input, again and again, over n bytes of the region at `at`. */
static void scribble(const struct peer *to, uint64_t at, uint64_t n, const uint8_t *p,
		     size_t len)
{
	struct stat st;
	uint8_t *m;

	require(fstat(to->fd, &st) == 0);
	if (len == 0 || at > (uint64_t)st.st_size || n > (uint64_t)st.st_size - at)
		return;
	m = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, to->fd, 0);
	require(m != MAP_FAILED);
	for (uint64_t i = 0; i < n; i++)
		m[at + i] = p[i % len];
	(void)munmap(m, (size_t)st.st_size);
}

/* describe - a library with a filter and a codec that can do everything. */
static struct child_answer describe(const struct peer *to)
{
	static const struct plugin_desc desc = {.n = 2,
						.v = {{PLUGIN_FILTER, ID, PLUGIN_CANS, "fuzz"},
						      {PLUGIN_CODEC, ID, PLUGIN_CANS, "fuzz"}}};

	scribble(to, to->q.out, sizeof(desc), (const uint8_t *)&desc, sizeof(desc));
	return (struct child_answer){0, sizeof(desc)};
}

static struct child_answer answer(struct peer *to)
{
	struct child_answer a = {.rc = -(int64_t)rd_u8(&script)};
	uint8_t kind = rd_u8(&script);
	size_t n = rd_u8(&script);
	const uint8_t *p = rd_bytes(&script, n);

	if (kind & 1)
		a.rc = kind & 2 ? 0 : (int64_t)rd_le64(&script);
	switch (kind >> 2 & 3) {
	case 0:
		a.len = n;
		break;
	case 1:
		a.len = to->q.cap;
		break;
	case 2:
		a.len = sizeof(struct plugin_desc);
		break;
	default:
		a.len = rd_le64(&script);
	}
	if (p)
		scribble(to, kind & 16 ? rd_le16(&script) : to->q.out,
			 kind & 32 ? n : to->q.cap, p, n);
	to->pending = a.rc ? a.len : 0;
	return a;
}

enum child_taken child_take(int sock, void *out, size_t n, int64_t end)
{
	struct peer *p = of(sock);
	struct child_answer a;
	uint8_t how;

	(void)end;
	if (n == 0 || p->pending) {
		require(n == p->pending);
		p->pending = 0;
		memset(out, 'x', n);
		if (rd_u8(&script) == 7)
			memset(out, 0xff, n);
		return CHILD_TAKEN;
	}
	require(n == sizeof(a));
	how = scripted ? rd_u8(&script) : 0;
	if (how == 1 || how == 2 || (scripted && !slice_ok(&script)))
		return how == 2 ? CHILD_LATE : CHILD_GONE;
	a = scripted ? answer(p) : describe(p);
	memcpy(out, &a, n);
	return CHILD_TAKEN;
}

int child_died_of(int status)
{
	return status & 15;
}

void child_say(int sock, int rc, const void *data, size_t n)
{
	(void)sock;
	(void)rc;
	(void)data;
	(void)n;
	abort(); /* that is the child's */
}

static struct plugin_libs libraries(size_t n)
{
	struct plugin_libs l = {.v = alloc_array(n, sizeof(*l.v)), .n = n, .cap = n};

	require(l.v != NULL);
	for (size_t i = 0; i < n; i++) {
		l.v[i].path = strdup(LIBRARY);
		require(l.v[i].path != NULL);
	}
	return l;
}

int plugin_scan(const char *dirs, const char *from, const char *last, struct plugin_libs *ret)
{
	(void)dirs;
	(void)from;
	(void)last;
	*ret = libraries(1);
	return 0;
}

int plugin_dir_next(const char **dirs, const char *from, char **ret)
{
	(void)dirs;
	(void)from;
	*ret = NULL;
	return 0;
}

void plugin_libs_release(struct plugin_libs *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
		free(l->v[i].why);
	}
	free(l->v);
	*l = (struct plugin_libs){0};
}

const char *plugin_distrust(const char *path)
{
	(void)path;
	return NULL;
}

/* ---- this side ---- */

static void tables(void)
{
	struct plugin_libs libs = libraries(2);
	struct plugin_desc *descs = alloc_array(libs.n, sizeof(*descs));
	struct plugin_table *t = NULL;
	struct err e = ERR_INIT;
	int rc;

	require(descs != NULL);
	rc = plugin_describe(&libs, descs, &e);
	if (rc == 0)
		rc = plugin_table_make(&libs, descs, &t, &e);
	require(rc == 0 || e.msg[0]);
	plugin_libs_release(&libs);
	free(descs);
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		require(t->v[i].ops.name[0] && t->v[i].ops.h5_id <= PLUGIN_ID_MAX);
	require(t->n_shown <= t->n && buf_ok(&t->report));
	plugin_libs_release(&t->libs);
	buf_release(&t->report);
	free(t->v);
	free(t);
}

static void failed(int rc, const struct err *e)
{
	require(rc == 0 || (rc < 0 && e->code == rc && e->msg[0]));
}

static int member(void *arg NZ_UNUSED, const char *name NZ_UNUSED)
{
	return -ENOENT;
}

static int no_integer(void *arg, const char *name, int64_t *ret NZ_UNUSED)
{
	return member(arg, name);
}

static int no_real(void *arg, const char *name, double *ret NZ_UNUSED)
{
	return member(arg, name);
}

static int no_text(void *arg, const char *name, const char **ret NZ_UNUSED)
{
	return member(arg, name);
}

static void parameters(const struct codec_ops *ops, const struct codec_spec *spec)
{
	static const uint64_t chunk[] = {3, 5};
	const struct codec_array array = {
		.class = CODEC_INT, .elem_size = 4, .rank = 2, .chunk = chunk};
	const struct codec_conf conf = {.version = 2,
					.json = "{\"id\": \"fuzz\"}",
					.elem_size = 4,
					.integer = no_integer,
					.real = no_real,
					.text = no_text};
	uint32_t params[CODEC_PARAMS_MAX] = {0}, n = 0;
	struct err e = ERR_INIT;
	struct buf json;
	int rc = ops->prepare(spec, &array, params, &n, &e);

	failed(rc, &e);
	require(rc < 0 || n <= CODEC_PARAMS_MAX);
	e = (struct err)ERR_INIT;
	rc = ops->from_zarr(&conf, params, &n, &e);
	failed(rc, &e);
	require(rc < 0 || n <= CODEC_PARAMS_MAX);
	buf_init(&json, 1 << 20);
	ops->zarr2_params(spec, 4, &json);
	buf_release(&json);
}

static void chunks(const struct codec_ops *ops, const struct codec_spec *spec)
{
	const uint8_t in[ROOM] = {1, 2, 3};
	uint8_t *out = malloc(ROOM);
	struct err e = ERR_INIT;
	size_t len = 0;
	struct buf b;
	const struct codec_call c = {.spec = spec,
				     .elem_size = 4,
				     .in = in,
				     .in_len = sizeof(in),
				     .out = out,
				     .cap = ROOM,
				     .ret_len = &len,
				     .to = &b,
				     .e = &e};
	int rc;

	require(out != NULL);
	rc = ops->decode(&c);
	failed(rc, &e);
	require(rc < 0 || len <= ROOM);
	free(out);
	e = (struct err)ERR_INIT;
	buf_init(&b, 1 << 20);
	rc = ops->encode(&c);
	failed(rc, &e);
	require(rc == 0 || b.len == 0);
	buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t params[] = {1, 2, 3};
	const struct codec_spec spec = {
		.h5_id = ID, .n_params = 3, .params = params, .name = ""};
	const struct codec_ops *ops;

	scripted = false;
	script = slice_of(data, size);
	ops = codec_find(ID);
	require(ops && ops->prepare && ops->from_zarr && ops->zarr2_params && ops->encode);
	scripted = true;
	tables();
	chunks(ops, &spec);
	parameters(ops, &spec);
	chunks(ops, &spec);
	script = slice_of(data, 0);
	script.bad = true; /* who is still there goes now */
	chunks(ops, &spec);
	return 0;
}
