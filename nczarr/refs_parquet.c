/* refs_parquet.c */
#include "nczarr/refs_int.h"

#include <errno.h>

int refs_parquet(struct source *s NZ_UNUSED, struct view *v NZ_UNUSED,
		 const struct refs_options *opts NZ_UNUSED, const char *dir NZ_UNUSED,
		 struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "not yet");
}
