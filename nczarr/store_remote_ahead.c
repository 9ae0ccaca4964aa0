/* store_remote_ahead.c - fetching early. */
#include "nczarr/store_remote_int.h"

void early_want(struct rstore *st, const struct store_range *r, size_t n)
{
	(void)st, (void)r, (void)n;
}

void early_wake(struct rcache *c)
{
	(void)c;
}

void early_forget(struct rstore *st)
{
	(void)st;
}

void early_free(struct rcache *c)
{
	(void)c;
}
