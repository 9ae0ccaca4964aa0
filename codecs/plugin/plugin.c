/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin.c - codecs of plugins: one set of functions for all of them, which find the plugin by the
 * filter's id.
 *
 * The first request for a filter that is not built in searches for plugins, once. The result never
 * changes, so that readers take no lock. */
#include "codecs/plugin/plugin.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#define LOG_COMPONENT LOG_CODEC
#include "base/core/str.h"
#include "base/observe/log.h"
#include "base/process/sandbox.h"
#include "codecs/plugin/plugin_table.h"

#define TRIES 3 /* to search for plugins, if no process could be started */

/* Written before threads start. */
static bool off, given, short_of;
static int (*perform)(struct plugin_call *c, struct err *e) = plugin_ask;
static char from[PATH_MAX] = ""; /* base of relative directories; "": the working directory */

static _Atomic(const struct plugin_table *) found;
static pthread_mutex_t finding = PTHREAD_MUTEX_INITIALIZER;
static unsigned int tries; /* finding */

void codec_plugins_begin(void)
{
	if (!getcwd(from, sizeof(from)))
		from[0] = '\0';
}

void codec_plugins_off(void)
{
	off = true;
}

/* plugin_run_here - in a child only: the server has no path to it (scripts/check-server). */
static int plugin_run_here(struct plugin_call *c, struct err *e)
{
	struct err inner = ERR_INIT;
	int rc = plugin_run(c, &inner);

	return rc < 0 ? err_set(e, rc, "plugin '%s' of '%s': %s", c->name, c->filter_lib,
				inner.msg)
		      : 0;
}

void codec_plugins_local(void)
{
	perform = plugin_run_here;
}

void codec_plugins_given(void)
{
	given = true;
}

bool codec_plugins_short(void)
{
	return short_of;
}

/* ---- the table of plugins ---- */

/* plugin_look - on failure of the search, the table has only the reason. */
static int plugin_look(struct plugin_table **ret, struct err *e)
{
	auto_free struct plugin_desc *descs = NULL;
	struct plugin_libs libs;
	char here[PATH_MAX];
	const char *base = from[0] ? from : getcwd(here, sizeof(here));
	int rc = plugin_scan(secure_getenv("HDF5_PLUGIN_PATH"), base ? base : "",
			     plugin_default_dir(), &libs);

	if (rc == 0) {
		descs = alloc_array(libs.n, sizeof(*descs));
		rc = descs ? plugin_describe(&libs, descs, e) : -ENOMEM;
	}
	if (rc < 0) {
		plugin_libs_release(&libs);
		return rc == -ENOMEM ? err_nomem(e) : rc;
	}
	return plugin_table_make(&libs, descs, ret, e);
}

/* debug_lines - log the report line by line. */
static void debug_lines(const struct buf *report)
{
	const char *s = (const char *)report->data;
	size_t left = report->len;

	while (log_enabled(LOG_DEBUG) && left > 0) {
		const char *end = memchr(s, '\n', left);
		size_t n = end ? (size_t)(end - s) : left;

		log_debug("plugins: %.*s", (int)n, s);
		n += end != NULL;
		s += n;
		left -= n;
	}
}

static const struct plugin_table *table_locked(void)
{
	const struct plugin_table *t = atomic_load_explicit(&found, memory_order_relaxed);
	struct plugin_table *made = NULL;
	struct err e = ERR_INIT;

	if (t || tries == TRIES)
		return t;
	tries++;
	if (plugin_look(&made, &e) < 0) {
		log_debug("plugins: %s", e.msg);
		return NULL;
	}
	debug_lines(&made->report);
	atomic_store_explicit(&found, made, memory_order_release);
	return made;
}

