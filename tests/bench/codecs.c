/* SPDX-License-Identifier: BSD-3-Clause */
/* codecs.c - how quick a codec of ours is beside its library called directly, on one thread.
 *
 * Chunks of one MiB of smooth 4-byte floats, byte-shuffled as files have them. Ours and the
 * library's call alternate; the median of each counts. Prints one line of JSON for each codec and
 * direction: GB/s of elements, and ours / direct. Shuffles have no library here: their rows give
 * GB/s only.
 *
 * usage: codecs [CHUNKS [RUNS]] */
#include <blosc.h>
#include <bzlib.h>
#include <libdeflate.h>
#include <liblzf/lzf.h>
#include <lz4.h>
#include <lzma.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "codecs/core/codec.h"

#define CHUNK ((size_t)1 << 20)
#define ROOM (CHUNK + CHUNK / 4)
#define RUNS_MAX 101

static size_t n_chunks = 16, runs = 9;
static uint8_t *plain, *shuffled, *room;
static struct codec_scratch *scratch;

/* ---- the libraries, as a program that knows only them would call them ---- */

static struct libdeflate_compressor *packer;
static struct libdeflate_decompressor *unpacker;
static ZSTD_CCtx *zstd_packer;
static ZSTD_DCtx *zstd_unpacker;

static size_t zlib_pack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	return libdeflate_zlib_compress(packer, in, n, out, cap);
}

static size_t zlib_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	size_t got = 0;

	return libdeflate_zlib_decompress(unpacker, in, n, out, cap, &got) ? 0 : got;
}

static size_t gzip_pack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	return libdeflate_gzip_compress(packer, in, n, out, cap);
}

static size_t gzip_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	size_t got = 0;

	return libdeflate_gzip_decompress(unpacker, in, n, out, cap, &got) ? 0 : got;
}

static size_t zstd_pack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	return ZSTD_compressCCtx(zstd_packer, out, cap, in, n, 3);
}

static size_t zstd_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	return ZSTD_decompressDCtx(zstd_unpacker, out, cap, in, n);
}

static size_t blosc_pack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	int got = blosc_compress_ctx(5, 1, 4, n, in, out, cap, "lz4", 0, 1);

	return got > 0 ? (size_t)got : 0;
}

static size_t blosc_unpack(const uint8_t *in, size_t n NZ_UNUSED, uint8_t *out, size_t cap)
{
	int got = blosc_decompress_ctx(in, out, cap, 1);

	return got > 0 ? (size_t)got : 0;
}

static size_t bz2_pack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	unsigned int got = (unsigned int)cap;
	int rc = BZ2_bzBuffToBuffCompress((char *)out, &got, (char *)(uintptr_t)in,
					  (unsigned int)n, 9, 0, 0);

	return rc == BZ_OK ? got : 0;
}

static size_t bz2_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	unsigned int got = (unsigned int)cap;
	int rc = BZ2_bzBuffToBuffDecompress((char *)out, &got, (char *)(uintptr_t)in,
					    (unsigned int)n, 0, 0);

	return rc == BZ_OK ? got : 0;
}

static size_t lz4_pack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	int got = LZ4_compress_default((const char *)in, (char *)out + 4, (int)n, (int)cap - 4);

	return got > 0 ? (size_t)got + 4 : 0;
}

static size_t lz4_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	int got = LZ4_decompress_safe((const char *)in + 4, (char *)out, (int)n - 4, (int)cap);

	return got > 0 ? (size_t)got : 0;
}

static size_t lzma_pack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	size_t at = 0;
	lzma_ret rc = lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, in, n, out, &at, cap);

	return rc == LZMA_OK ? at : 0;
}

static size_t lzma_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	uint64_t limit = UINT64_MAX;
	size_t from = 0, at = 0;
	lzma_ret rc =
		lzma_stream_buffer_decode(&limit, 0, NULL, in, &from, n, out, &at, cap);

	return rc == LZMA_OK ? at : 0;
}

static size_t lzf_pack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	return lzf_compress(in, (unsigned int)n, out, (unsigned int)cap);
}

static size_t lzf_unpack(const uint8_t *in, size_t n, uint8_t *out, size_t cap)
{
	return lzf_decompress(in, (unsigned int)n, out, (unsigned int)cap);
}

typedef size_t call(const uint8_t *in, size_t n, uint8_t *out, size_t cap);

