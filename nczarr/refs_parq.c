/* refs_parq.c */
#include "nczarr/store_refs_int.h"

#include <errno.h>

int refs_parq_open(struct store *store NZ_UNUSED, uint64_t max_meta NZ_UNUSED,
		   struct refs_index **ret NZ_UNUSED, struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "not yet");
}