/* plugin_do_table - the table; NULL: there are no plugins. */
static const struct plugin_table *plugin_do_table(void)
{
	const struct plugin_table *t = atomic_load_explicit(&found, memory_order_acquire);

	if (t || off)
		return t;
	if (given) {
		short_of = true;
		return NULL;
	}
	(void)pthread_mutex_lock(&finding);
	t = table_locked();
	(void)pthread_mutex_unlock(&finding);
	return t;
}

void codec_plugins_look(void)
{
	(void)plugin_do_table(); /* NULL: no plugins */
}

/* plugin_places - the directories of the search path. */
static size_t plugin_places(struct sandbox_path *ret, size_t cap)
{
	const char *dirs = secure_getenv("HDF5_PLUGIN_PATH");
	size_t n = 0;
	char *path;

	while (n < cap && plugin_dir_next(&dirs, from, &path) == 0 && path)
		ret[n++] = (struct sandbox_path){.path = path, .fd = -1};
	if (n < cap)
		ret[n++] = (struct sandbox_path){.path = plugin_default_dir(), .fd = -1};
	return n;
}

size_t codec_plugins_dirs(struct sandbox_path *ret, size_t cap)
{
	const struct plugin_table *t = atomic_load_explicit(&found, memory_order_acquire);
	size_t n = 0;

	if (!t && !off && !given)
		return plugin_places(ret, cap);
	for (size_t i = 0; t && i < t->libs.n && n < cap; i++)
		if (!t->libs.v[i].why)
			ret[n++] = (struct sandbox_path){
				.path = t->libs.v[i].path, .fd = -1, .beside = true};
	return n;
}

static const struct plugin *plugin_do_find(uint32_t h5_id)
{
	const struct plugin_table *t = h5_id <= PLUGIN_ID_MAX ? plugin_do_table() : NULL;

	for (size_t i = 0; t && i < t->n; i++)
		if (t->v[i].ops.h5_id == h5_id)
			return &t->v[i];
	return NULL;
}

const struct codec_ops *plugin_find(uint32_t h5_id)
{
	const struct plugin *p = plugin_do_find(h5_id);

	return p ? &p->ops : NULL;
}

const struct codec_ops *plugin_find_zarr2(const char *id, size_t n)
{
	const struct plugin_table *t = n > 0 && n < PLUGIN_NAME_MAX ? plugin_do_table() : NULL;

	for (size_t i = 0; t && i < t->n_shown; i++)
		if (str_is(t->v[i].zarr2, id, n))
			return &t->v[i].ops;
	return NULL;
}

const struct codec_ops *plugin_at(size_t i)
{
	const struct plugin_table *t = plugin_do_table();

	return t && i < t->n_shown ? &t->v[i].ops : NULL;
}

uint32_t codec_plugins_id(size_t i)
{
	const struct plugin_table *t = plugin_do_table();

	return t && i < t->n ? t->v[i].ops.h5_id : 0;
}

const struct H5Z_class2_t *codec_plugins_class(uint32_t h5_id)
{
	const struct plugin *p = perform == plugin_ask ? NULL : plugin_do_find(h5_id);

	return p ? plugin_class(p->filter_lib, h5_id) : NULL;
}

void codec_plugins_report(struct buf *out)
{
	const struct plugin_table *t = plugin_do_table();

	if (off)
		buf_puts(out, "plugins are disabled\n");
	else if (!t)
		buf_puts(out, "plugins cannot be searched for\n");
	else
		buf_put(out, t->report.data, t->report.len);
}

/* ---- calls ---- */

static int plugin_do_call(const struct codec_spec *spec, struct plugin_call *c, struct err *e)
{
	const struct plugin *p = plugin_do_find(spec->h5_id);

	if (!p)
		return err_set(e, -EOPNOTSUPP, "no plugin is available for filter %" PRIu32,
			       spec->h5_id);
	c->h5_id = spec->h5_id;
	c->params = spec->params;
	c->n_params = spec->n_params;
	c->name = p->name;
	c->filter_lib = p->filter_lib;
	c->codec_lib = p->codec_lib;
	return perform(c, e);
}

