/* chunk_map.c - which objects of a grid there are.
 *
 * What is found comes in any order. It is collected in a list, which turns into a bitmap or an
 * array over the whole grid as soon as that is no larger; a grid that is small anyway begins so.
 * Sizes take 32 bits until one does not fit. A list that stays one is sorted at the end. */
#include "nczarr/source/chunks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/observe/metrics.h"

#define SMALL_FORM ((uint64_t)64 << 10) /* bytes that nobody saves by a list */
#define NONE32 UINT32_MAX
#define ODD32 (UINT32_MAX - 1)
#define NONE64 (UINT64_MAX - 1) /* ZR_ODD is the one above */

void zr_table_init(struct zr_table *t, uint64_t total, bool sized, uint64_t max_bytes)
{
	*t = (struct zr_table){
		.total = total, .sized = sized, .sorted = true, .max_bytes = max_bytes};
}

void zr_table_release(struct zr_table *t)
{
	metrics_gauge_add(G_MEM_INDEX, -(int64_t)t->counted);
	t->counted = 0;
	free(t->bits);
	free(t->small);
	free(t->large);
	free(t->list);
	t->bits = NULL;
	t->small = NULL;
	t->large = NULL;
	t->list = NULL;
}

static int too_large(const struct zr_table *t, struct err *e)
{
	return err_set(e, -ERANGE,
		       "the table of %" PRIu64 " chunks of %" PRIu64
		       " would exceed index_size=%" PRIu64 " bytes",
		       t->n + 1, t->total, t->max_bytes);
}

/* full_bytes - of the form that covers the whole grid. */
static uint64_t full_bytes(const struct zr_table *t)
{
	if (!t->sized)
		return t->total / 64 * 8 + 8;
	return t->total > UINT64_MAX / 4 ? UINT64_MAX : t->total * 4;
}

/* widen - sizes of 64 bits from now on. */
static int widen(struct zr_table *t, struct err *e)
{
	if (t->total > t->max_bytes / 12) /* both are there for a moment */
		return too_large(t, e);
	t->large = alloc_array((size_t)t->total, sizeof(*t->large));
	if (!t->large)
		return err_nomem(e);
	for (uint64_t i = 0; i < t->total; i++) {
		uint32_t v = t->small[i];

		t->large[i] = v == NONE32 ? NONE64 : v == ODD32 ? ZR_ODD : v;
	}
	free(t->small);
	t->small = NULL;
	return 0;
}

static int put_full(struct zr_table *t, uint64_t linear, uint64_t size, struct err *e)
{
	if (t->bits) {
		t->bits[linear / 64] |= (uint64_t)1 << linear % 64;
		return 0;
	}
	if (t->small && size >= ODD32 && size != ZR_ODD) {
		int rc = widen(t, e);

		if (rc)
			return rc;
	}
	if (t->small)
		t->small[linear] = size == ZR_ODD ? ODD32 : (uint32_t)size;
	else
		t->large[linear] = size == NONE64 ? ZR_ODD : size;
	return 0;
}

/* make_full - the form that covers the grid, with what the list has. */
static int make_full(struct zr_table *t, struct err *e)
{
	struct zr_entry *list = t->list;
	int rc = 0;

	if (!t->sized) {
		t->bits = alloc_array((size_t)full_bytes(t) / 8, 8);
	} else {
		t->small = malloc(t->total ? (size_t)t->total * 4 : 1);
		if (t->small)
			memset(t->small, 0xff, (size_t)t->total * 4);
	}
	if (!t->bits && !t->small)
		return err_nomem(e);
	t->list = NULL;
	t->cap = 0;
	for (uint64_t i = 0; !rc && i < t->n; i++)
		rc = put_full(t, list[i].linear, list[i].size, e);
	free(list);
	return rc;
}

