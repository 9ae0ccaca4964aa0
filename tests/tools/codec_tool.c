/* SPDX-License-Identifier: BSD-3-Clause */
/* codec_tool.c - chains of codecs by themselves, for tests/lib/codecs.py. Requests come on standard
 * input, a line each, some with bytes behind it; one process serves thousands of them.
 *
 *   h5 ELEM CHAIN        the chain of an HDF5 dataset: "2,4|1,5" or "-"; ELEM bytes an element
 *   zarr2 N, zarr3 N     the chain of a Zarr array: N bytes of its document, read as the source
 *                        of Zarr trees reads it
 *   array CLASS SIZE ORDER CHUNK FILL
 *                        what prepare is told: int, uint, float, other; bytes; little, big; "3x40";
 *                        hexadecimal or "-"
 *   prepare              the parameters become those that an HDF5 writer stores
 *   list                 every codec: name, number, numcodecs' id, Zarr v3's name, what it can do
 *   json                 the chain as numcodecs' configurations
 *   encode N, frame N    N bytes follow
 *   decode MASK OUT N    N bytes follow, which must give OUT
 *   any MAX N            the same where nobody knows how many
 *
 * Answers are "ok N TEXT" and N bytes, or "ENAME TEXT". The text of what sets a chain is "ELEM
 * CHAIN". Input and output are in memory exactly as long as they are, so that a sanitizer sees
 * every byte too far. A request that is not understood ends the program with status 2. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/str.h"
#include "codecs/core/codec.h"
#include "nczarr/source/source_int.h"

#define DOC_BYTES ((size_t)16 << 20) /* of a chain in the arena */
#define OUT_BYTES ((size_t)1 << 30)  /* of what is encoded */
#define RANK_MAX 32
#define FILL_MAX 64

/* state - what requests set for those that follow. */
struct state {
	struct arena a;
	struct codec_chain chain;
	size_t elem_size;
	struct codec_array array;
	uint64_t chunk[RANK_MAX];
	uint8_t fill[FILL_MAX];
	struct codec_scratch *scratch;
	struct err e;
};

static _Noreturn void bad(const char *what)
{
	(void)fprintf(stderr, "codec_tool: %s\n", what); /* nobody to tell otherwise */
	exit(2);
}

/* ---- reading ---- */

/* word - the next word of a line, NUL-terminated. */
static char *word(char **line)
{
	char *w = strsep(line, " ");

	if (!w || !*w)
		bad("a word is missing");
	return w;
}

static uint64_t number(const char *w, uint64_t max)
{
	uint64_t v;

	if (str_u64(w, strlen(w), max, &v) < 0)
		bad("not a number");
	return v;
}

static size_t count(char **line)
{
	return (size_t)number(word(line), OUT_BYTES);
}

/* payload - the n bytes behind a line. New. */
static uint8_t *payload(size_t n)
{
	uint8_t *p = malloc(n ? n : 1);

	if (!p)
		bad("memory is short");
	if (fread(p, 1, n, stdin) != n)
		bad("bytes are missing");
	return p;
}

static unsigned int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned int)(c - 'a') + 10;
	bad("not hexadecimal");
}

/* ---- answering ---- */

static void answer(const uint8_t *p, size_t n, const char *text)
{
	if (printf("ok %zu %s\n", n, text) < 0 || (n && fwrite(p, 1, n, stdout) != n) ||
	    fflush(stdout) != 0)
		bad("cannot answer");
}

static const char *errno_name(int code)
{
	static const struct {
		int code;
		const char *name;
	} names[] = {{ENOENT, "ENOENT"}, {EINVAL, "EINVAL"}, {EBADMSG, "EBADMSG"},
		     {EIO, "EIO"},       {ERANGE, "ERANGE"}, {EOPNOTSUPP, "EOPNOTSUPP"},
		     {ENOMEM, "ENOMEM"}};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].code == -code)
			return names[i].name;
	return "EOTHER";
}