static int plugin_decode(const struct codec_call *c)
{
	struct plugin_call call = {.op = PLUGIN_DECODE,
				   .in = c->in,
				   .in_len = c->in_len,
				   .cap = c->cap,
				   .out = c->out};
	int rc = plugin_do_call(c->spec, &call, c->e);

	if (rc == 0)
		*c->ret_len = call.len;
	return rc;
}

/* plugin_stored_max - filters add few bytes, but no plugin states how many. */
static uint64_t plugin_stored_max(const struct codec_spec *spec NZ_UNUSED, uint64_t n)
{
	uint64_t r;

	return ckd_mul(&r, n, (uint64_t)2) || ckd_add(&r, r, (uint64_t)1 << 16) ? 0 : r;
}

static int plugin_encode(const struct codec_call *c)
{
	const uint64_t max = plugin_stored_max(c->spec, c->in_len);
	struct plugin_call call = {.op = PLUGIN_ENCODE,
				   .in = c->in,
				   .in_len = c->in_len,
				   .cap = max < SIZE_MAX ? (size_t)max : SIZE_MAX,
				   .to = c->to};

	return plugin_do_call(c->spec, &call, c->e);
}

/* ask_params - a call that returns parameters; they may replace those of the spec. */
static int ask_params(const struct codec_spec *spec, enum plugin_op op, const void *in,
		      size_t in_len, uint32_t *params, uint32_t *ret_n, struct err *e)
{
	uint32_t v[CODEC_PARAMS_MAX];
	struct plugin_call c = {
		.op = op, .in = in, .in_len = in_len, .cap = sizeof(v), .out = (uint8_t *)v};
	int rc = plugin_do_call(spec, &c, e);

	if (rc < 0)
		return rc;
	*ret_n = (uint32_t)(c.len / sizeof(*v));
	if (*ret_n > 0)
		memcpy(params, v, *ret_n * sizeof(*v));
	return 0;
}

static int plugin_prepare(const struct codec_spec *spec, const struct codec_array *a,
			  uint32_t *params, uint32_t *ret_n, struct err *e)
{
	const struct plugin_array head = {.class = (uint32_t)a->class,
					  .elem_size = a->elem_size,
					  .rank = a->rank,
					  .n_fill = a->fill ? a->elem_size : 0,
					  .big_endian = a->big_endian};
	auto_buf in = buf_of(sizeof(head) + a->rank * sizeof(*a->chunk) + (size_t)a->elem_size);

	buf_put(&in, &head, sizeof(head));
	buf_put(&in, a->chunk, a->rank * sizeof(*a->chunk));
	buf_put(&in, a->fill, head.n_fill);
	if (!buf_ok(&in))
		return err_nomem(e);
	return ask_params(spec, PLUGIN_PREPARE, in.data, in.len, params, ret_n, e);
}

/* ---- Zarr ---- */

/* from_object - read a user's parameters, then convert them to the filter's for the array. */
static int from_object(json_t *v, const struct codec_array *array, uint32_t *params,
		       uint32_t *ret_n, struct err *e)
{
	const char *id = json_string_value(json_object_get(v, "id"));
	const struct codec_ops *ops = id ? plugin_find_zarr2(id, strlen(id)) : NULL;
	const struct plugin *p = ops ? plugin_do_find(ops->h5_id) : NULL;
	struct codec_spec spec = {.name = ""};
	auto_free char *text = NULL;
	int rc;

	if (!p)
		return err_set(e, -EBADMSG, "its JSON has no 'id' of a plugin");
	text = json_dumps(v, 0);
	if (!text)
		return err_nomem(e);
	spec.h5_id = p->ops.h5_id;
	/* the codec parses its JSON */
	rc = ask_params(&spec, PLUGIN_FROM_JSON, text, strlen(text) + 1, params, ret_n, e);
	if (rc < 0 || !array || !p->ops.prepare)
		return rc;
	spec.params = params;
	spec.n_params = *ret_n;
	return plugin_prepare(&spec, array, params, ret_n, e);
}

