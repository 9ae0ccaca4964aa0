/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_zarr.c - a Zarr tree of any objects, in memory: documents of Zarr v2, NCZarr and Zarr v3 by
 * themselves and consolidated, keys of chunks, chunks, indexes of shards.
 *
 * Input: a byte of options, then objects as damage.h packs them. Properties: model.h's; and, for
 * one input in eight, look.h's of one view.
 *
 * max_len: 8192
 *
 *   make fuzz TIME=60 FUZZ=zarr */
#include "base/observe/log.h"
#include "tests/fuzz/damage.h"
#include "nczarr/store/store.h"
#include "tests/unit/nczarr/store_mem.h"
#include "tests/fuzz/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

enum { KEEP_GOING = 1, VIEW = 0x0e, VIEW_IF = 0x0e, AS_FILE = 16, FORM = 0xe0 };

static void with_views(struct source *s, uint8_t how)
{
	struct look sum = {0};

	if (how & AS_FILE)
		look_nc(s, how >> 5, true, &sum);
	else
		look_tree(s, how >> 5, true, &sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source_options opts = look_options();
	struct store *store = store_mem_new();
	struct source *s = NULL;
	struct err e = ERR_INIT;
	struct tree t;

	look_require(store != NULL);
	if (size == 0) {
		store_close(store);
		return 0;
	}
	log_init(LOG_ERROR, false);
	tree_unpack(data + 1, size - 1, &t);
	for (size_t i = 0; i < t.n; i++)
		if (store_key_ok(t.o[i].key))
			look_require(store_mem_put(store, t.o[i].key, t.o[i].body.p,
						   t.o[i].body.n) == 0);
	tree_release(&t);
	opts.keep_going = data[0] & KEEP_GOING;
	if (zarr_store_open(store, "fuzz", &opts, &s, &e) == 0) {
		model_look(s, true);
		if ((data[0] & VIEW) == VIEW_IF)
			with_views(s, data[0]);
		source_close(s);
	} else {
		look_require(e.msg[0] && e.code < 0);
	}
	store_close(store);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct dice d = dice_of(seed, size);
	struct tree t;
	size_t n;

	if (size == 0 || max < 2)
		return size;
	tree_unpack(data + 1, size - 1, &t);
	if (dice_below(&d, 4) == 0)
		data[0] = (uint8_t)dice_below(&d, 256);
	for (uint64_t i = 1 + dice_below(&d, 3); i > 0; i--)
		damage_tree(&d, &t);
	n = tree_pack(&t, data + 1, max - 1);
	tree_release(&t);
	return n + 1;
}
