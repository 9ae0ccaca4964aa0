/* SPDX-License-Identifier: BSD-3-Clause */
/* settle.c - derives and checks options after all of them are known: those that depend on others,
 * and on the command. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/core/endings.h"
#include "base/core/str.h"
#include "base/core/utf8.h"
#include "base/observe/log.h"
#include "base/os/url.h"
#include "mountcfg/address/address.h"
#include "mountcfg/options/option_table.h"

#define REMOTE_MIN ((uint64_t)1 << 20) /* least memory for fetched bytes */

/* asked - true if an option was given for this mount, not for all or many: only then a conflict is
 * an error. */
static bool asked(const struct cfg *cfg, const char *name)
{
	return cfg_from_at(cfg, name) >= CFG_AT_NAMED;
}

static bool has_mount_option(const struct cfg *cfg, const char *name)
{
	for (size_t i = 0; i < cfg->fuse_opts.n; i++)
		if (strcmp(cfg->fuse_opts.v[i], name) == 0)
			return true;
	return false;
}

/* settle_ro - ro and rw cancel each other: the one with higher precedence applies; at equal
 * precedence they are in conflict. */
static int settle_ro(struct cfg *cfg, struct err *e)
{
	const int rw = cfg_from_at(cfg, "rw"), create = cfg_from_at(cfg, "create");
	const int writes = rw > create || !cfg->write.create ? rw : create;

	cfg->write.rw = cfg->write.rw || cfg->write.create;
	if (!cfg->write.rw || !has_mount_option(cfg, "ro"))
		return 0;
	if (cfg_from_at(cfg, "ro") == writes)
		return err_set(e, -EINVAL, "-o ro: conflicts with %s: leave out one of them",
			       cfg->write.create ? "create" : "rw");
	if (cfg_from_at(cfg, "ro") > writes)
		cfg->write.rw = cfg->write.create = false;
	else
		cfg_drop_mount_option(cfg, "ro", 2);
	return 0;
}

/* settle_writing - check options that only writable mounts have. */
static int settle_writing(struct cfg *cfg, struct err *e)
{
	static const char *const only_rw[] = {"new_files",  "chunks",       "consolidated",
					      "stage_size", "commit_delay", "root"};
	int rc = settle_ro(cfg, e), decided = cfg_from_at(cfg, "ro");

	/* precedence of the decision against rw: options below it were meant for other mounts */
	if (cfg_from_at(cfg, "rw") > decided)
		decided = cfg_from_at(cfg, "rw");
	for (size_t i = 0; i < ARRAY_LEN(only_rw) && rc == 0; i++)
		if (!cfg->write.rw && cfg->command == CFG_MOUNT && asked(cfg, only_rw[i]) &&
		    cfg_from_at(cfg, only_rw[i]) >= decided)
			rc = err_set(e, -EINVAL, "-o %s: only with rw", only_rw[i]);
	return rc;
}

/* settle_root - NAME of -o root is one name. */
static int settle_root(const struct cfg *cfg, struct err *e)
{
	const char *s = cfg->write.root;

	if (s && (!*s || strchr(s, '/') || strcmp(s, ".") == 0 || strcmp(s, "..") == 0 ||
		  strlen(s) > 255 || !utf8_ok(s, strlen(s))))
		return err_set(e, -EINVAL, "-o root: must be the name of a directory, such as "
					   "model.zarr");
	return 0;
}

/* settle_remote - set the cache's defaults, and check names that become parts of host names. */
static int settle_remote(struct cfg *cfg, struct err *e)
{
	if (cfg->remote.region && !s3_region_ok(cfg->remote.region))
		return err_set(e, -EINVAL,
			       "-o region: not the name of a region, such as us-east-1");
	if (!cfg->remote.cache_dir && asked(cfg, "disk_cache_size"))
		return err_set(e, -EINVAL, "-o disk_cache_size: only with cache_dir");
	return 0;
}

/* settle_memory - set the sizes that are shares of memory=. */
static void settle_memory(struct cfg *cfg)
{
	cfg->limits.meta_size = cfg->limits.memory / 2;
	cfg->limits.index_size = cfg->limits.memory / 4;
	cfg->limits.image_size = cfg->limits.memory / 8;
	cfg->limits.write_size = cfg->limits.memory / 32;
	if (!cfg_said(cfg, "cache_size"))
		cfg->limits.cache_size = cfg->limits.memory / 32;
	if (!cfg_said(cfg, "remote_cache_size"))
		cfg->remote.cache_size =
			cfg->limits.memory / 16 < REMOTE_MIN ? REMOTE_MIN : cfg->limits.memory / 16;
	if (!cfg_said(cfg, "prefetch_size"))
		cfg->remote.prefetch_size = cfg->limits.memory / 64;
}

