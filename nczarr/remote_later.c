/* remote_later.c - stands in for parts of remote access that are not there yet; each of these gives
 * way to the real one. */
#include <errno.h>

#include "nczarr/remote_int.h"

#define LATER __attribute__((weak))

LATER int net_new(const struct net_options *opts, struct net **ret, struct err *e)
{
	(void)opts;
	(void)ret;
	return err_set(e, -EOPNOTSUPP, "requests to other machines are not built in");
}

LATER void net_free(struct net *n)
{
	(void)n;
}

LATER void net_stop(struct net *n)
{
	(void)n;
}

LATER void net_get_counts(struct net *n, struct net_counts *ret)
{
	(void)n;
	*ret = (struct net_counts){0};
}

LATER int objects_http_open(struct net *net, const struct remote_options *opts,
			    const struct remote_target *t, struct objects **ret, struct err *e)
{
	(void)net;
	(void)opts;
	(void)t;
	(void)ret;
	return err_set(e, -EOPNOTSUPP, "web servers are not built in");
}

LATER int objects_s3_open(struct net *net, const struct remote_options *opts,
			  const struct remote_target *t, struct objects **ret, struct err *e)
{
	(void)net;
	(void)opts;
	(void)t;
	(void)ret;
	return err_set(e, -EOPNOTSUPP, "S3 is not built in");
}

LATER int rcache_new(const struct remote_options *opts, struct rcache **ret, struct err *e)
{
	(void)opts;
	(void)ret;
	return err_set(e, -EOPNOTSUPP, "the cache is not built in");
}

LATER void rcache_free(struct rcache *c)
{
	(void)c;
}

LATER int store_remote_open(struct rcache *c, struct objects *o, const char *name,
			    struct store **ret, struct err *e)
{
	(void)c;
	(void)o;
	(void)name;
	(void)ret;
	return err_set(e, -EOPNOTSUPP, "the store is not built in");
}
