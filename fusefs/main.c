/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - the program: which formats and views there are, and how options select them. */
#include <errno.h>
#include <fcntl.h>

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/process/child.h"
#include "base/observe/log.h"
#include "base/os/thread.h"
#include "codecs/plugin/plugin.h"
#include "fusefs/cmd/check/check.h"
#include "fusefs/app/fusefs.h"
#include "fusefs/daemon/mounter.h"
#include "fusefs/app/remote.h"
#include "fusefs/write/writable.h"
#include "fusefs/cmd/commands.h"
#include "hdf5view/hdf5view.h"
#include "mountcfg/address/address.h"
#include "nczarr/nczarr.h"
#include "translate/chunkio/chunkio.h"
#include "translate/concat/concat.h"
#include "translate/rechunk/rechunk.h"

static const struct source_ops *const formats[] = {&hdf5_source_ops, &cdf_source_ops,
						   &hdf4_source_ops, &zarr_source_ops,
						   &refs_source_ops};

static uint32_t threads_of(const struct cfg_limits *limits)
{
	/* One processor is left to the reader. With two processors, one thread that decodes ahead
	 * made a reader 1.5 times as fast as two threads did. */
	return limits->decode_threads ? limits->decode_threads
				      : (uint32_t)u64_max(thread_processors(), 2) - 1;
}

/* policy_of - the rules are borrowed from setup, which outlives all views. */
static struct plan_policy policy_of(const struct cfg *cfg, const struct view_request *want)
{
	static const enum plan_filter filters[] = {
		[CFG_FILTER_PORTABLE] = PLAN_PORTABLE,
		[CFG_FILTER_KEEP] = PLAN_KEEP,
		[CFG_FILTER_NONE] = PLAN_NONE,
	};

	return (struct plan_policy){
		.filter = filters[cfg->rules.filter],
		.rules = &want->rules->filters,
		.quant = &want->rules->quants,
		.layouts = &want->rules->layouts,
	};
}

/* io_of - memory and threads for one of `share` views. */
static struct chunkio_options io_of(const struct cfg *cfg, const struct view_request *want)
{
	uint32_t share = want->share;
	uint32_t threads = threads_of(&cfg->limits);

	threads = threads > share ? threads / share : 1;
	return (struct chunkio_options){
		.cache_bytes = cfg->limits.cache_size / share,
		.shared = want->shared,
		.threads = threads,
		.ahead = 2 * threads,
		.verify = cfg->command == CFG_CONVERT,
	};
}

static int main_zarr_view(struct source *s, const struct cfg *cfg,
			  const struct view_request *want, struct view **ret, struct err *e)
{
	struct zarr_view_options opts = {
		.format = cfg->zarr.zarr3 ? 3 : 2,
		.mode = (enum zarr_mode)cfg->zarr.mode, /* writable.c checks it */
		.policy = policy_of(cfg, want),
		.nested = cfg->zarr.nested,
		.v2_keys = cfg->zarr.v2_keys,
		.shard_bytes = cfg->zarr.shard_size,
		.strict_json = cfg->zarr.strict_json,
		.separate = cfg->command == CFG_CONVERT && cfg->zarr.consolidated == 0,
		.io = io_of(cfg, want),
		.max_meta_bytes = cfg->limits.meta_size,
		.id_limit = want->id_limit,
		.bare = want->writable,
	};

	/* netCDF-C as it is distributed has no filter plugins for NCZarr: it decodes no filter */
	if (opts.mode == ZARR_NCZARR && opts.policy.filter == PLAN_PORTABLE)
		opts.policy.filter = PLAN_NONE;
	return zarr_view_open(s, &opts, ret, e);
}

static int main_nc_view(struct source *s, const struct cfg *cfg,
			const struct view_request *want, struct view **ret, struct err *e)
{
	const struct nc_view_options opts = {
		.name = want->name,
		.policy = policy_of(cfg, want),
		.io = io_of(cfg, want),
		.max_image_bytes = cfg->limits.image_size,
		.max_index_bytes = cfg->limits.index_size,
		.build_timeout_ms = (uint64_t)cfg->limits.open_timeout * 1000,
		.keep_going = cfg->hide_bad,
	};

	return nc_view_open(s, &opts, ret, e);
}

static int main_classic_view(struct source *s, const struct cfg *cfg,
			     const struct view_request *want, struct view **ret, struct err *e)
{
	const struct cdf_view_options opts = {
		.name = want->name,
		.format = (enum cdf_format)cfg->classic_format,
		.policy = policy_of(cfg, want),
		.io = io_of(cfg, want),
		.max_meta_bytes = cfg->limits.image_size,
		.keep_going = cfg->hide_bad,
	};

	return cdf_view_open(s, &opts, ret, e);
}

static int view_open(struct source *s, const struct cfg *cfg, const struct view_request *want,
		     struct view **ret, struct err *e)
{
	int rc = !want->nc                        ? main_zarr_view(s, cfg, want, ret, e)
		 : cfg->view == CFG_VIEW_CLASSIC ? main_classic_view(s, cfg, want, ret, e)
						  : main_nc_view(s, cfg, want, ret, e);