static int plugin_from_zarr(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			    struct err *e)
{
	json_auto_t *v = NULL;
	json_error_t error;

	*ret_n = 0;
	if (!conf->json)
		return err_set(e, -EOPNOTSUPP, "the JSON of a plugin's codec is missing");
	if (strlen(conf->json) > PLUGIN_JSON_MAX)
		return err_set(e, -EBADMSG, "its JSON is too long");
	v = json_loads(conf->json, JSON_REJECT_DUPLICATES, &error);
	return v ? from_object(v, conf->array, params, ret_n, e)
		 : err_set(e, -EBADMSG, "its JSON is not valid: %s", error.text);
}

/* put_members - append the members of the codec's JSON except its id, serialised again, because a
 * codec may write any text. */
static bool put_members(json_t *v, const char *codecid, struct buf *json)
{
	const char *id = json_string_value(json_object_get(v, "id"));
	const char *name;
	json_t *value;

	if (!json_is_object(v) || (id && strcmp(id, codecid) != 0))
		return false;
	json_object_foreach(v, name, value)
	{
		json_auto_t *key = json_string(name);
		auto_free char *k = key ? json_dumps(key, JSON_ENCODE_ANY) : NULL;
		auto_free char *text = json_dumps(value, JSON_ENCODE_ANY);

		if (!k || !text)
			return false;
		if (strcmp(name, "id") != 0)
			buf_printf(json, ", %s: %s", k, text);
	}
	return true;
}

/* plugin_zarr2_params - if the codec rejects the parameters, the buffer fails. */
static void plugin_zarr2_params(const struct codec_spec *spec, size_t elem_size NZ_UNUSED,
				struct buf *json)
{
	const struct plugin *p = plugin_do_find(spec->h5_id);
	auto_buf text = buf_of(PLUGIN_JSON_MAX);
	struct plugin_call c = {.op = PLUGIN_TO_JSON, .cap = PLUGIN_JSON_MAX, .to = &text};
	json_auto_t *v = NULL;

	if (p && plugin_do_call(spec, &c, NULL) == 0)
		v = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
	if (!v || !put_members(v, p->codecid, json))
		json->failed = true;
}

/* Filters whose encoding changes elements on purpose. Source: registered filters,
 * https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md */
static bool is_lossy(uint32_t h5_id)
{
	static const uint32_t ids[] = {32013 /* ZFP */,
				       32014 /* FPZIP */,
				       32017 /* SZ */,
				       32019 /* JPEG */,
				       32022 /* BitGroom */,
				       32028 /* SPERR */,
				       32032 /* BitRound */,
				       32023 /* Granular BitRound */,
				       32024 /* SZ3 */};

	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		if (ids[i] == h5_id)
			return true;
	return false;
}

void plugin_make_ops(struct plugin *p)
{
	struct codec_ops *ops = &p->ops;

	*ops = (struct codec_ops){
		.name = p->name,
		.h5_id = ops->h5_id,
		.zarr2_id = p->zarr2[0] ? p->zarr2 : NULL,
		.compressor = true,
		.lossy = is_lossy(ops->h5_id),
		.origin = p->filter_lib,
		.stored_max = plugin_stored_max,
		.decode = p->can & PLUGIN_DECODES ? plugin_decode : NULL,
		.encode = p->can & PLUGIN_ENCODES ? plugin_encode : NULL,
		.prepare = p->can & (PLUGIN_CAN_APPLY | PLUGIN_SET_LOCAL | PLUGIN_MODIFY)
				   ? plugin_prepare
				   : NULL,
		.from_zarr = p->can & PLUGIN_TO_HDF5 ? plugin_from_zarr : NULL,
		.zarr2_params = p->can & PLUGIN_TO_CODEC ? plugin_zarr2_params : NULL,
	};
}
