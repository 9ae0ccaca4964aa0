/* delivery_text.c - one word for each thing. */
#include "translate/chunkio/delivery_text.h"

const char *plan_kind_name(enum plan_kind kind)
{
	static const char *const names[] = {
		[PLAN_PASS] = "pass",     [PLAN_DECODE] = "decode", [PLAN_VLEN] = "vlen",
		[PLAN_FIXED] = "fixed",   [PLAN_HIDE] = "hidden",   [PLAN_ERROR] = "error",
		[PLAN_ENCODE] = "encode",
	};

	return (size_t)kind < ARRAY_LEN(names) ? names[kind] : "?";
}

static const struct {
	const char *name;
	enum metric metric;
} hows[] = {
	[HOW_PASS] = {"pass", M_CHUNK_PASS},       [HOW_HEAD] = {"head", M_CHUNK_HEAD},
	[HOW_FRAME] = {"frame", M_CHUNK_FRAME},    [HOW_FILL] = {"fill", M_CHUNK_FILL},
	[HOW_DECODE] = {"decode", M_CHUNK_DECODE}, [HOW_ENCODE] = {"encode", M_CHUNK_ENCODE},
	[HOW_VLEN] = {"vlen", M_CHUNK_VLEN},       [HOW_FIXED] = {"fixed", M_CHUNK_FIXED},
};

enum chunk_how chunk_how_of(const struct plan *p, const struct way *w)
{
	if (w->fill)
		return HOW_FILL;
	if (w->kind == WAY_RANGE)
		return w->head_len > 0 ? HOW_HEAD : HOW_PASS;
	switch (p->kind) {
	case PLAN_ENCODE:
		return HOW_ENCODE;
	case PLAN_VLEN:
		return HOW_VLEN;
	case PLAN_FIXED:
		return HOW_FIXED;
	case PLAN_PASS:
		return p->chain.n > 0 ? HOW_FRAME : HOW_DECODE;
	default:
		return HOW_DECODE;
	}
}

const char *chunk_how_name(enum chunk_how how)
{
	return hows[how].name;
}

enum metric chunk_how_metric(enum chunk_how how)
{
	return hows[how].metric;
}
