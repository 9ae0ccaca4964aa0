/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin_load.c - load a library, in a process that may run third-party code, and describe its
 * content.
 *
 * The library's pointers are used unchecked: a library with wild pointers crashes this process,
 * which exists for that purpose. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <H5PLextern.h>

#include "codecs/plugin/plugin_table.h"

#define NC_CODEC_VERSION 1 /* NCZ_CODEC_CLASS_VER */
#define NC_CODEC_HDF5 1    /* NCZ_CODEC_HDF5: the kind of structure */

#ifndef H5_DEFAULT_PLUGINDIR
#define H5_DEFAULT_PLUGINDIR "/usr/local/hdf5/lib/plugin"
#endif

const char *plugin_default_dir(void)
{
	return H5_DEFAULT_PLUGINDIR;
}

/* The libraries that this process has loaded. */
static struct plugin_code *loaded[PLUGIN_LIBS_MAX];
static size_t n_loaded;

/* plugin_load_find - a function of the library. ISO C has no conversion from an object pointer to a
 * function pointer. */
static void plugin_load_find(void *handle, const char *name, void *ret_fn)
{
	void *p = dlsym(handle, name);

	memcpy(ret_fn, &p, sizeof(p));
}

static void plugin_load_describe(struct plugin_code *c, enum plugin_what what, uint32_t id,
				 const char *name, unsigned can)
{
	struct plugin_entry *x = &c->desc.v[c->desc.n];

	if (c->desc.n == PLUGIN_ENTRIES_MAX)
		return;
	*x = (struct plugin_entry){.what = what, .h5_id = id, .can = can};
	if (name)
		(void)snprintf(x->name, sizeof(x->name), "%s", name);
	c->desc.n++;
}

static int look_at_filter(struct plugin_code *c, struct err *e)
{
	H5PL_type_t (*type)(void);
	const void *(*info)(void);
	const H5Z_class2_t *f;
	unsigned can = 0;

	plugin_load_find(c->handle, "H5PLget_plugin_type", &type);
	plugin_load_find(c->handle, "H5PLget_plugin_info", &info);
	if (!type || !info)
		return 0;
	if (type() != H5PL_TYPE_FILTER)
		return err_set(e, -EBADMSG, "it is not a filter plugin (type %d)", (int)type());
	f = info();
	if (!f)
		return err_set(e, -EBADMSG, "it describes no filter");
	if (f->version != H5Z_CLASS_T_VERS)
		return err_set(e, -EBADMSG,
			       "its filter has the structure version %d, %d is needed",
			       f->version, H5Z_CLASS_T_VERS);
	if (f->id <= 0 || f->id > H5Z_FILTER_MAX || !f->filter)
		return err_set(e, -EBADMSG, "its filter has id %d or no function", f->id);
	can |= f->encoder_present ? PLUGIN_ENCODES : 0;
	can |= f->decoder_present ? PLUGIN_DECODES : 0;
	can |= f->can_apply ? PLUGIN_CAN_APPLY : 0;
	can |= f->set_local ? PLUGIN_SET_LOCAL : 0;
	c->filter = f;
	plugin_load_describe(c, PLUGIN_FILTER, (uint32_t)f->id, f->name, can);
	return 0;
}

static bool codec_ok(const struct plugin_codec *k)
{
	return k && k->version == NC_CODEC_VERSION && k->sort == NC_CODEC_HDF5 && k->codecid &&
	       k->hdf5id > 0 && k->hdf5id <= PLUGIN_ID_MAX;
}

static void describe_codec(struct plugin_code *c, enum plugin_what what,
			   const struct plugin_codec *k)
{
	unsigned can = 0;

	can |= k->codec_to_hdf5 ? PLUGIN_TO_HDF5 : 0;
	can |= k->hdf5_to_codec ? PLUGIN_TO_CODEC : 0;
	can |= k->modify_parameters ? PLUGIN_MODIFY : 0;
	plugin_load_describe(c, what, k->hdf5id, k->codecid, can);
}

static int look_at_codecs(struct plugin_code *c, struct err *e)
{
	const void *(*get)(void);
	const void *(*defaults)(void);
	const struct plugin_codec *k;

	plugin_load_find(c->handle, "NCZ_get_codec_info", &get);
	plugin_load_find(c->handle, "NCZ_codec_info_defaults", &defaults);
	if (get) {
		k = get();
		if (!codec_ok(k))
			return err_set(e, -EBADMSG,
				       "its codec has the structure version %d (%d is needed), "
				       "or has no name or filter",
				       k ? k->version : 0, NC_CODEC_VERSION);
		c->codec = k;
		describe_codec(c, PLUGIN_CODEC, k);
	}
	if (defaults)
		c->defaults = defaults();
	for (size_t i = 0; c->defaults && c->defaults[i]; i++)
		if (codec_ok(c->defaults[i])) /* an invalid one does not affect the others */
			describe_codec(c, PLUGIN_DEFAULT, c->defaults[i]);
	return 0;
}

/* with_netcdf - netCDF-C's plugins are built for programs that have libnetcdf, and some are not
 * linked with it themselves. */
static void with_netcdf(void)
{
	static const char *const names[] = {"libnetcdf.so.22", "libnetcdf.so.19",
					    "libnetcdf.so"};
	static bool tried;

	for (size_t i = 0; !tried && i < ARRAY_LEN(names); i++)
		tried = dlopen(names[i], RTLD_LAZY | RTLD_GLOBAL) != NULL;
	tried = true;
}

/* open_library - lazy binding: a missing symbol of a function that is never called does no harm. */
static void *open_library(const char *path, const char **ret_why)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const char *why = handle ? NULL : dlerror();

	if (why && strstr(why, "symbol")) {
		with_netcdf();
		handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
		why = handle ? NULL : dlerror();
	}
	*ret_why = why;
	return handle;
}

/* not_loaded - dlopen's message without the path, which every message has. */
static int not_loaded(const char *path, const char *why, struct err *e)
{
	size_t n = strlen(path);

	if (why && strncmp(why, path, n) == 0 && strncmp(why + n, ": ", 2) == 0)
		why += n + 2;
	return err_set(e, -EBADMSG, "it cannot be loaded: %s", why ? why : "no reason given");
}

int plugin_load(const char *path, struct plugin_code **ret, struct err *e)
{
	struct plugin_code *c;
	const char *why;
	int rc;

	for (size_t i = 0; i < n_loaded; i++)
		if (strcmp(loaded[i]->path, path) == 0) {
			*ret = loaded[i];
			return 0;
		}
	c = n_loaded < PLUGIN_LIBS_MAX ? alloc_array(1, sizeof(*c)) : NULL;
	if (c)
		c->path = strdup(path);
	if (!c || !c->path) {
		free(c);
		return err_nomem(e);
	}
	c->handle = open_library(path, &why);
	rc = c->handle ? look_at_filter(c, e) : not_loaded(path, why, e);
	rc = rc ? rc : look_at_codecs(c, e);
	if (rc == 0 && c->desc.n == 0)
		rc = err_set(e, -EBADMSG, "it contains neither a filter nor a codec");
	if (rc < 0) { /* not closed: that would run more of its code */
		free(c->path);
		free(c);
		return rc;
	}
	loaded[n_loaded++] = c;
	*ret = c;
	return 0;
}