/* settle_format - choose the version of Zarr, which several options imply: the option with the
 * highest precedence applies. */
static int settle_format(struct cfg *cfg, struct err *e)
{
	const int format = cfg_from_at(cfg, "zarr_format"), mode = cfg_from_at(cfg, "mode");
	const int shards = cfg->zarr.shard_size ? cfg_from_at(cfg, "shards") : CFG_AT_BUILTIN;
	int three = shards > format ? shards : format;

	if (cfg->zarr.shard_size && !cfg->zarr.zarr3 && shards == format)
		return err_set(e, -EINVAL,
			       "-o shards: Zarr v2 has no shards: leave out zarr_format=2");
	if (cfg->zarr.shard_size && !cfg->zarr.zarr3 && shards < format)
		cfg->zarr.shard_size = 0;
	cfg->zarr.zarr3 = cfg->zarr.zarr3 || cfg->zarr.shard_size > 0;
	if (cfg->zarr.zarr3 && cfg->zarr.mode == CFG_MODE_NCZARR) {
		if (three == mode)
			return err_set(e, -EINVAL,
				       "-o mode=nczarr: only with zarr_format=2: use mode=zarr "
				       "with Zarr v3");
		if (three > mode)
			cfg->zarr.mode = CFG_MODE_ZARR;
		else
			cfg->zarr.zarr3 = false, cfg->zarr.shard_size = 0;
	}
	if (!cfg->zarr.zarr3 && asked(cfg, "chunk_key_encoding"))
		return err_set(e, -EINVAL, "-o chunk_key_encoding: only with zarr_format=3");
	return 0;
}

/* settle_rechunk - chunks of other shapes are read-only: of rechunk and rw, the one with higher
 * precedence applies; at equal precedence they are in conflict. */
static int settle_rechunk(struct cfg *cfg, struct err *e)
{
	const int rule = cfg_from_at(cfg, "rechunk"), rw = cfg_from_at(cfg, "rw");
	const int create = cfg_from_at(cfg, "create"), writes = rw > create ? rw : create;

	if (cfg->rules.rechunk.n == 0 || !cfg->write.rw || cfg->command != CFG_MOUNT)
		return 0;
	if (rule == writes)
		return err_set(e, -EINVAL,
			       "-o rechunk: chunks of other shapes are read-only: leave out %s%s",
			       cfg->write.create ? "create" : "rw",
			       cfg->write.create
				       ? ", and use chunks= for the chunks of new variables"
				       : ", or rechunk");
	if (rule > writes)
		cfg->write.rw = cfg->write.create = false;
	else
		cfg_strings_drop(&cfg->rules.rechunk);
	return 0;
}

/* refuse_writes - reject rw and create of a mount with an option that cannot have them, and name
 * the place of both. */
static int refuse_writes(const struct cfg *cfg, const char *why, const char *instead,
			 struct err *e)
{
	const char *writes = cfg->write.create ? "create" : "rw";

	if (!cfg->write.rw || cfg->command != CFG_MOUNT)
		return 0;
	if (cfg_from_at(cfg, writes) == CFG_AT_LINE)
		return err_set(e, -EINVAL, "-o %s: leave out %s, or %s", why, writes, instead);
	return err_set(e, -EINVAL, "-o %s: leave out %s of %s (-o %s=no), or %s", why, writes,
		       cfg_where(cfg, writes), writes, instead);
}

/* settle_concat - concatenated files are read-only. */
static int settle_concat(const struct cfg *cfg, struct err *e)
{
	if (!cfg->concat.dim &&
	    (asked(cfg, "concat_compat") || asked(cfg, "concat_index")))
		return err_set(e, -EINVAL, "-o %s: only with concat=DIM",
			       asked(cfg, "concat_compat") ? "concat_compat"
								   : "concat_index");
	if (cfg->concat.dim && !*cfg->concat.dim)
		return err_set(e, -EINVAL,
			       "-o concat: name the dimension along which the files are joined: "
			       "concat=time");
	return cfg->concat.dim ? refuse_writes(cfg, "concat: joined files are read-only",
					   "mount one of the files", e)
			   : 0;
}