	if (rc < 0)
		source_close(s);
	return rc;
}

/* name_virtual - name of the virtual file, also if the path ends in "." or "..". */
static void name_virtual(const char *path, char out[NAME_BYTES])
{
	const char *base = strrchr(path, '/');
	auto_free char *real = NULL;

	if (base && (strcmp(base, "/.") == 0 || strcmp(base, "/..") == 0))
		real = realpath(path, NULL);
	name_of_file(real ? real : path, out);
}

/* name_shown - the same for cfg's source, local or remote. */
static int name_shown(const struct cfg *cfg, char out[NAME_BYTES], struct err *e)
{
	struct address a;
	int rc;

	if (cfg->concat.dim && !cfg->is_remote) {
		auto_free char *folder = concat_folder(cfg->source);

		if (!folder)
			return err_nomem(e);
		name_virtual(folder, out);
		return 0;
	}
	if (!cfg->is_remote) {
		name_virtual(cfg->source, out);
		return 0;
	}
	rc = address_parse(cfg->source, &a, e);
	if (rc < 0)
		return rc;
	name_of_file(a.name, out);
	address_release(&a);
	return 0;
}

/* own_stdio - open standard descriptors that are closed, so that a descriptor opened later does not
 * become standard output by chance. A write to one that was closed must fail. */
static bool own_stdio(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) != fd)
			return false;
	return true;
}

/* cfg of main, for main_forget in forked processes. */
static struct cfg *known;

static void main_forget(void)
{
	cfg_forget(known);
}

/* no_core - limit core files, because the process's memory holds keys. The limit is one byte, as a
 * limit of zero does not keep the kernel from piping the core to a program that collects cores
 * (core(5)). With -d and a local source the user's limit stays. */
static void no_core(const struct cfg *cfg)
{
	const struct rlimit one = {1, 1};

	if (cfg->debug && !cfg->is_remote)
		return;
	(void)setrlimit(RLIMIT_CORE, &one); /* lowering is always allowed */
}

int main(int argc, char **argv)
{
	struct cfg cfg;
	struct fs_rules rules = {0};
	struct err e = ERR_INIT;
	struct app setup = {
		.cfg = &cfg,
		.rules = &rules,
		.formats = formats,
		.n_formats = ARRAY_LEN(formats),
		.zarr = &zarr_source_ops,
		.hdf5 = &hdf5_source_ops,
		.prepare = hdf5_prepare,
		.forget = main_forget,
		.view_open = view_open,
	};
	struct cfg_files files = {.system = CFG_SYSTEM_FILE};
	auto_free char *user = cfg_user_file();
	int status = 1;

	fs_remote_begin(&setup);
	if (!own_stdio())
		return 1;
	fs_inherited_note();
	files.user = user;
	if (cfg_parse(argc, argv, &files, &cfg, &e) < 0) {
		log_error("%s", e.msg);
		return e.code == -EINVAL ? EXIT_USAGE : cfg.command == CFG_CHECK ? CHECK_FAILED : 1;
	}
	if (cfg.config.note)
		log_warn("%s", cfg.config.note);
	status = cfg.command == CFG_CHECK ? CHECK_FAILED : 1;
	known = &cfg;
	child_forget(main_forget);
	no_core(&cfg);
	if (!subcommand_has(cfg.command, SUB_RIGHTS))
		mounter_no_new_privs(); /* a mount does so once its mounter runs */
	codec_plugins_begin();
	if (cfg.noplugins)
		codec_plugins_off();
	if (subcommand_has(cfg.command, SUB_RULES) && fs_rules_init(&cfg, &rules, &e) < 0) {
		(void)cfg_place_error(&cfg, &e);
		log_error("%s", e.msg);
		cfg_release(&cfg);
		return EXIT_USAGE;
	}
	if (cfg.shown && name_shown(&cfg, setup.file_name, &e) < 0) {
		log_error("%s", e.msg);
		goto out;
	}
	log_init(cfg.debug ? LOG_DEBUG : cfg.verbose ? LOG_INFO : LOG_WARN, false);
	if (cfg.log && log_configure(cfg.log, &e) < 0) {
		log_error("-o log=%s", e.msg);
		status = EXIT_USAGE;
		goto out;
	}
	if (subcommand_has(cfg.command, SUB_CACHE))
		/* NULL: each view has its own */
		setup.shared = chunkio_shared_new(cfg.limits.cache_size);
	setup.decode_threads = threads_of(&cfg.limits);
	if (cfg.rules.rechunk.n > 0 || cfg.command == CFG_MOUNT || cfg.command == CFG_SERVE)
		setup.rechunk = rechunk_shared_new(cfg.limits.memory);
	status = subcommand_run(&setup);
out:
	rechunk_shared_free(setup.rechunk);
	chunkio_shared_free(setup.shared);
	fs_rules_release(&rules);
	cfg_release(&cfg);
	return status;
}
