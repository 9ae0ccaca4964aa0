/* plugin.h - filters in shared libraries of others: HDF5's plugins, and netCDF-C's codecs.
 *
 * Libraries "lib*.so*" are looked for along HDF5_PLUGIN_PATH (directories between ':', from left
 * to right), then in the directory that the HDF5 library was built with. What has
 * H5PLget_plugin_type and H5PLget_plugin_info is a filter, what has NCZ_get_codec_info or
 * NCZ_codec_info_defaults names codecs for Zarr; a library may have both, and filter and codec
 * belong together by the filter's id. A directory or library that others may write to is
 * not used.
 *
 * Code of others never runs in the server: a child process has it, chunks go there and back in
 * shared memory, and a crash costs one chunk. In such a child (codec_plugins_local) libraries are
 * used as they are. */
#ifndef CODECS_PLUGIN_H
#define CODECS_PLUGIN_H

#include "codecs/codec.h"

/* codec_plugins_off - -o noplugins: there are none. Before anything else is asked. */
void codec_plugins_off(void);

/* codec_plugins_local - this process is a child that may run the code of others: plugins are
 * loaded here. Before anything else is asked. */
void codec_plugins_local(void);

/* codec_plugins_report - what was found and what was skipped: a line for each library, for -d and
 * for `nczarrfs filters`: "PATH: zfp (32013)", "PATH: skipped: others may write to it". */
void codec_plugins_report(struct buf *out);

#endif