static const struct row {
	const char *name;
	uint32_t id, n_params, params[8];
	bool shuffled;            /* what it gets */
	call *pack, *unpack;      /* NULL: no library does the same */
} rows[] = {
	{"deflate", CODEC_DEFLATE, 1, {4}, true, zlib_pack, zlib_unpack},
	{"gzip", CODEC_GZIP, 1, {4}, true, gzip_pack, gzip_unpack},
	{"zstd", CODEC_ZSTD, 1, {3}, true, zstd_pack, zstd_unpack},
	{"blosc", CODEC_BLOSC, 7, {2, 2, 4, 0, 5, 1, 1}, false, blosc_pack, blosc_unpack},
	{"bzip2", CODEC_BZIP2, 1, {9}, true, bz2_pack, bz2_unpack},
	{"lz4", CODEC_LZ4, 1, {1}, true, lz4_pack, lz4_unpack},
	{"lzma", CODEC_LZMA, 4, {1, 4, 1, 0}, true, lzma_pack, lzma_unpack},
	{"lzf", CODEC_LZF, 3, {4, 0x0105, (uint32_t)CHUNK}, true, lzf_pack, lzf_unpack},
	{"shuffle", CODEC_SHUFFLE, 1, {4}, false, NULL, NULL},
	{"bitshuffle", CODEC_BITSHUFFLE, 6, {0, 4, 4, 0, 0, 0}, false, NULL, NULL},
	{"fletcher32", CODEC_FLETCHER32, 0, {0}, false, NULL, NULL},
	{"crc32c", CODEC_CRC32C, 0, {0}, false, NULL, NULL},
	{"scaleoffset", CODEC_SCALEOFFSET, 0, {0}, false, NULL, NULL},
};

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, runs, sizeof(*v), by_size);
	return v[runs / 2];
}

static _Noreturn void fail(const char *name, const char *why)
{
	(void)fprintf(stderr, "codecs: %s: %s\n", name, why);
	exit(1);
}

/* field - a wave with a little noise in the low bits, as model output has. */
static void field(uint8_t *out, size_t n)
{
	uint32_t seed = 1;

	for (size_t i = 0; i < n; i++) {
		float v = 280 + 15 * sinf((float)(i % 512) / 40) * cosf((float)(i / 512) / 70);
		uint32_t bits;

		seed = seed * 1664525 + 1013904223;
		memcpy(&bits, &v, 4);
		bits = (bits & ~0x7ffU) | (seed >> 23 & 0x7ff);
		memcpy(out + 4 * i, &bits, 4);
	}
}

struct stored {
	struct buf *chunk;  /* n_chunks, by our encoder */
	const struct row *row;
	struct codec_spec spec;
	struct codec_chain chain;
	const uint8_t *in;
};

static double our_encode(struct stored *x)
{
	double start = now();

	for (size_t i = 0; i < n_chunks; i++) {
		buf_clear(&x->chunk[i]);
		if (codec_chain_encode(&x->chain, 4, x->in + i * CHUNK, CHUNK, scratch,
				       &x->chunk[i], NULL) < 0)
			fail(x->row->name, "not encoded");
	}
	return now() - start;
}

static double our_decode(struct stored *x)
{
	double start = now();

	for (size_t i = 0; i < n_chunks; i++)
		if (codec_chain_decode(&x->chain, 0, 4, x->chunk[i].data, x->chunk[i].len, room,
				       CHUNK, scratch, NULL) < 0)
			fail(x->row->name, "not decoded");
	return now() - start;
}

static double their_encode(struct stored *x)
{
	double start = now();

	for (size_t i = 0; i < n_chunks; i++)
		if (x->row->pack(x->in + i * CHUNK, CHUNK, room, ROOM) == 0)
			fail(x->row->name, "the library did not encode");
	return now() - start;
}

static double their_decode(struct stored *x)
{
	double start = now();

	for (size_t i = 0; i < n_chunks; i++)
		if (x->row->unpack(x->chunk[i].data, x->chunk[i].len, room, CHUNK) != CHUNK)
			fail(x->row->name, "the library did not decode");
	return now() - start;
}