/* settle_classic - a virtual classic file is read-only, and has a version. */
static int settle_classic(const struct cfg *cfg, struct err *e)
{
	if (cfg->view != CFG_VIEW_CLASSIC && cfg->classic_format &&
	    asked(cfg, "classic_format"))
		return err_set(e, -EINVAL, "-o classic_format: only with view=classic");
	return cfg->view == CFG_VIEW_CLASSIC
		       ? refuse_writes(cfg, "view=classic is read-only",
				       "write through view=nc", e)
		       : 0;
}

/* ---- commands ---- */

/* reads - a configuration's rw does not apply to commands that only read. */
static void reads(struct cfg *cfg)
{
	if (!asked(cfg, "rw") && !asked(cfg, "create"))
		cfg->write.rw = cfg->write.create = false;
}

/* unless_asked - defaults in a configuration that apply to mounts do not apply to references. */
static void unless_asked(struct cfg *cfg)
{
	reads(cfg);
	if (!asked(cfg, "zarr_format") && !asked(cfg, "shards") && cfg->zarr.zarr3) {
		cfg->zarr.zarr3 = cfg->zarr.nested = cfg->zarr.strict_json = false;
		cfg->zarr.shard_size = 0;
	}
	if (!asked(cfg, "dimension_separator"))
		cfg->zarr.nested = false;
	if (!asked(cfg, "mode"))
		cfg->zarr.mode = CFG_MODE_ZARR;
	if (!asked(cfg, "view"))
		cfg->view = CFG_VIEW_AUTO;
	if (!asked(cfg, "rechunk"))
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
	if (!asked(cfg, "filter")) {
		cfg->rules.filter = CFG_FILTER_KEEP;
		cfg_strings_drop(&cfg->rules.filters);
	}
	return 0;
}

/* remote_file - reject a remote copy with the name of a file: it is a Zarr store of objects, but
 * would be opened as a file. */
static int remote_file(const char *out, struct err *e)
{
	struct address a;
	int rc = address_parse(out, &a, e);

	if (rc < 0)
		return rc;
	rc = a.what == ADDRESS_FILE
		     ? err_set(e, -EINVAL,
			       "convert: a remote copy is a Zarr store, but '%s' would be opened "
			       "as a file: let its name end in .zarr, or name a local file and "
			       "upload it",
			       a.shown)
		     : 0;
	address_release(&a);
	return rc;
}

/* origin_ok - Spec: Fetch standard, "Access-Control-Allow-Origin": "*", "null", or the origin of a
 * page, which has no path. */
static bool origin_ok(const char *text)
{
	const char *host = strstr(text, "://"), *port;
	size_t n;

	if (strcmp(text, "*") == 0 || strcmp(text, "null") == 0 || strcmp(text, "none") == 0)
		return true;
	if (!host || host == text ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != (size_t)(host - text))
		return false;
	host += 3;
	n = host[0] == '[' ? strspn(host + 1, "0123456789abcdefABCDEF:.") + 2
			   : strcspn(host, ":/?#@,; []");
	if (n > strlen(host) || (host[0] == '[' && (n < 4 || host[n - 1] != ']')))
		return false;
	port = host + n;
	if (*port == ':')
		port += 1 + strspn(port + 1, "0123456789");
	return n > 0 && !*port && port[-1] != ':';
}

/* check_place - check the address and port of `serve`. */
static int check_place(const struct cfg *cfg, struct err *e)
{
	unsigned char room[sizeof(struct in6_addr)];
	uint64_t port;

	if (cfg->serve.bind && strcmp(cfg->serve.bind, "localhost") != 0 &&
	    inet_pton(AF_INET, cfg->serve.bind, room) != 1 &&
	    inet_pton(AF_INET6, cfg->serve.bind, room) != 1)
		return err_set(e, -EINVAL,
			       "--bind '%s': not an address: use one of this machine, such as "
			       "127.0.0.1 or ::1, or 0.0.0.0 for all",
			       cfg->serve.bind);
	if (cfg->serve.port &&
	    str_u64(cfg->serve.port, strlen(cfg->serve.port), UINT16_MAX, &port) < 0)
		return err_set(e, -EINVAL,
			       "-p '%s': not a port: use a number up to 65535; 0: any free port",
			       cfg->serve.port);
	return 0;
}

