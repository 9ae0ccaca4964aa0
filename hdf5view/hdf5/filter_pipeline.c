/* filter_pipeline.c - filters of libhdf5 in the children in which it reads: its own, then ours,
 * then those of plugins. It does not look for plugins itself, because it would take them from
 * directories that others may write to. */
#include "codecs/plugin/plugin.h"
#include "hdf5view/hdf5/register_filters_int.h"
#include "hdf5view/hdf5/library.h"

bool h5_filter_ready(uint32_t h5_id)
{
	const struct H5Z_class2_t *class;

	if (h5_id > H5Z_FILTER_MAX)
		return false;
	if (h5_codec_ready(h5_id) || H5Zfilter_avail((H5Z_filter_t)h5_id) > 0)
		return true;
	class = codec_plugins_class(h5_id);
	return class && class->decoder_present && H5Zregister(class) >= 0;
}

void h5_filters_ready(void)
{
	uint32_t id;

	h5_codecs_ready();
	for (size_t i = 0; (id = codec_plugins_id(i)); i++)
		(void)h5_filter_ready(id);
}
