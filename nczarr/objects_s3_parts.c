/* objects_s3_parts.c - objects that are too large to be sent at once: begun, sent in parts, and there
 * only when all of them are. */
#include "nczarr/s3_int.h"

#include <errno.h>
#include <string.h>

int s3_put_parts(struct s3 *s NZ_UNUSED, const char *key, const void *data NZ_UNUSED,
		 int fd NZ_UNUSED, uint64_t off NZ_UNUSED, uint64_t len NZ_UNUSED,
		 const struct object_if *cond NZ_UNUSED, struct object_info *ret NZ_UNUSED,
		 struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "'%.200s': objects above 64 MiB are not written yet",
		       key);
}
