/* sink_zarr_shard.c - chunks that are parts of a shard. */
#include "nczarr/sink_zarr_int.h"

#include <errno.h>

int zs_shard_put(struct zarr_sink *s, uint32_t array, struct zs_array *za,
		 const uint64_t *coords, const uint8_t *p, size_t len, bool drop, struct err *e)
{
	(void)s, (void)array, (void)coords, (void)p, (void)len, (void)drop;
	return err_set(e, -EOPNOTSUPP, "'%.200s': shards", za->key);
}

int zs_shards_write(struct zarr_sink *s, struct err *e)
{
	(void)s, (void)e;
	return 0;
}