/* failed - every error has a text and the code that was returned. */
static void failed(struct state *s, int rc)
{
	if (s->e.code != rc || !s->e.msg[0])
		bad("an error that does not say what it is");
	if (printf("%s %s\n", errno_name(rc), s->e.msg) < 0 || fflush(stdout) != 0)
		bad("cannot answer");
}

/* show - the chain, in the form that h5 takes. */
static void show(struct state *s)
{
	struct buf b;

	buf_init(&b, DOC_BYTES);
	buf_printf(&b, "%zu %s", s->elem_size, s->chain.n ? "" : "-");
	for (uint32_t i = 0; i < s->chain.n; i++) {
		const struct codec_spec *spec = &s->chain.specs[i];

		buf_printf(&b, "%s%" PRIu32, i ? "|" : "", spec->h5_id);
		for (uint32_t k = 0; k < spec->n_params; k++)
			buf_printf(&b, ",%" PRIu32, spec->params[k]);
	}
	buf_putc(&b, '\0');
	if (!buf_ok(&b))
		bad("memory is short");
	answer(NULL, 0, (const char *)b.data);
	buf_release(&b);
}

/* ---- chains ---- */

static void forget(struct state *s)
{
	arena_release(&s->a);
	arena_init(&s->a, DOC_BYTES);
	s->chain = (struct codec_chain){0};
}

static void set_h5(struct state *s, char *line)
{
	size_t elem_size = count(&line);
	char *text = word(&line), *filter;
	struct codec_spec *specs = arena_alloc(&s->a, CODEC_CHAIN_MAX, sizeof(*specs));

	if (!specs)
		bad("memory is short");
	s->elem_size = elem_size;
	s->chain = (struct codec_chain){0, specs};
	if (strcmp(text, "-") == 0)
		text = NULL;
	while ((filter = strsep(&text, "|"))) {
		uint32_t *params = arena_alloc(&s->a, strlen(filter), sizeof(*params)), n = 0;
		const char *id = strsep(&filter, ","), *p;

		if (s->chain.n == CODEC_CHAIN_MAX || !params)
			bad("too many filters");
		while ((p = strsep(&filter, ",")))
			params[n++] = (uint32_t)number(p, UINT32_MAX);
		specs[s->chain.n++] =
			(struct codec_spec){.h5_id = (uint32_t)number(id, UINT32_MAX),
					    .n_params = n,
					    .params = params,
					    .name = ""};
	}
	show(s);
}

/* set_zarr - from a document; chains that cannot be read are told in the dataset, and here. */
static void set_zarr(struct state *s, int version, char *line)
{
	size_t n = count(&line);
	char *text = (char *)payload(n);
	struct zr_meta m = {0};
	json_t *doc = NULL;
	int rc = json_read(text, n, &doc, &s->e);

	if (rc == 0 && version == 2)
		rc = zr_v2_meta(&s->a, doc, false, &m, &s->e);
	else if (rc == 0)
		rc = zr_v3_meta(&s->a, doc, &m, &s->e);
	if (rc == 0 && m.unreadable)
		rc = err_set(&s->e, -EOPNOTSUPP, "%s", m.unreadable);
	if (rc == 0) {
		s->chain = m.chain;
		s->elem_size = m.dtype.stored ? m.dtype.stored : 1;
		show(s);
	} else {
		failed(s, rc);
	}
	json_decref(doc);
	free(text);
}

