/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_specs.c - arbitrary text as filter specifications and as rules.
 *
 * Property 1: what is a chain is written and read back as the same text. Property 2: what is
 * prepared can be prepared again, to the same. Property 3: a rule that is refused leaves the rules
 * as they were. Input: the text. */
#include <stdlib.h>
#include <string.h>

#include "codecs/plugin/plugin.h"
#include "codecs/numeric/quant.h"
#include "codecs/spec/spec.h"

#define TEXT_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* text - a chain as text, with a NUL. */
static void text(const struct codec_chain *c, struct buf *out)
{
	buf_clear(out);
	codec_spec_print(c, out);
	buf_putc(out, '\0');
	require(buf_ok(out));
}

static void same(const struct codec_chain *a, const struct codec_chain *b)
{
	struct buf x, y;

	buf_init(&x, TEXT_MAX);
	buf_init(&y, TEXT_MAX);
	text(a, &x);
	text(b, &y);
	require(strcmp((const char *)x.data, (const char *)y.data) == 0);
	buf_release(&x);
	buf_release(&y);
}

/* reads_back - the text of a chain is that chain, but for what szip's text leaves out. */
static void reads_back(struct arena *a, const struct codec_chain *c)
{
	struct codec_chain again;
	struct buf b;

	buf_init(&b, TEXT_MAX);
	text(c, &b);
	require(codec_spec_parse(a, (const char *)b.data, b.len - 1, &again, NULL) == 0);
	same(c, &again);
	buf_release(&b);
}

/* prepares - with the parameters that were stored once there is nothing more to add. */
static void prepares(struct arena *a, const struct codec_chain *c)
{
	static const uint64_t chunk[] = {7, 9};
	const struct codec_array array = {
		.class = CODEC_FLOAT, .elem_size = 4, .rank = 2, .chunk = chunk};
	struct codec_chain hdf5, once, twice;

	require(codec_chain_for(a, CODEC_FORMAT_HDF5, c, &hdf5, NULL) == 0);
	require(codec_chain_for(a, CODEC_FORMAT_ZARR, c, &twice, NULL) == 0);
	if (codec_chain_prepare(a, &hdf5, &array, &once, NULL))
		return;
	require(once.n == hdf5.n);
	if (codec_chain_prepare(a, &once, &array, &twice, NULL) == 0)
		same(&once, &twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct codec_rules rules = {0};
	struct codec_quant_rules quants = {0};
	struct codec_chain c;
	struct arena a;
	char *line;

	codec_plugins_off();
	arena_init(&a, (size_t)64 << 20);
	if (codec_spec_parse(&a, (const char *)data, size, &c, NULL) == 0) {
		reads_back(&a, &c);
		prepares(&a, &c);
	}
	line = arena_copy(&a, data, size);
	if (line) {
		require((codec_rule_add(&a, line, &rules, NULL) == 0) == (rules.n == 1));
		require((codec_quant_rule_add(&a, line, &quants, NULL) == 0) ==
			(quants.n == 1));
		(void)codec_rules_for(&rules, "/g/v");
		(void)codec_quant_for(&quants, "/g/v", 4);
	}
	arena_release(&a);
	return 0;
}
