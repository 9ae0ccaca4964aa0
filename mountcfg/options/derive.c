/* SPDX-License-Identifier: BSD-3-Clause */
/* derive.c - options that depend on the command: the view of a copy, by its name or an option; and
 * those of `serve`. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/core/endings.h"
#include "base/core/str.h"
#include "base/os/url.h"
#include "mountcfg/address/address.h"
#include "mountcfg/options/option_table.h"

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

/* reads - a configuration's rw does not apply to commands that only read. */
static void reads(struct cfg *cfg)
{
	if (cfg_from_at(cfg, "rw") < CFG_AT_NAMED && cfg_from_at(cfg, "create") < CFG_AT_NAMED)
		cfg->write.rw = cfg->write.create = false;
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

int cfg_settle_serve(struct cfg *cfg, struct err *e)
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

int cfg_settle_convert(struct cfg *cfg, struct err *e)
{
	const char *kind = cfg->view == CFG_VIEW_CLASSIC ? "classic netCDF" : "netCDF-4";
	const bool remote = url_is(cfg->out), by_name = cfg->view == CFG_VIEW_AUTO,
		   tree = cfg_from_at(cfg, "zarr_format") >= CFG_AT_NAMED ||
			  cfg_from_at(cfg, "shards") >= CFG_AT_NAMED ||
			  cfg_from_at(cfg, "mode") >= CFG_AT_NAMED;

	reads(cfg);
	if (cfg->write.rw)
		return err_set(e, -EINVAL,
			       "convert: leave out rw and create: they are for mounts");
	if (cfg_from_at(cfg, "chunks") >= CFG_AT_NAMED)
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
