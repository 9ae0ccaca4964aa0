/* aws_http.c - keys that a service gives out: to containers, to instances (IMDSv2), by STS. */
#include "nczarr/aws_int.h"

#include <errno.h>

int aws_from_container(const struct aws_options *o NZ_UNUSED, struct aws_keys **ret,
		       struct err *e NZ_UNUSED)
{
	*ret = NULL;
	return 0;
}

int aws_from_instance(const struct aws_options *o NZ_UNUSED, struct aws_keys **ret,
		      struct err *e NZ_UNUSED)
{
	*ret = NULL;
	return 0;
}

int aws_from_sts(const struct aws_options *o NZ_UNUSED, const struct aws_role *role NZ_UNUSED,
		 struct aws_keys **ret, struct err *e)
{
	*ret = NULL;
	return err_set(e, -EOPNOTSUPP, "roles are not there yet");
}