static int settle_serve(struct cfg *cfg, struct err *e)
{
	reads(cfg);
	if (cfg->write.rw || cfg->write.create)
		return err_set(e, -EINVAL,
			       "serve: leave out rw and create: it only reads SOURCE");
	if (cfg->serve.origin && !origin_ok(cfg->serve.origin))
		return err_set(e, -EINVAL,
			       "--origin '%s': write *, none, or the origin of the pages that may "
			       "read it: https://host or http://host:port",
			       cfg->serve.origin);
	return check_place(cfg, e);
}

static int settle_convert(struct cfg *cfg, struct err *e)
{
	const char *kind = cfg->view == CFG_VIEW_CLASSIC ? "classic netCDF" : "netCDF-4";
	const bool remote = url_is(cfg->out), by_name = cfg->view == CFG_VIEW_AUTO,
		   tree = asked(cfg, "zarr_format") || asked(cfg, "shards") ||
			  asked(cfg, "mode");

	reads(cfg);
	if (cfg->write.rw)
		return err_set(e, -EINVAL,
			       "convert: leave out rw and create: they are for mounts");
	if (asked(cfg, "chunks"))
		return err_set(e, -EINVAL,
			       "convert: chunks= is for data that is written into a mount: for a "
			       "copy in other chunks use rechunk=");
	if (by_name)
		cfg->view = ending_is_netcdf4(ending_of(cfg->out)) && !remote ? CFG_VIEW_NC
									      : CFG_VIEW_ZARR;
	if (cfg->view != CFG_VIEW_ZARR && remote)
		return err_set(e, -EINVAL,
			       "convert: a %s file can only be written locally: name a "
			       "local file and upload it",
			       kind);
	if (remote && remote_file(cfg->out, e) < 0)
		return e ? e->code : -EINVAL;
	if (cfg->view != CFG_VIEW_ZARR && tree && !by_name)
		return err_set(e, -EINVAL,
			       "convert: zarr_format, shards and mode are for Zarr stores, but "
			       "with view=%s the copy is a %s file: leave out one of them",
			       cfg->view == CFG_VIEW_CLASSIC ? "classic" : "nc", kind);
	if (cfg->view != CFG_VIEW_ZARR && tree)
		return err_set(
			e, -EINVAL,
			"convert: zarr_format, shards and mode are for Zarr stores, but the name "
			"'%s' is that of a %s file: name a directory or a .zip, or add "
			"view=zarr",
			cfg->out, kind);
	return 0;
}

/* ---- all ---- */

/* settle_defaults - set the defaults that depend on other options. */
static void settle_defaults(struct cfg *cfg)
{
	if (!cfg_said(cfg, "dimension_separator"))
		cfg->zarr.nested = cfg->zarr.zarr3 && !cfg->zarr.v2_keys;
	/* only Python reads a zarr.json with a bare NaN, and attributes are in it */
	if (!cfg_said(cfg, "json_nan"))
		cfg->zarr.strict_json = cfg->zarr.zarr3;
}

static int settle_command(struct cfg *cfg, struct err *e)
{
	switch (cfg->command) {
	case CFG_REFS:
		return settle_refs(cfg, e);
	case CFG_CONVERT:
		return settle_convert(cfg, e);
	case CFG_SERVE:
		return settle_serve(cfg, e);
	case CFG_LOG:
		return cfg->out ? log_check(cfg->out, e) : 0;
	default:
		return 0;
	}
}

int cfg_settle(struct cfg *cfg, struct err *e)
{
	int rc = 0;

	/* with allow_other only the kernel checks permissions */
	cfg_from_set(cfg, CFG_AT_LINE, "with allow_other");
	if (has_mount_option(cfg, "allow_other") || has_mount_option(cfg, "allow_root"))
		rc = cfg_set_options(cfg, "default_permissions", e);
	rc = rc ? rc : settle_writing(cfg, e);
	rc = rc ? rc : settle_concat(cfg, e);
	rc = rc ? rc : settle_classic(cfg, e);
	rc = rc ? rc : settle_rechunk(cfg, e);
	rc = rc ? rc : settle_root(cfg, e);
	rc = rc ? rc : settle_remote(cfg, e);
	settle_memory(cfg);
	rc = rc ? rc : settle_format(cfg, e);
	if (rc < 0)
		return rc;
	settle_defaults(cfg);
	return settle_command(cfg, e);
}
