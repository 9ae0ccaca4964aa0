/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin_table.h - private to codecs/plugin.
 *
 * plugin_scan.c decides which libraries may be used, plugin_load.c loads and describes one,
 * plugin_server.c calls it; the latter two run only in processes for third-party code.
 * plugin_client.c starts and calls these processes, plugin_table.c decides which library is used
 * for a filter, plugin.c makes codecs of plugins. */
#ifndef CODECS_PLUGIN_PLUGIN_TABLE_H
#define CODECS_PLUGIN_PLUGIN_TABLE_H

#include <limits.h>

#include "base/process/child.h"
#include "codecs/core/codec.h"

#define PLUGIN_LIBS_MAX 256    /* libraries that are considered */
#define PLUGIN_ENTRIES_MAX 33  /* filter and codecs of one library */
#define PLUGIN_NAME_MAX 64     /* bytes of a name, with its NUL */
#define PLUGIN_ID_MAX 65535    /* H5Z_FILTER_MAX */
#define PLUGIN_JSON_MAX ((size_t)64 << 10)
#define PLUGIN_MS 60000        /* limit of one call */
#define PLUGIN_LOAD_MS 10000   /* limit of describing one library */
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

/* plugin_scan - list the libraries in the directories `dirs` (separated by ':'; relative to
 * `from`), then in `last`; sorted by name in each. dirs: NULL for none. A library found twice is
 * listed once. Returns 0; -ENOMEM with *ret to be released, too. */
int plugin_scan(const char *dirs, const char *from, const char *last,
		struct plugin_libs *ret) NZ_MUST_USE;
/* plugin_dir_next - take the first directory, new, off the list *dirs; *ret is NULL at its end.
 * Returns 0; -ENOMEM. */
int plugin_dir_next(const char **dirs, const char *from, char **ret) NZ_MUST_USE;
void plugin_libs_release(struct plugin_libs *l);

/* plugin_distrust - why a file or directory must not be used: other users may write to it, or
 * replace it. path: absolute and canonical. Returns a static string, or NULL if it may be used. */
const char *plugin_distrust(const char *path);

/* ---- plugin_load.c ---- */

enum plugin_what { PLUGIN_FILTER = 1, PLUGIN_CODEC, PLUGIN_DEFAULT };

/* The abilities of a filter or codec. */
enum { PLUGIN_ENCODES = 1, PLUGIN_DECODES = 2, PLUGIN_CAN_APPLY = 4, PLUGIN_SET_LOCAL = 8,
       PLUGIN_TO_HDF5 = 16, PLUGIN_TO_CODEC = 32, PLUGIN_MODIFY = 64, PLUGIN_CANS = 127 };

/* plugin_entry, plugin_desc - the content of a library, as a child reports it: to be checked. */
struct plugin_entry {
	uint32_t what, h5_id, can;
	char name[PLUGIN_NAME_MAX];
};

struct plugin_desc {
	uint32_t n;
	struct plugin_entry v[PLUGIN_ENTRIES_MAX];
};

/* plugin_codec - netCDF-C's NCZ_codec_t, version 1. Source: include/netcdf_filter_build.h of
 * netCDF-C 4.9.2, docs/filters.md. Results are allocated by malloc; modify may replace params. */
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

/* plugin_code - a library that this process has loaded. */
struct plugin_code {
	char *path;
	void *handle;
	const struct H5Z_class2_t *filter;  /* NULL: none */
	const struct plugin_codec *codec;   /* NULL: none */
	const struct plugin_codec *const *defaults; /* NULL: none; terminated by NULL */
	struct plugin_desc desc;
	bool started;                       /* its codecs were initialised */
};

/* plugin_load - load a library and verify its content; once per path, and never unload it. Only in
 * a process that may run third-party code, by one thread. Returns 0; -EBADMSG it is no plugin, with
 * the reason; -ENOMEM. */
int plugin_load(const char *path, struct plugin_code **ret, struct err *e) NZ_MUST_USE;

/* plugin_default_dir - the plugin directory that the HDF5 library was built with. */
const char *plugin_default_dir(void);

/* ---- calls ---- */

enum plugin_op {
	PLUGIN_DESCRIBE = 1,  /* path with a NUL -> struct plugin_desc */
	PLUGIN_DECODE,        /* bytes -> bytes */
	PLUGIN_ENCODE,
	PLUGIN_PREPARE,       /* params, plugin_put_array's bytes -> params */
	PLUGIN_FROM_JSON,     /* text with a NUL -> params */
	PLUGIN_TO_JSON,       /* params -> text */
};

