/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin.h - filters in third-party shared libraries: HDF5's plugins, and netCDF-C's codecs.
 *
 * Libraries "lib*.so*" are searched for in HDF5_PLUGIN_PATH (directories separated by ':', from
 * left to right), then in the plugin directory of the HDF5 library. A library with
 * H5PLget_plugin_type and H5PLget_plugin_info has a filter, one with NCZ_get_codec_info or
 * NCZ_codec_info_defaults has codecs for Zarr; a library may have both, and a filter and a codec
 * are paired by the filter's id. If several have the same id, or the same name, the first is used.
 * A directory or library that other users may write to is not used.
 *
 * Third-party code never runs in the server: a child process runs it, chunks are exchanged in
 * shared memory, and a crash costs one chunk. In such a child (codec_plugins_local) libraries are
 * called directly. docs/dev/plugins.md. */
#ifndef CODECS_PLUGIN_PLUGIN_H
#define CODECS_PLUGIN_PLUGIN_H

#include "codecs/core/codec.h"

struct H5Z_class2_t; /* of HDF5's headers */

/* codec_plugins_begin - resolve relative directories of HDF5_PLUGIN_PATH against the current
 * working directory. Before it changes, and before threads start. */
void codec_plugins_begin(void);

/* codec_plugins_off - -o noplugins: there are none. Before any other call. */
void codec_plugins_off(void);

/* codec_plugins_local - this process is a child that may run third-party code: plugins are loaded
 * in it. Before any other call. */
void codec_plugins_local(void);

/* codec_plugins_look - search for plugins now, if that has not been done: children that are forked
 * from this process inherit the result. */
void codec_plugins_look(void);

/* codec_plugins_given - this process uses the result of its parent, and never searches.
 * codec_plugins_short - whether it would have had to search. */
void codec_plugins_given(void);
bool codec_plugins_short(void);

/* codec_plugins_dirs - for sandbox_enter: the directories of the libraries in use, or of the search
 * path before a search; up to cap into ret, static. Returns their number. */
struct sandbox_path;
size_t codec_plugins_dirs(struct sandbox_path *ret, size_t cap);

/* codec_plugins_time - limit the time of one call of a plugin; a minute by default. Before threads
 * start. */
void codec_plugins_time(uint64_t ms);

/* codec_plugins_report - append the result of the search for -d and `nczarrfs filters`, a line for
 * each library: "PATH: zfp (32013)", "PATH: skipped: others may write to it". */
void codec_plugins_report(struct buf *out);

/* codec_plugins_id - the ids of all filters in libraries, including those that are built in: 0, 1,
 * ... until 0. */
uint32_t codec_plugins_id(size_t i);

/* codec_plugins_class - in a process with codec_plugins_local: load the library with this id and
 * return its class for H5Zregister; NULL: none. Static. */
const struct H5Z_class2_t *codec_plugins_class(uint32_t h5_id);

#endif
