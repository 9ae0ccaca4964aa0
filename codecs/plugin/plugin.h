/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin.h - filters in shared libraries of others: HDF5's plugins, and netCDF-C's codecs.
 *
 * Libraries "lib*.so*" are looked for along HDF5_PLUGIN_PATH (directories between ':', from left
 * to right), then in the directory that the HDF5 library was built with. What has
 * H5PLget_plugin_type and H5PLget_plugin_info is a filter, what has NCZ_get_codec_info or
 * NCZ_codec_info_defaults names codecs for Zarr; a library may have both, and filter and codec
 * belong together by the filter's id. Of several with one id, or one name, the first is used. A
 * directory or library that others may write to is not used.
 *
 * Code of others never runs in the server: a child process has it, chunks go there and back in
 * shared memory, and a crash costs one chunk. In such a child (codec_plugins_local) libraries are
 * used as they are. docs/dev/plugins.md. */
#ifndef CODECS_PLUGIN_PLUGIN_H
#define CODECS_PLUGIN_PLUGIN_H

#include "codecs/core/codec.h"

struct H5Z_class2_t; /* of HDF5's headers */

/* codec_plugins_begin - directories of HDF5_PLUGIN_PATH that do not begin with '/' are meant from
 * here. Before the working directory changes and threads start. */
void codec_plugins_begin(void);

/* codec_plugins_off - -o noplugins: there are none. Before anything else is asked. */
void codec_plugins_off(void);

/* codec_plugins_local - this process is a child that may run the code of others: plugins are
 * loaded here. Before anything else is asked. */
void codec_plugins_local(void);

/* codec_plugins_look - look for plugins now, when nobody did yet: children that are forked from
 * this process have what was found. */
void codec_plugins_look(void);

/* codec_plugins_given - this process uses what was found before it was forked, and looks for
 * nothing itself. codec_plugins_short - whether it would have looked. */
void codec_plugins_given(void);
bool codec_plugins_short(void);

/* codec_plugins_dirs - for sandbox_enter: directories of the libraries that were found, or where
 * they would be looked for; up to cap into ret, borrowed for ever. Returns how many. */
struct sandbox_path;
size_t codec_plugins_dirs(struct sandbox_path *ret, size_t cap);

/* codec_plugins_time - how long one call of a plugin may take; a minute by default. Before threads
 * start. */
void codec_plugins_time(uint64_t ms);

/* codec_plugins_report - what was found and what was skipped: a line for each library, for -d and
 * for `nczarrfs filters`: "PATH: zfp (32013)", "PATH: skipped: others may write to it". */
void codec_plugins_report(struct buf *out);

/* codec_plugins_id - the ids of all filters that libraries have, also of those that are built in,
 * in turn: 0, 1, ... until 0. */
uint32_t codec_plugins_id(size_t i);

/* codec_plugins_class - in a process with codec_plugins_local: what a library has for this id, for
 * H5Zregister; the library is loaded now. NULL: none. Borrowed for ever. */
const struct H5Z_class2_t *codec_plugins_class(uint32_t h5_id);

#endif
