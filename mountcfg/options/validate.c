/* SPDX-License-Identifier: BSD-3-Clause */
/* validate.c - derives and checks options for the command after all of them are known. */
#include <errno.h>
#include <string.h>

#include "base/observe/log.h"
#include "mountcfg/options/option_table.h"

/* implied - with allow_other only the kernel checks permissions. */
static int implied(struct cfg *cfg, struct err *e)
{
	cfg_from_set(cfg, CFG_AT_LINE, "with allow_other");
	for (size_t i = 0; i < cfg->fuse_opts.n; i++)
		if (strcmp(cfg->fuse_opts.v[i], "allow_other") == 0 ||
		    strcmp(cfg->fuse_opts.v[i], "allow_root") == 0)
			return cfg_set_options(cfg, "default_permissions", e);
	return 0;
}

/* unless_asked - defaults in a configuration that apply to mounts do not apply to references. */
static void unless_asked(struct cfg *cfg)
{
	if (cfg_from_at(cfg, "rw") < CFG_AT_NAMED && cfg_from_at(cfg, "create") < CFG_AT_NAMED)
		cfg->write.rw = cfg->write.create = false;
	if (cfg_from_at(cfg, "zarr_format") < CFG_AT_NAMED &&
	    cfg_from_at(cfg, "shards") < CFG_AT_NAMED && cfg->zarr.zarr3) {
		cfg->zarr.zarr3 = cfg->zarr.nested = cfg->zarr.strict_json = false;
		cfg->zarr.shard_size = 0;
	}
	if (cfg_from_at(cfg, "dimension_separator") < CFG_AT_NAMED)
		cfg->zarr.nested = false;
	if (cfg_from_at(cfg, "mode") < CFG_AT_NAMED)
		cfg->zarr.mode = CFG_MODE_ZARR;
	if (cfg_from_at(cfg, "view") < CFG_AT_NAMED)
		cfg->view = CFG_VIEW_AUTO;
	if (cfg_from_at(cfg, "rechunk") < CFG_AT_NAMED)
		cfg_strings_drop(&cfg->rules.rechunk);
}

/* settle_refs - references describe the chunks of a Zarr v2 store as they are stored. */
static int settle_refs(struct cfg *cfg, struct err *e)
{
	unless_asked(cfg);
	if (cfg->write.rw || cfg->zarr.zarr3 || cfg->zarr.mode == CFG_MODE_NCZARR ||
	    cfg->view == CFG_VIEW_NC || cfg->view == CFG_VIEW_CLASSIC)
		return err_set(e, -EINVAL,
			       "refs: references describe a read-only Zarr v2 store without "
			       "NCZarr's metadata: leave out rw, zarr_format=3, shards, "
			       "mode=nczarr, view=nc and view=classic");
	cfg->view = CFG_VIEW_ZARR;
	if (cfg_from_at(cfg, "filter") < CFG_AT_NAMED) {
		cfg->rules.filter = CFG_FILTER_KEEP;
		cfg_strings_drop(&cfg->rules.filters);
	}
	return 0;
}

int cfg_settle_all(struct cfg *cfg, struct err *e)
{
	int rc = implied(cfg, e);

	if (rc == 0)
		rc = cfg_settle(cfg, e);
	if (rc == 0 && cfg->command == CFG_REFS)
		rc = settle_refs(cfg, e);
	if (rc == 0 && cfg->command == CFG_CONVERT)
		rc = cfg_settle_convert(cfg, e);
	if (rc == 0 && cfg->command == CFG_SERVE)
		rc = cfg_settle_serve(cfg, e);
	if (rc == 0 && cfg->command == CFG_LOG && cfg->out)
		rc = log_check(cfg->out, e);
	return rc;
}