static void measure(struct stored *x, const char *op, double (*ours)(struct stored *),
		    double (*theirs)(struct stored *))
{
	double a[RUNS_MAX], b[RUNS_MAX], ratio[RUNS_MAX];
	double bytes = (double)n_chunks * (double)CHUNK / 1e9;

	(void)ours(x);
	for (size_t i = 0; i < runs; i++) {
		a[i] = ours(x);
		b[i] = theirs ? theirs(x) : a[i];
		ratio[i] = b[i] / a[i];
	}
	(void)printf("{\"codec\": \"%s\", \"op\": \"%s\", \"gbs\": %.3f", x->row->name, op,
		     bytes / median(a));
	if (theirs)
		(void)printf(", \"direct_gbs\": %.3f, \"ratio\": %.3f", bytes / median(b),
			     median(ratio));
	(void)printf("}\n");
	(void)fflush(stdout);
}

static void run(const struct row *r)
{
	const struct codec_ops *ops = codec_find(r->id);
	struct stored x = {.row = r, .in = r->shuffled ? shuffled : plain};

	if (!ops || !ops->encode || (ops->prepare && r->n_params == 0))
		return;
	x.spec = (struct codec_spec){
		.h5_id = r->id, .n_params = r->n_params, .params = r->params, .name = ""};
	x.chain = (struct codec_chain){1, &x.spec};
	x.chunk = calloc(n_chunks, sizeof(*x.chunk));
	if (!x.chunk)
		fail(r->name, "no memory");
	for (size_t i = 0; i < n_chunks; i++)
		buf_init(&x.chunk[i], SIZE_MAX);
	measure(&x, "encode", our_encode, r->pack ? their_encode : NULL);
	measure(&x, "decode", our_decode, r->unpack ? their_decode : NULL);
	for (size_t i = 0; i < n_chunks; i++)
		buf_release(&x.chunk[i]);
	free(x.chunk);
}

static void make_input(void)
{
	static const uint32_t four = 4;
	const struct codec_spec spec = {
		.h5_id = CODEC_SHUFFLE, .n_params = 1, .params = &four, .name = ""};
	const struct codec_chain chain = {1, &spec};
	struct buf b;

	plain = malloc(n_chunks * CHUNK);
	shuffled = malloc(n_chunks * CHUNK);
	room = malloc(ROOM);
	if (!plain || !shuffled || !room || !scratch)
		fail("input", "no memory");
	field(plain, n_chunks * CHUNK / 4);
	buf_init(&b, SIZE_MAX);
	for (size_t i = 0; i < n_chunks; i++) {
		buf_clear(&b);
		if (codec_chain_encode(&chain, 4, plain + i * CHUNK, CHUNK, scratch, &b, NULL))
			fail("input", "not shuffled");
		memcpy(shuffled + i * CHUNK, b.data, CHUNK);
	}
	buf_release(&b);
	memset(room, 1, ROOM);
}

/* copies - what memcpy does, for the shuffles to be seen beside. */
static void copies(void)
{
	double v[RUNS_MAX];

	for (size_t i = 0; i < runs; i++) {
		double start = now();

		for (size_t k = 0; k < n_chunks; k++) {
			memcpy(room, plain + k * CHUNK, CHUNK);
			__asm__ volatile("" ::: "memory");
		}
		v[i] = now() - start;
	}
	(void)printf("{\"codec\": \"memcpy\", \"op\": \"copy\", \"gbs\": %.3f}\n",
		     (double)n_chunks * (double)CHUNK / 1e9 / median(v));
}

int main(int argc, char **argv)
{
	if (argc > 1)
		n_chunks = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		runs = strtoul(argv[2], NULL, 10);
	if (n_chunks < 1 || n_chunks > 4096 || runs < 1 || runs > RUNS_MAX) {
		(void)fprintf(stderr, "usage: codecs [CHUNKS [RUNS]]\n");
		return 2;
	}
	packer = libdeflate_alloc_compressor(4);
	unpacker = libdeflate_alloc_decompressor();
	zstd_packer = ZSTD_createCCtx();
	zstd_unpacker = ZSTD_createDCtx();
	scratch = codec_scratch_new();
	make_input();
	copies();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		run(&rows[i]);
	codec_scratch_free(scratch);
	(void)ZSTD_freeCCtx(zstd_packer);
	(void)ZSTD_freeDCtx(zstd_unpacker);
	libdeflate_free_compressor(packer);
	libdeflate_free_decompressor(unpacker);
	free(plain);
	free(shuffled);
	free(room);
	return 0;
}
