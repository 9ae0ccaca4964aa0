/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_codec.c - one codec over arbitrary bytes and parameters. FUZZ_CODEC says which: a name and a
 * number, as the folders in tests/fuzz/seeds are called ("lz4-32004"; the number is enough).
 * Without it the first four bytes of an input do: a number of a filter, or else any number.
 *
 * Properties: nothing crashes or touches memory that is not its own; decoding gives the length that
 * was asked for or a known error; what has no known length is the same; memory is at most a few
 * times the declared length, and what the codec's library needs in any case; what was decoded can
 * be encoded, and gives the same again, unless the codec is lossy.
 *
 * Input: a byte for the number of parameters, four for each, a byte for the size of an element,
 * four for the decoded length (little-endian), and what is stored.
 *
 *   make fuzz TIME=60 FUZZ=lz4-32004 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/cursor.h"
#include "codecs/core/codec.h"
#include "codecs/plugin/plugin.h"
#include "tests/fuzz/memory.h"

#define OUT_MAX ((size_t)1 << 20)
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* case - one input, taken apart. */
struct input {
	struct codec_spec spec;
	struct codec_chain chain;
	uint32_t params[CODEC_PARAMS_MAX];
	size_t elem_size, out_len;
	const uint8_t *in;
	size_t n;
};

static void require(bool ok)
{
	if (!ok)
		abort();
}

static const struct codec_ops *now; /* the codec of this input */

/* named - the codec of FUZZ_CODEC; NULL: it names none. */
static const struct codec_ops *named(void)
{
	static const struct codec_ops *ops;
	const char *name = getenv("FUZZ_CODEC");
	const char *dash = name ? strrchr(name, '-') : NULL;
	uint32_t id = 0;

	if (ops || !name || !*name)
		return ops;
	for (const char *s = dash ? dash + 1 : name; s && *s >= '0' && *s <= '9'; s++)
		id = id * 10 + (uint32_t)(*s - '0');
	ops = codec_find(id);
	if (!ops || !ops->decode) {
		(void)fprintf(stderr, "FUZZ_CODEC names no codec\n"); /* nobody to tell */
		exit(2);
	}
	return ops;
}

/* choose - the codec that an input is for. */
static const struct codec_ops *choose(struct slice *s)
{
	const struct codec_ops *ops = named();
	size_t n = 0;
	uint32_t id;

	if (ops)
		return ops;
	id = rd_le32(s);
	ops = codec_find(id);
	while (codec_at(n))
		n++;
	for (; !ops || !ops->decode; id++)
		ops = codec_at(id % n);
	return ops;
}

/* overhead - bytes that a decoder needs whatever it decodes. */
static size_t overhead(uint32_t id)
{
	switch (id) {
	case CODEC_LZMA:
		return 260 * MIB; /* the limit that it is given */
	case CODEC_BZIP2:
		return 4 * MIB; /* blocks of 900 kB */
	default:
		return 512 * KIB;
	}
}

static bool take(struct slice *s, struct input *x)
{
	uint32_t n = rd_u8(s) % (CODEC_PARAMS_MAX + 1);

	for (uint32_t i = 0; i < n; i++)
		x->params[i] = rd_le32(s);
	x->elem_size = rd_u8(s);
	x->out_len = rd_le32(s) % (OUT_MAX + 1);
	if (x->elem_size == 0)
		x->elem_size = 1;
	x->spec = (struct codec_spec){
		.h5_id = now->h5_id, .n_params = n, .params = x->params, .name = ""};
	x->chain = (struct codec_chain){1, &x->spec};
	x->in = s->p;
	x->n = s->len;
	return slice_ok(s);
}

/* known - an error that decoding may have, with a text. */
static bool known(int rc, const struct err *e)
{
	return (rc == -EBADMSG || rc == -EOPNOTSUPP) && e->code == rc && e->msg[0];
}

/* exact - whether what was decoded is given back: sums of floats are rounded. */
static bool exact(const struct input *x)
{
	for (uint32_t i = 0; now->h5_id == CODEC_DELTA && i < x->spec.n_params; i++)
		if ((x->params[i] >> 8 & 0xff) == 'f')
			return false;
	return !now->lossy;
}

/* again - what was decoded, encoded and decoded once more. */
static void again(const struct input *x, const uint8_t *out, struct codec_scratch *scratch)
{
	uint8_t *back = malloc(x->out_len ? x->out_len : 1);
	struct err e = ERR_INIT;
	struct buf b;
	int rc;

	require(back != NULL);
	buf_init(&b, 64 * MIB);
	rc = codec_chain_encode(&x->chain, x->elem_size, out, x->out_len, scratch, &b, &e);
	require(rc == 0 || (b.len == 0 && e.code == rc && e.msg[0]));
	if (rc == 0 && exact(x)) {
		require(codec_chain_decode(&x->chain, 0, x->elem_size, b.data, b.len, back,
					   x->out_len, scratch, NULL) == 0);
		require(memcmp(back, out, x->out_len) == 0);
	}
	buf_release(&b);
	free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice s = slice_of(data, size);
	struct codec_scratch *scratch;
	struct err e = ERR_INIT, any_e = ERR_INIT;
	const uint8_t *any = NULL;
	size_t len = 0, most;
	struct input x;
	uint8_t *out;
	int rc, any_rc;

	codec_plugins_off();
	now = choose(&s);
	if (!take(&s, &x))
		return 0;
	scratch = codec_scratch_new();
	out = malloc(x.out_len ? x.out_len : 1);
	require(scratch && out);
	most = 3 * x.out_len + 2 * x.n + overhead(x.spec.h5_id);

	memory_watch();
	rc = codec_chain_decode(&x.chain, 0, x.elem_size, x.in, x.n, out, x.out_len, scratch,
				&e);
	require(memory_most() <= most);
	require(rc == 0 || known(rc, &e));

	memory_watch();
	any_rc = codec_chain_decode_any(&x.chain, x.elem_size, x.in, x.n, x.out_len, scratch,
					&any, &len, &any_e);
	require(memory_most() <= most);
	require(any_rc == 0 || any_rc == -ERANGE || known(any_rc, &any_e));
	require(any_rc != 0 || len <= x.out_len);
	/* a decoder may know from the length alone that there is something missing, never that
	 * there are other bytes */
	require(rc != 0 || any_rc != 0 || len != x.out_len || memcmp(any, out, len) == 0);

	if (rc == 0 && now->encode)
		again(&x, out, scratch);
	free(out);
	codec_scratch_free(scratch);
	return 0;
}
