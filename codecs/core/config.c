/* SPDX-License-Identifier: BSD-3-Clause */
/* config.c - parameters of codecs as Zarr documents have them. */
#include "codecs/core/codec_impl.h"

#include <errno.h>
#include <inttypes.h>

/* core_config_found - what a getter said: 1 a value, 0 take the default, negative an error. */
static int core_config_found(int rc, const char *member, const char *wanted, struct err *e)
{
	if (rc == -ENOENT)
		return 0;
	if (rc)
		return err_set(e, -EBADMSG, "'%s' is not %s", member, wanted);
	return 1;
}

int codec_conf_int(const struct codec_conf *conf, const char *member, int64_t missing,
		   int64_t *ret, struct err *e)
{
	int64_t v = 0;
	int rc = core_config_found(conf->integer(conf->arg, member, &v), member,
				   "a whole number", e);

	if (rc < 0)
		return rc;
	*ret = rc ? v : missing;
	return 0;
}

int codec_conf_real(const struct codec_conf *conf, const char *member, double missing,
		    double *ret, struct err *e)
{
	double v = 0;
	int rc = core_config_found(conf->real(conf->arg, member, &v), member, "a number", e);

	if (rc < 0)
		return rc;
	*ret = rc ? v : missing;
	return 0;
}

int codec_conf_text(const struct codec_conf *conf, const char *member, const char *missing,
		    const char **ret, struct err *e)
{
	const char *v = NULL;
	int rc = core_config_found(conf->text(conf->arg, member, &v), member, "a string", e);

	if (rc < 0)
		return rc;
	*ret = rc ? v : missing;
	return 0;
}

int codec_conf_level(const struct codec_conf *conf, const char *member, int32_t lo, int32_t hi,
		     int32_t missing, uint32_t *ret, struct err *e)
{
	int64_t v;
	int rc = codec_conf_int(conf, member, missing, &v, e);

	if (rc)
		return rc;
	v = v < lo ? lo : v > hi ? hi : v;
	*ret = (uint32_t)(int32_t)v;
	return 0;
}

int codec_prepare_level(const struct codec_spec *spec, const char *name, int32_t lo, int32_t hi,
			int32_t missing, uint32_t *params, struct err *e)
{
	int32_t v = spec->n_params > 0 ? (int32_t)spec->params[0] : missing;

	if (spec->n_params > 1)
		return err_set(e, -EINVAL,
			       "%s: %" PRIu32 " parameters given, at most 1 is allowed", name,
			       spec->n_params);
	if (v < lo || v > hi)
		return err_set(e, -EINVAL,
			       "%s: %" PRId32 " is not in the range %" PRId32 " to %" PRId32,
			       name, v, lo, hi);
	params[0] = (uint32_t)v;
	return 0;
}

int32_t codec_level(const struct codec_spec *spec, uint32_t i, int32_t lo, int32_t hi,
		    int32_t missing)
{
	int32_t v = spec->n_params > i ? (int32_t)spec->params[i] : missing;

	return v < lo ? lo : v > hi ? hi : v;
}

uint64_t codec_packed_max(const struct codec_spec *spec NZ_UNUSED, uint64_t n)
{
	uint64_t r;

	return ckd_add(&r, n, n / 4 + 4096) ? 0 : r;
}