static void set_array(struct state *s, char *line)
{
	static const char *const classes[] = {"other", "int", "uint", "float"};
	const char *class = word(&line), *len;
	char *chunk, *fill;

	s->array = (struct codec_array){.chunk = s->chunk};
	for (unsigned int i = 0; i < ARRAY_LEN(classes); i++)
		if (strcmp(class, classes[i]) == 0)
			s->array.class = (enum codec_class)i;
	s->array.elem_size = (uint32_t)count(&line);
	s->array.big_endian = strcmp(word(&line), "big") == 0;
	chunk = word(&line);
	while ((len = strsep(&chunk, "x"))) {
		if (s->array.rank == RANK_MAX)
			bad("too many dimensions");
		s->chunk[s->array.rank++] = number(len, UINT64_MAX);
	}
	fill = word(&line);
	if (strcmp(fill, "-") != 0) {
		if (strlen(fill) != (size_t)2 * s->array.elem_size ||
		    strlen(fill) > 2 * FILL_MAX)
			bad("a fill value of another length");
		for (size_t i = 0; fill[2 * i]; i++)
			s->fill[i] =
				(uint8_t)(nibble(fill[2 * i]) << 4 | nibble(fill[2 * i + 1]));
		s->array.fill = s->fill;
	}
	answer(NULL, 0, "");
}

static int prepare_one(struct state *s, struct codec_spec *spec)
{
	const struct codec_ops *ops = codec_find(spec->h5_id);
	uint32_t params[CODEC_PARAMS_MAX] = {0}, n = 0;
	int rc;

	if (!ops)
		return err_set(&s->e, -EOPNOTSUPP, "filter %" PRIu32 " is not known",
			       spec->h5_id);
	if (!ops->prepare)
		return 0;
	rc = ops->prepare(spec, &s->array, params, &n, &s->e);
	if (rc)
		return rc;
	spec->n_params = n;
	spec->params = arena_copy(&s->a, params, n * sizeof(*params));
	if (!spec->params)
		bad("memory is short");
	return 0;
}

/* prepare - filter for filter, without the order that netCDF would put them in. */
static void prepare(struct state *s)
{
	struct codec_spec *specs = arena_alloc(&s->a, CODEC_CHAIN_MAX, sizeof(*specs));
	int rc = 0;

	if (!specs)
		bad("memory is short");
	for (uint32_t i = 0; i < s->chain.n; i++)
		specs[i] = s->chain.specs[i];
	for (uint32_t i = 0; rc == 0 && i < s->chain.n; i++)
		rc = prepare_one(s, &specs[i]);
	if (rc) {
		failed(s, rc);
		return;
	}
	s->chain.specs = specs;
	show(s);
}

static void put_json(struct state *s)
{
	struct buf b;

	buf_init(&b, DOC_BYTES);
	for (uint32_t i = 0; i < s->chain.n; i++) {
		const struct codec_ops *ops = codec_find(s->chain.specs[i].h5_id);

		if (!ops || !ops->zarr2_id) {
			buf_release(&b);
			failed(s,
			       err_set(&s->e, -EOPNOTSUPP, "numcodecs has no filter %" PRIu32,
				       s->chain.specs[i].h5_id));
			return;
		}
		buf_printf(&b, "%s{\"id\": \"%s\"", i ? ", " : "[", ops->zarr2_id);
		if (ops->zarr2_params)
			ops->zarr2_params(&s->chain.specs[i], s->elem_size, &b);
		buf_putc(&b, '}');
	}
	buf_puts(&b, s->chain.n ? "]" : "[]");
	if (!buf_ok(&b))
		bad("memory is short");
	answer(b.data, b.len, "");
	buf_release(&b);
}

/* list_all - a line for each codec; "-" where it has no such name. */
static void list_all(void)
{
	const struct codec_ops *ops;
	struct buf b;

	buf_init(&b, DOC_BYTES);
	for (size_t i = 0; (ops = codec_at(i)); i++)
		buf_printf(&b, "%s %" PRIu32 " %s %s%s%s%s%s%s%s\n", ops->name, ops->h5_id,
			   ops->zarr2_id ? ops->zarr2_id : "-",
			   ops->zarr3_name ? ops->zarr3_name : "-",
			   ops->decode ? " decode" : "", ops->encode ? " encode" : "",
			   ops->frame ? " frame" : "", ops->prepare ? " prepare" : "",
			   ops->lossy ? " lossy" : "", ops->origin ? " plugin" : "");
	if (!buf_ok(&b))
		bad("memory is short");
	answer(b.data, b.len, "");
	buf_release(&b);
}

