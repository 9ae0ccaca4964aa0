/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin_table.h - what the files about plugins share.
 *
 * plugin_scan.c says which libraries may be used, plugin_load.c loads one and looks at what it has,
 * plugin_server.c calls it: both only where code of others may run. plugin_client.c lets a child do
 * that, plugin_table.c decides which library has which filter, plugin.c makes codecs of them. */
#ifndef CODECS_PLUGIN_PLUGIN_TABLE_H
#define CODECS_PLUGIN_PLUGIN_TABLE_H

#include <limits.h>

#include "base/process/child.h"
#include "codecs/core/codec.h"

#define PLUGIN_LIBS_MAX 256    /* libraries that are looked at */
#define PLUGIN_ENTRIES_MAX 33  /* filter and codecs of one library */
#define PLUGIN_NAME_MAX 64     /* bytes of a name, with its NUL */
#define PLUGIN_ID_MAX 65535    /* H5Z_FILTER_MAX */
#define PLUGIN_JSON_MAX ((size_t)64 << 10)
#define PLUGIN_MS 60000        /* for one call */
#define PLUGIN_LOAD_MS 10000   /* for looking at one library */
#define PLUGIN_PROCESS "nczarrfs-plugin"

struct H5Z_class2_t;

/* ---- plugin_scan.c ---- */

/* plugin_lib - a library, or a directory that is not used. */
struct plugin_lib {
	char *path;  /* canonical where it exists; owned */
	char *why;   /* why it is not used; NULL: it is; owned */
};

struct plugin_libs {
	struct plugin_lib *v;
	size_t n, cap;
};

/* plugin_scan - the libraries of the directories in `dirs` (between ':'; relative to `from`), then
 * of `last`; by name in each. dirs: NULL for none. A library that is there twice comes once.
 * Returns 0; -ENOMEM with *ret to be released all the same. */
int plugin_scan(const char *dirs, const char *from, const char *last,
		struct plugin_libs *ret) NZ_MUST_USE;
void plugin_libs_release(struct plugin_libs *l);

/* plugin_distrust - why a file or directory must not be used: others may write to it, or put
 * another in its place. path: absolute and canonical. NULL: it may be. Static. */
const char *plugin_distrust(const char *path);

/* ---- plugin_load.c ---- */

enum plugin_what { PLUGIN_FILTER = 1, PLUGIN_CODEC, PLUGIN_DEFAULT };

/* What a filter or codec can do. */
enum { PLUGIN_ENCODES = 1, PLUGIN_DECODES = 2, PLUGIN_CAN_APPLY = 4, PLUGIN_SET_LOCAL = 8,
       PLUGIN_TO_HDF5 = 16, PLUGIN_TO_CODEC = 32, PLUGIN_MODIFY = 64, PLUGIN_CANS = 127 };

/* plugin_entry, plugin_desc - what a library has, as a child reports it: to be checked. */
struct plugin_entry {
	uint32_t what, h5_id, can;
	char name[PLUGIN_NAME_MAX];
};

struct plugin_desc {
	uint32_t n;
	struct plugin_entry v[PLUGIN_ENTRIES_MAX];
};

/* plugin_codec - netCDF-C's NCZ_codec_t, version 1. Facts: include/netcdf_filter_build.h of
 * netCDF-C 4.9.2, docs/filters.md. Results are of malloc; params of modify may be replaced. */
struct plugin_codec {
	int version, sort;
	const char *codecid;
	unsigned hdf5id;
	void (*initialize)(void);
	void (*finalize)(void);
	int (*codec_to_hdf5)(const char *json, size_t *ret_n, unsigned **ret_params);
	int (*hdf5_to_codec)(size_t n, const unsigned *params, char **ret_json);
	int (*modify_parameters)(int ncid, int varid, size_t *n_visible, unsigned **visible,
				 size_t *n_working, unsigned **working);
};

/* plugin_code - a library in this process. */
struct plugin_code {
	char *path;
	void *handle;
	const struct H5Z_class2_t *filter;  /* NULL: none */
	const struct plugin_codec *codec;   /* NULL: none */
	const struct plugin_codec *const *defaults; /* NULL: none; ended by NULL */
	struct plugin_desc desc;
	bool started;                       /* its codecs were initialised */
};

/* plugin_load - load a library and verify what it has; once for a path, and for ever. Only in a
 * process that may run the code of others, by one thread. Returns 0; -EBADMSG it is no plugin, with
 * the reason; -ENOMEM. */
int plugin_load(const char *path, struct plugin_code **ret, struct err *e) NZ_MUST_USE;

/* plugin_default_dir - where the HDF5 library was built to look. */
const char *plugin_default_dir(void);

/* ---- calls ---- */

enum plugin_op {
	PLUGIN_DESCRIBE = 1,  /* filter_lib -> struct plugin_desc */
	PLUGIN_DECODE,        /* bytes -> bytes */
	PLUGIN_ENCODE,
	PLUGIN_PREPARE,       /* params, plugin_put_array's bytes -> params */
	PLUGIN_FROM_JSON,     /* text with a NUL -> params */
	PLUGIN_TO_JSON,       /* params -> text */
};