/* plugin_call - one operation of a library. */
struct plugin_call {
	enum plugin_op op;
	uint32_t h5_id;
	const char *name;        /* in messages */
	const char *filter_lib;  /* path; NULL: none */
	const char *codec_lib;
	const uint32_t *params;
	uint32_t n_params;
	const uint8_t *in;
	size_t in_len;
	size_t cap;              /* limit of the result */
	uint8_t *out;            /* receives them; or NULL and */
	struct buf *to;          /* they are appended here */
	size_t len;              /* set: bytes of the result */
};

/* plugin_run - run the call in this process (plugin_server.c). plugin_ask - run it in a child
 * (plugin_client.c): any thread. Returns 0; -EBADMSG the input is damaged, or no plugin; -ERANGE
 * more than cap bytes; -EOPNOTSUPP, -EINVAL rejected; -EIO the plugin crashed, hung or gave an
 * invalid result; -ENOMEM. */
int plugin_run(struct plugin_call *c, struct err *e) NZ_MUST_USE;
int plugin_ask(struct plugin_call *c, struct err *e) NZ_MUST_USE;

/* plugin_give - in plugin_run: set the n bytes of the result. */
int plugin_give(struct plugin_call *c, const void *data, size_t n, struct err *e) NZ_MUST_USE;

/* plugin_class - a library's class for this id, loaded in this process; NULL: none. */
const struct H5Z_class2_t *plugin_class(const char *path, uint32_t h5_id);

/* plugin_array - the beginning of an array in PLUGIN_PREPARE's input: the chunk's lengths follow
 * it, then the fill value if there is one. */
struct plugin_array {
	uint32_t class, elem_size, rank, n_fill, big_endian, unused;
};

/* plugin_child - runs plugins. Its only descriptor is that of the shared memory; its job: */
extern const struct child_kind plugin_child;

struct plugin_job {
	uint64_t cpu_ms;
	bool any;                /* it describes libraries, and gets no data */
	char filter_lib[PATH_MAX], codec_lib[PATH_MAX]; /* else its libraries; "": none */
};

/* plugin_request - the request to such a child. The shared memory has parameters, padding, the
 * input; the result is written at `out`. The answer is a child_answer: the length of the result, or
 * an error and the length of its message, which follows. */
struct plugin_request {
	uint32_t op, h5_id, n_params, unused;
	uint64_t in_len, cap;
	uint64_t params, in, out; /* offsets */
	uint64_t size;            /* of the shared memory now */
};

/* ---- plugin_client.c ---- */

/* plugin_describe - describe the libraries in a child, which ends then; those that are no plugins,
 * or that crash it, get their `why`. ret: libs->n descriptions, zeroed before, and checked: every
 * string is terminated and printable, every id is valid. Returns 0; -ENOMEM; another error when no
 * child can be started. */
int plugin_describe(struct plugin_libs *libs, struct plugin_desc *ret, struct err *e) NZ_MUST_USE;

/* ---- plugin_table.c ---- */

/* plugin - a filter in a library. */
struct plugin {
	struct codec_ops ops;
	char name[PLUGIN_NAME_MAX], zarr2[PLUGIN_NAME_MAX];
	char codecid[PLUGIN_NAME_MAX]; /* the codec's name for itself; "": no codec */
	uint32_t can;                  /* abilities of filter and codec */
	const char *filter_lib, *codec_lib; /* codec_lib: NULL when there is no codec */
};

/* plugin_table - made once, never changed, never freed. */
struct plugin_table {
	struct plugin *v;
	size_t n, n_shown; /* those that are built in, too, are after n_shown */
	struct plugin_libs libs;
	struct buf report;
};

/* plugin_table_make - make the table of descs, libs->n descriptions; takes ownership of libs in any
 * case. Returns 0 with *ret new; -ENOMEM. */
int plugin_table_make(struct plugin_libs *libs, const struct plugin_desc *descs,
		      struct plugin_table **ret, struct err *e) NZ_MUST_USE;

/* plugin_make_ops - set p->ops of an entry whose other members are set (plugin.c). */
void plugin_make_ops(struct plugin *p);

/* ---- for core/registry.c ---- */

/* codec_builtin, codec_builtin_zarr2 - without plugins. */
const struct codec_ops *codec_builtin(uint32_t h5_id);
const struct codec_ops *codec_builtin_zarr2(const char *id, size_t n);

/* plugin_find, plugin_find_zarr2, plugin_at - a plugin's codec; searches for plugins if that has
 * not been done. NULL: none. Any thread. */
const struct codec_ops *plugin_find(uint32_t h5_id);
const struct codec_ops *plugin_find_zarr2(const char *id, size_t n);
const struct codec_ops *plugin_at(size_t i);

#endif