/* ---- bytes ---- */

static void encode(struct state *s, char *line)
{
	size_t n = count(&line);
	uint8_t *in = payload(n);
	struct buf b;
	int rc;

	buf_init(&b, OUT_BYTES);
	buf_puts(&b, "before");
	rc = codec_chain_encode(&s->chain, s->elem_size, in, n, s->scratch, &b, &s->e);
	if (b.len < 6 || memcmp(b.data, "before", 6) != 0 || (rc && b.len != 6))
		bad("encoding touches what was there before");
	if (rc)
		failed(s, rc);
	else
		answer(b.data + 6, b.len - 6, "");
	buf_release(&b);
	free(in);
}

static void frame(struct state *s, char *line)
{
	size_t n = count(&line), size = (size_t)codec_chain_framed_size(&s->chain, n);
	uint8_t *in = payload(n), *out = malloc(size ? size : 1);
	int rc;

	if (!out)
		bad("memory is short");
	rc = codec_chain_frame(&s->chain, s->elem_size, in, n, out, &s->e);
	if (rc)
		failed(s, rc);
	else
		answer(out, size, "");
	free(out);
	free(in);
}

static void decode(struct state *s, char *line)
{
	uint32_t mask = (uint32_t)number(word(&line), UINT32_MAX);
	size_t len = count(&line), n = count(&line);
	uint8_t *in = payload(n), *out = malloc(len ? len : 1);
	int rc;

	if (!out)
		bad("memory is short");
	rc = codec_chain_decode(&s->chain, mask, s->elem_size, in, n, out, len, s->scratch,
				&s->e);
	if (rc)
		failed(s, rc);
	else
		answer(out, len, "");
	free(out);
	free(in);
}

static void decode_any(struct state *s, char *line)
{
	size_t max = count(&line), n = count(&line), len = 0;
	uint8_t *in = payload(n);
	const uint8_t *out = NULL;
	int rc = codec_chain_decode_any(&s->chain, s->elem_size, in, n, max, s->scratch, &out,
					&len, &s->e);

	if (rc)
		failed(s, rc);
	else if (len > max)
		bad("more than was asked for");
	else
		answer(out, len, "");
	free(in);
}

static void request(struct state *s, char *line)
{
	const char *op = strsep(&line, " ");

	s->e = (struct err)ERR_INIT;
	if (strcmp(op, "h5") == 0 || strncmp(op, "zarr", 4) == 0)
		forget(s);
	if (strcmp(op, "h5") == 0)
		set_h5(s, line);
	else if (strcmp(op, "zarr2") == 0)
		set_zarr(s, 2, line);
	else if (strcmp(op, "zarr3") == 0)
		set_zarr(s, 3, line);
	else if (strcmp(op, "array") == 0)
		set_array(s, line);
	else if (strcmp(op, "prepare") == 0)
		prepare(s);
	else if (strcmp(op, "list") == 0)
		list_all();
	else if (strcmp(op, "json") == 0)
		put_json(s);
	else if (strcmp(op, "encode") == 0)
		encode(s, line);
	else if (strcmp(op, "frame") == 0)
		frame(s, line);
	else if (strcmp(op, "decode") == 0)
		decode(s, line);
	else if (strcmp(op, "any") == 0)
		decode_any(s, line);
	else
		bad("a request that is not known");
}

int main(void)
{
	struct state s = {.elem_size = 1, .scratch = codec_scratch_new()};
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	if (!s.scratch)
		bad("memory is short");
	arena_init(&s.a, DOC_BYTES);
	while ((n = getline(&line, &cap, stdin)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		request(&s, line);
	}
	free(line);
	arena_release(&s.a);
	codec_scratch_free(s.scratch);
	return 0;
}
