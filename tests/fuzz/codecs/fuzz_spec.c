/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_spec.c - filters and quantisation as text (-o filter=, -o quantize=), from anybody.
 *
 * Properties: nothing crashes; what is taken is printed in a form that is taken again and printed
 * the same; what is refused is refused with a message, and leaves the rules as they were; rules
 * apply to any path; parameters can be prepared for arrays of every kind, or are refused with a
 * message.
 *
 *   make fuzz TIME=60 FUZZ=spec */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codecs/plugin/plugin.h"
#include "codecs/numeric/quant.h"
#include "codecs/spec/spec.h"

#define ARENA_BYTES ((size_t)4 << 20)
#define TEXT_MAX 2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static bool refused(int rc, const struct err *e)
{
	return (rc == -EINVAL || rc == -ENOMEM || rc == -EOPNOTSUPP) && e->code == rc &&
	       e->msg[0];
}

static void prepare(struct arena *a, const struct codec_chain *chain)
{
	static const uint64_t chunk[] = {3, 5};
	static const uint8_t fill[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	for (uint32_t i = 0; i < 16; i++) {
		struct codec_array array = {.class = (enum codec_class)(i % 4),
					    .elem_size = 1u << i / 4,
					    .big_endian = i % 2,
					    .rank = i % 3,
					    .chunk = chunk,
					    .fill = i % 5 ? fill : NULL};
		struct codec_chain ret = {0};
		struct err e = ERR_INIT;
		int rc = codec_chain_prepare(a, chain, &array, &ret, &e);

		require(rc == 0 || refused(rc, &e));
		for (uint32_t k = 0; rc == 0 && k < ret.n; k++)
			require(ret.specs[k].n_params <= CODEC_PARAMS_MAX ||
				ret.specs[k].n_params == chain->specs[k].n_params);
	}
}

static void as_chain(struct arena *a, const char *text, size_t n)
{
	struct codec_chain chain = {0}, again = {0};
	struct err e = ERR_INIT;
	struct buf b, twice;
	int rc = codec_spec_parse(a, text, n, &chain, &e);

	if (rc) {
		require(refused(rc, &e));
		return;
	}
	require(chain.n <= CODEC_CHAIN_MAX);
	buf_init(&b, ARENA_BYTES);
	codec_spec_print(&chain, &b);
	require(buf_ok(&b) && (b.len > 0 || chain.n == 0));
	if (chain.n > 0) { /* of szip as a file has it only the user's parameters are printed */
		require(codec_spec_parse(a, (const char *)b.data, b.len, &again, NULL) == 0);
		buf_init(&twice, ARENA_BYTES);
		codec_spec_print(&again, &twice);
		require(twice.len == b.len && memcmp(twice.data, b.data, b.len) == 0);
		buf_release(&twice);
	}
	buf_release(&b);
	prepare(a, &chain);
}

static void as_rules(struct arena *a, const char *text)
{
	static const char *const paths[] = {"/v", "/g/v", "/a/b/c", "/*"};
	struct codec_rules rules = {0};
	struct codec_quant_rules quant = {0};
	struct err e = ERR_INIT;
	int rc = codec_rule_add(a, "*,zstd,3", &rules, &e);

	require(rc == 0 && rules.n == 1);
	rc = codec_rule_add(a, text, &rules, &e);
	require(rc ? refused(rc, &e) && rules.n == 1 : rules.n == 2);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		require(codec_rules_for(&rules, paths[i]) != NULL);

	e = (struct err)ERR_INIT;
	rc = codec_quant_rule_add(a, text, &quant, &e);
	require(rc ? refused(rc, &e) && quant.n == 0 : quant.n == 1);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct codec_quant q = codec_quant_for(&quant, paths[i], 4);

		require(q.mode == CODEC_QUANT_NONE || (q.digits >= 1 && q.digits <= 23));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = size < TEXT_MAX ? size : TEXT_MAX;
	char *text = malloc(n + 1);
	struct arena a;

	require(text != NULL);
	codec_plugins_off();
	memcpy(text, data, n);
	text[n] = '\0';
	arena_init(&a, ARENA_BYTES);
	as_chain(&a, text, n);
	as_rules(&a, text);
	arena_release(&a);
	free(text);
	return 0;
}