/* plugin_call - one thing to be done by a library. */
struct plugin_call {
	enum plugin_op op;
	uint32_t h5_id;
	const char *name;        /* for messages */
	const char *filter_lib;  /* path; NULL: none */
	const char *codec_lib;
	const uint32_t *params;
	uint32_t n_params;
	const uint8_t *in;
	size_t in_len;
	size_t cap;              /* most bytes of the result */
	uint8_t *out;            /* room for them; or NULL and */
	struct buf *to;          /* they are appended here */
	size_t len;              /* set: bytes of the result */
};

/* plugin_run - do it in this process (plugin_server.c). plugin_ask - let a child do it
 * (plugin_client.c): any thread.
 * Returns 0; -EBADMSG the input is damaged, or no plugin; -ERANGE more than cap bytes;
 * -EOPNOTSUPP, -EINVAL refused; -EIO the plugin crashed, hung or lied; -ENOMEM. */
int plugin_run(struct plugin_call *c, struct err *e) NZ_MUST_USE;
int plugin_ask(struct plugin_call *c, struct err *e) NZ_MUST_USE;

/* plugin_give - in plugin_run: n bytes are the result. */
int plugin_give(struct plugin_call *c, const void *data, size_t n, struct err *e) NZ_MUST_USE;

/* plugin_class - what a library has for this id, loaded in this process; NULL: nothing. */
const struct H5Z_class2_t *plugin_class(const char *path, uint32_t h5_id);

/* plugin_array - the head of an array in PLUGIN_PREPARE's input: the chunk's lengths follow it,
 * then the fill value if there is one. */
struct plugin_array {
	uint32_t class, elem_size, rank, n_fill, big_endian, unused;
};

/* plugin_child - runs plugins. Its only descriptor is that of the shared memory; its job: */
extern const struct child_kind plugin_child;

struct plugin_job {
	uint64_t cpu_ms;
	bool any;                /* it looks at libraries, and meets no data of anybody */
	char filter_lib[PATH_MAX], codec_lib[PATH_MAX]; /* else: those that it is for; "": none */
};

/* plugin_request - what such a child is asked. In the region, from its beginning: both paths with
 * their NULs (lengths include them, 0: none), padding, parameters, padding, the input; room for the
 * result at `out`. It answers with a child_answer: the length of the result, or an error and the
 * length of its text, which follows. */
struct plugin_request {
	uint32_t op, h5_id, n_params, filter_len, codec_len, unused;
	uint64_t in_len, cap;
	uint64_t params, in, out; /* offsets */
	uint64_t size;            /* of the region by now */
};

/* ---- plugin_client.c ---- */

/* plugin_describe - a child, which ends then, says what the libraries have that are used; those
 * that are none, or that it dies of, get their `why`. ret: libs->n descriptions, zeroed before, and
 * checked: every text ends and is printable, every id is one. Returns 0; -ENOMEM; another error
 * when there can be no child. */
int plugin_describe(struct plugin_libs *libs, struct plugin_desc *ret, struct err *e) NZ_MUST_USE;

/* plugin_set_time - codec_plugins_time. */
void plugin_set_time(uint64_t ms);

/* ---- plugin_table.c ---- */

/* plugin - a filter of a library. */
struct plugin {
	struct codec_ops ops;
	char name[PLUGIN_NAME_MAX], zarr2[PLUGIN_NAME_MAX];
	char codecid[PLUGIN_NAME_MAX]; /* what the codec calls itself; "": there is none */
	uint32_t can;                  /* filter and codec */
	const char *filter_lib, *codec_lib; /* codec_lib: NULL when there is no codec */
};

/* plugin_table - made once, never changed, kept for ever. */
struct plugin_table {
	struct plugin *v;
	size_t n, n_shown; /* those that are built in come behind n_shown */
	struct plugin_libs libs;
	struct buf report;
};

/* plugin_table_make - from what the libraries have. descs: libs->n; libs is taken, in any case.
 * Returns 0 with *ret new; -ENOMEM. */
int plugin_table_make(struct plugin_libs *libs, const struct plugin_desc *descs,
		      struct plugin_table **ret, struct err *e) NZ_MUST_USE;

/* plugin_make_ops - p->ops of an entry whose other members are set (plugin.c). */
void plugin_make_ops(struct plugin *p);

/* ---- for core/registry.c ---- */

/* codec_builtin, codec_builtin_zarr2 - without plugins. */
const struct codec_ops *codec_builtin(uint32_t h5_id);
const struct codec_ops *codec_builtin_zarr2(const char *id, size_t n);

/* plugin_find, plugin_find_zarr2, plugin_at - of the plugins, which are looked for now when they
 * were not yet. NULL: none. Any thread. */
const struct codec_ops *plugin_find(uint32_t h5_id);
const struct codec_ops *plugin_find_zarr2(const char *id, size_t n);
const struct codec_ops *plugin_at(size_t i);

#endif