/* make_room - for one more: in the list, or by giving the list up. */
static int make_room(struct zr_table *t, struct err *e)
{
	uint64_t have = t->cap * sizeof(*t->list), full = full_bytes(t);
	uint64_t want = t->cap ? 2 * have : 64 * sizeof(*t->list), most;
	struct zr_entry *grown;

	if ((full <= SMALL_FORM || full <= want) && full <= t->max_bytes &&
	    have <= t->max_bytes - full && full <= SIZE_MAX / 2)
		return make_full(t, e);
	most = have <= t->max_bytes ? t->max_bytes - have : 0; /* both are there for a moment */
	want = u64_min(want, most);
	if (want / sizeof(*t->list) <= t->cap)
		return too_large(t, e);
	grown = realloc(t->list, (size_t)want);
	if (!grown)
		return err_nomem(e);
	t->list = grown;
	t->cap = (size_t)want / sizeof(*t->list);
	return 0;
}

int zr_table_add(struct zr_table *t, uint64_t linear, uint64_t size, struct err *e)
{
	bool full = t->bits || t->small || t->large;
	int rc;

	if (!full && t->n == t->cap) {
		rc = make_room(t, e);
		if (rc)
			return rc;
		full = !t->list;
	}
	if (full) {
		rc = put_full(t, linear, size, e);
		if (rc)
			return rc;
	} else {
		t->sorted = t->sorted && (t->n == 0 || t->list[t->n - 1].linear < linear);
		t->list[t->n] = (struct zr_entry){linear, size};
	}
	t->n++;
	return 0;
}

static int by_linear(const void *a, const void *b)
{
	uint64_t x = ((const struct zr_entry *)a)->linear;
	uint64_t y = ((const struct zr_entry *)b)->linear;

	return x < y ? -1 : x > y;
}

/* fit_list - in order, and as long as it has to be. */
static void fit_list(struct zr_table *t)
{
	struct zr_entry *fit;

	if (!t->sorted)
		qsort(t->list, (size_t)t->n, sizeof(*t->list), by_linear);
	t->sorted = true;
	fit = realloc(t->list, (size_t)t->n * sizeof(*t->list));
	t->list = fit ? fit : t->list;
	t->cap = (size_t)t->n;
}

void zr_table_end(struct zr_table *t)
{
	if (t->list)
		fit_list(t);
	t->counted = t->list               ? t->cap * sizeof(*t->list)
		     : t->large            ? t->total * sizeof(*t->large)
		     : t->bits || t->small ? full_bytes(t)
					   : 0;
	metrics_gauge_add(G_MEM_INDEX, (int64_t)t->counted);
}

/* lower - place of the first entry at or after linear; n when there is none. */
static size_t lower(const struct zr_table *t, uint64_t linear)
{
	size_t from = 0, to = (size_t)t->n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (t->list[mid].linear < linear)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

bool zr_table_get(const struct zr_table *t, uint64_t linear, uint64_t *ret_size)
{
	uint64_t size = 0;
	size_t at;

	if (t->n == 0 || linear >= t->total)
		return false;
	if (t->bits) {
		if ((t->bits[linear / 64] >> linear % 64 & 1) == 0)
			return false;
	} else if (t->small) {
		uint32_t v = t->small[linear];

		if (v == NONE32)
			return false;
		size = v == ODD32 ? ZR_ODD : v;
	} else if (t->large) {
		size = t->large[linear];
		if (size == NONE64)
			return false;
	} else {
		at = lower(t, linear);
		if (at == t->n || t->list[at].linear != linear)
			return false;
		size = t->list[at].size;
	}
	if (ret_size)
		*ret_size = t->sized ? size : 0;
	return true;
}

static bool next_bit(const struct zr_table *t, uint64_t from, uint64_t *ret)
{
	uint64_t at = from / 64, end = (t->total + 63) / 64;
	uint64_t word = t->bits[at] & ~(uint64_t)0 << from % 64;

	while (word == 0) {
		if (++at >= end)
			return false;
		word = t->bits[at];
	}
	*ret = at * 64 + (uint64_t)__builtin_ctzll(word);
	return true;
}

bool zr_table_next(const struct zr_table *t, uint64_t from, uint64_t *ret)
{
	size_t at;

	if (t->n == 0 || from >= t->total)
		return false;
	if (t->bits)
		return next_bit(t, from, ret);
	if (t->list) {
		at = lower(t, from);
		if (at == t->n)
			return false;
		*ret = t->list[at].linear;
		return true;
	}
	while (from < t->total &&
	       (t->small ? t->small[from] == NONE32 : t->large[from] == NONE64))
		from++;
	*ret = from;
	return from < t->total;
}
