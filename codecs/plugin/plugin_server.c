/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin_server.c - calls of plugins, in a process that may run third-party code, and the main
 * function of the children for plugins.
 *
 * A filter gets a buffer of its own, which it may replace, and its result is copied from the buffer
 * that it returns. The lengths that it states are checked as far as possible. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include <hdf5.h>

#include "base/process/worker.h"
#include "codecs/plugin/plugin_table.h"

/* Address space in addition to the shared memory: input, result and intermediate results of a call,
 * of chunks up to 4 GiB. The system denies memory that it does not have. */
#define MEMORY ((uint64_t)32 << 30)

int plugin_give(struct plugin_call *c, const void *data, size_t n, struct err *e)
{
	if (n > c->cap)
		return err_set(e, -ERANGE, "its result of %zu bytes exceeds %zu", n, c->cap);
	c->len = n;
	if (c->out && n > 0)
		memcpy(c->out, data, n);
	if (c->to)
		buf_put(c->to, data, n);
	return c->to && !buf_ok(c->to) ? err_nomem(e) : 0;
}

static herr_t server_first_text(unsigned n NZ_UNUSED, const H5E_error2_t *d, void *arg)
{
	const char **text = arg;

	if (d->desc && d->desc[0] && !*text)
		*text = d->desc;
	return 0;
}

/* server_refused - a filter failed; HDF5's error stack may have the reason. */
static int server_refused(struct err *e, int code, const char *what)
{
	const char *text = NULL;

	(void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, server_first_text, &text);
	return text ? err_set(e, code, "%s: %s", what, text) : err_set(e, code, "%s", what);
}

/* ---- filters ---- */

/* room_of - bytes that are allocated, as far as the allocator knows. */
static size_t room_of(void *p NZ_UNUSED, size_t said)
{
#ifdef H5_MEMORY_ALLOC_SANITY_CHECK /* such a library has its own headers before blocks */
	return said;
#else
	size_t room = malloc_usable_size(p);

	return room < said ? room : said;
#endif
}

/* server_changed - the error of a library that has changed since the table was made. */
static int server_changed(int rc, struct err *e)
{
	return rc == -EBADMSG ? err_wrap(e, -EIO, "the library was changed") : rc;
}

static int load_filter(const struct plugin_call *c, const H5Z_class2_t **ret, struct err *e)
{
	struct plugin_code *code;
	int rc = plugin_load(c->filter_lib, &code, e);

	if (rc < 0)
		return server_changed(rc, e);
	if (!code->filter || (uint32_t)code->filter->id != c->h5_id)
		return err_set(e, -EIO, "the library was changed: it no longer has the filter");
	*ret = code->filter;
	return 0;
}

static int run_filter(struct plugin_call *c, struct err *e)
{
	const bool decode = c->op == PLUGIN_DECODE;
	const H5Z_class2_t *f;
	size_t room = c->in_len, n;
	void *buf;
	int rc = load_filter(c, &f, e);

	if (rc < 0)
		return rc;
	buf = H5allocate_memory(c->in_len ? c->in_len : 1, false);
	if (!buf)
		return err_nomem(e);
	if (c->in_len > 0)
		memcpy(buf, c->in, c->in_len);
	n = f->filter(decode ? H5Z_FLAG_REVERSE : 0, c->n_params, c->params, c->in_len, &room,
		      &buf);
	if (n == 0)
		rc = decode ? server_refused(e, -EBADMSG, "it cannot decode the chunk")
			    : server_refused(e, -EOPNOTSUPP, "it cannot encode the chunk");
	else if (!buf || n > room_of(buf, room))
		rc = err_set(e, -EIO, "it claims %zu bytes but returns fewer", n);
	else
		rc = plugin_give(c, buf, n, e);
	(void)H5free_memory(buf); /* accepts NULL */
	return rc;
}

/* ---- codecs ---- */

static void start_codecs(struct plugin_code *code)
{
	if (code->started)
		return;
	code->started = true;
	if (code->codec && code->codec->initialize)
		code->codec->initialize();
	for (size_t i = 0; code->defaults && code->defaults[i]; i++)
		if (code->defaults[i]->initialize)
			code->defaults[i]->initialize();
}

static int load_codec(const struct plugin_call *c, struct plugin_code **ret_code,
		      const struct plugin_codec **ret, struct err *e)
{
	struct plugin_code *code;
	const struct plugin_codec *k = NULL;
	int rc = plugin_load(c->codec_lib, &code, e);

	if (rc < 0)
		return server_changed(rc, e);
	if (code->codec && code->codec->hdf5id == c->h5_id)
		k = code->codec;
	for (size_t i = 0; !k && code->defaults && code->defaults[i]; i++)
		if (code->defaults[i]->hdf5id == c->h5_id)
			k = code->defaults[i];
	if (!k)
		return err_set(e, -EIO, "the library was changed: it no longer has the codec");
	start_codecs(code);
	*ret_code = code;
	*ret = k;
	return 0;
}

static int give_params(struct plugin_call *c, size_t n, const unsigned *params, struct err *e)
{
	if (n > 0 &&
	    (!params || n > room_of((void *)(uintptr_t)params, SIZE_MAX) / sizeof(*params)))
		return err_set(e, -EIO, "it claims %zu parameters but returns fewer", n);
	if (n > CODEC_PARAMS_MAX)
		return err_set(e, -EOPNOTSUPP,
			       "%zu parameters are returned, at most %d are allowed", n,
			       CODEC_PARAMS_MAX);
	return plugin_give(c, params, n * sizeof(*params), e);
}

static int run_from_json(struct plugin_call *c, struct err *e)
{
	const struct plugin_codec *k;
	struct plugin_code *code;
	auto_free unsigned *params = NULL;
	size_t n = 0;
	int rc = load_codec(c, &code, &k, e), said;

	if (rc < 0)
		return rc;
	if (!k->codec_to_hdf5)
		return 0;
	if (c->in_len == 0 || c->in[c->in_len - 1] != '\0')
		return err_set(e, -EINVAL, "a string is missing");
	said = k->codec_to_hdf5((const char *)c->in, &n, &params);
	return said ? err_set(e, -EBADMSG, "its codec rejects %.200s (error %d)",
			      (const char *)c->in, said)
		    : give_params(c, n, params, e);
}

static int run_to_json(struct plugin_call *c, struct err *e)
{
	const struct plugin_codec *k;
	struct plugin_code *code;
	auto_free char *json = NULL;
	int rc = load_codec(c, &code, &k, e), said;

	if (rc < 0)
		return rc;
	said = k->hdf5_to_codec ? k->hdf5_to_codec(c->n_params, c->params, &json) : -1;
	return said || !json
		       ? err_set(e, -EINVAL, "its codec rejects the parameters (error %d)", said)
		       : plugin_give(c, json, strnlen(json, room_of(json, SIZE_MAX)), e);
}

/* ---- the parameters that a writer stores ---- */

/* wanted - the input of PLUGIN_PREPARE. */
struct wanted {
	struct plugin_array a;
	hsize_t chunk[H5S_MAX_RANK];
	const uint8_t *fill; /* a.n_fill bytes */
};

static int read_wanted(const struct plugin_call *c, struct wanted *ret, struct err *e)
{
	const uint8_t *p = c->in;
	size_t left = c->in_len;

	if (left < sizeof(ret->a))
		return err_set(e, -EINVAL, "an array description is missing");
	memcpy(&ret->a, p, sizeof(ret->a));
	p += sizeof(ret->a);
	left -= sizeof(ret->a);
	if (ret->a.rank > H5S_MAX_RANK || left / sizeof(uint64_t) < ret->a.rank ||
	    left - ret->a.rank * sizeof(uint64_t) != ret->a.n_fill)
		return err_set(e, -EINVAL, "the array description is not valid");
	for (uint32_t i = 0; i < ret->a.rank; i++, p += sizeof(uint64_t)) {
		uint64_t len;

		memcpy(&len, p, sizeof(len));
		ret->chunk[i] = len;
	}
	ret->fill = p;
	return 0;
}

/* server_half - IEEE binary16, for which HDF5 has no predefined type. */
static hid_t server_half(void)
{
	hid_t t = H5Tcopy(H5T_IEEE_F32LE);

	if (t >= 0 && (H5Tset_fields(t, 15, 10, 5, 0, 10) < 0 || H5Tset_size(t, 2) < 0 ||
		       H5Tset_ebias(t, 15) < 0)) {
		(void)H5Tclose(t);
		return -1;
	}
	return t;
}

/* server_type_of - a new type; -1 when there is none. */
static hid_t server_type_of(const struct plugin_array *a)
{
	const bool is_signed = a->class == CODEC_INT;
	hid_t t = -1;

	if (a->class == CODEC_FLOAT)
		t = a->elem_size == 8   ? H5Tcopy(H5T_IEEE_F64LE)
		    : a->elem_size == 4 ? H5Tcopy(H5T_IEEE_F32LE)
		    : a->elem_size == 2 ? server_half()
					: H5Tcreate(H5T_OPAQUE, a->elem_size);
	else if (a->class == CODEC_INT || a->class == CODEC_UINT)
		t = a->elem_size == 8   ? H5Tcopy(is_signed ? H5T_STD_I64LE : H5T_STD_U64LE)
		    : a->elem_size == 4 ? H5Tcopy(is_signed ? H5T_STD_I32LE : H5T_STD_U32LE)
		    : a->elem_size == 2 ? H5Tcopy(is_signed ? H5T_STD_I16LE : H5T_STD_U16LE)
		    : a->elem_size == 1 ? H5Tcopy(is_signed ? H5T_STD_I8LE : H5T_STD_U8LE)
					: H5Tcreate(H5T_OPAQUE, a->elem_size);
	else
		t = H5Tcreate(H5T_OPAQUE, a->elem_size);
	if (t >= 0 && a->big_endian && H5Tget_class(t) != H5T_OPAQUE &&
	    H5Tset_order(t, H5T_ORDER_BE) < 0) {
		(void)H5Tclose(t);
		return -1;
	}
	return t;
}

/* dcpl_of - new creation properties with the filter in them. */
static hid_t dcpl_of(const struct plugin_call *c, const struct wanted *w, hid_t type)
{
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);

	if (dcpl < 0)
		return -1;
	if (H5Pset_chunk(dcpl, (int)w->a.rank, w->chunk) < 0 ||
	    (w->a.n_fill > 0 && H5Pset_fill_value(dcpl, type, w->fill) < 0) ||
	    H5Pset_filter(dcpl, (H5Z_filter_t)c->h5_id, H5Z_FLAG_MANDATORY, c->n_params,
			  c->params) < 0) {
		(void)H5Pclose(dcpl);
		return -1;
	}
	return dcpl;
}

static int give_stored(struct plugin_call *c, hid_t dcpl, struct err *e)
{
	unsigned params[CODEC_PARAMS_MAX], flags, config;
	size_t n = CODEC_PARAMS_MAX;

	if (H5Pget_filter_by_id2(dcpl, (H5Z_filter_t)c->h5_id, &flags, &n, params, 0, NULL,
				 &config) < 0)
		return server_refused(e, -EOPNOTSUPP, "it removed itself from the filters");
	if (n > CODEC_PARAMS_MAX)
		return err_set(e, -EOPNOTSUPP,
			       "%zu parameters are returned, at most %d are allowed", n,
			       CODEC_PARAMS_MAX);
	return plugin_give(c, params, n * sizeof(*params), e);
}

/* by_hdf5 - as libhdf5 does it when a dataset is created. */
static int by_hdf5(struct plugin_call *c, const struct wanted *w, const H5Z_class2_t *f,
		   struct err *e)
{
	hid_t type = server_type_of(&w->a),
	      space = H5Screate_simple((int)w->a.rank, w->chunk, NULL);
	hid_t dcpl = -1;
	int rc = 0;

	/* HDF5's own ids cannot be registered, and are available already */
	if ((f->id < H5Z_FILTER_RESERVED || H5Zregister(f) >= 0) && type >= 0 && space >= 0)
		dcpl = dcpl_of(c, w, type);
	if (dcpl < 0)
		rc = server_refused(e, -EOPNOTSUPP, "it cannot be set for this array");
	else if (f->can_apply && f->can_apply(dcpl, type, space) <= 0)
		rc = server_refused(e, -EOPNOTSUPP, "it cannot be used for this array");
	else if (f->set_local && f->set_local(dcpl, type, space) < 0)
		rc = server_refused(e, -EINVAL, "it rejects the parameters");
	else
		rc = give_stored(c, dcpl, e);
	if (dcpl >= 0)
		(void)H5Pclose(dcpl);
	if (space >= 0)
		(void)H5Sclose(space);
	if (type >= 0)
		(void)H5Tclose(type);
	return rc;
}

/* netcdf - netCDF-C's functions that define a variable in memory: of the library that the plugin is
 * linked with, or of the one that was loaded for it. */
struct netcdf {
	int (*create)(const char *path, int mode, int *ret);
	int (*def_dim)(int ncid, const char *name, size_t len, int *ret);
	int (*def_var)(int ncid, const char *name, int type, int rank, const int *dims,
		       int *ret);
	int (*def_chunking)(int ncid, int var, int storage, const size_t *lens);
	int (*def_endian)(int ncid, int var, int endian);
	int (*discard)(int ncid);
};

static bool find_netcdf(void *handle, struct netcdf *ret)
{
	static const char *const names[] = {"nc_create",         "nc_def_dim",
					    "nc_def_var",        "nc_def_var_chunking",
					    "nc_def_var_endian", "nc_abort"};
	void *fns[ARRAY_LEN(names)];

	_Static_assert(sizeof(fns) == sizeof(*ret), "one function each");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!(fns[i] = dlsym(handle, names[i])) &&
		    !(fns[i] = dlsym(RTLD_DEFAULT, names[i])))
			return false;
	memcpy(ret, fns, sizeof(*ret));
	return true;
}

/* server_nc_type - netCDF's number of a type; 0: there is no such type. */
static int server_nc_type(const struct plugin_array *a)
{
	static const int ints[] = {[1] = 1, [2] = 3, [4] = 4, [8] = 10};
	static const int uints[] = {[1] = 7, [2] = 8, [4] = 9, [8] = 11};

	if (a->elem_size > 8)
		return 0;
	if (a->class == CODEC_FLOAT)
		return a->elem_size == 4 ? 5 : a->elem_size == 8 ? 6 : 0;
	if (a->class == CODEC_INT)
		return ints[a->elem_size];
	return a->class == CODEC_UINT || a->elem_size == 1 ? uints[a->elem_size] : 0;
}

/* make_variable - define a variable in an in-memory file. Returns its ncid, or -1. */
static int make_variable(const struct netcdf *nc, const struct wanted *w, int *ret_var)
{
	enum { DISKLESS = 0x0008, NETCDF4 = 0x1000, CHUNKED = 0, LITTLE = 1, BIG = 2 };
	int ncid, dims[H5S_MAX_RANK], type = server_nc_type(&w->a);
	size_t lens[H5S_MAX_RANK];
	char name[16];
	bool ok;

	if (!type || nc->create("plugin", DISKLESS | NETCDF4, &ncid) != 0)
		return -1;
	ok = true;
	for (uint32_t i = 0; ok && i < w->a.rank; i++) {
		(void)snprintf(name, sizeof(name), "d%u", i);
		lens[i] = (size_t)w->chunk[i];
		ok = nc->def_dim(ncid, name, lens[i], &dims[i]) == 0;
	}
	ok = ok && nc->def_var(ncid, "v", type, (int)w->a.rank, dims, ret_var) == 0 &&
	     (w->a.rank == 0 || nc->def_chunking(ncid, *ret_var, CHUNKED, lens) == 0) &&
	     nc->def_endian(ncid, *ret_var, w->a.big_endian ? BIG : LITTLE) == 0;
	if (ok)
		return ncid;
	(void)nc->discard(ncid);
	return -1;
}

/* by_codec - as netCDF-C does it for Zarr. *ret_said: the codec's return value. */
static int by_codec(struct plugin_call *c, const struct wanted *w, int *ret_said, struct err *e)
{
	const struct plugin_codec *k;
	struct plugin_code *code;
	struct netcdf nc;
	auto_free unsigned *visible = NULL, *working = NULL;
	size_t n_visible = c->n_params, n_working = 0;
	int ncid = -1, var = -1, rc = load_codec(c, &code, &k, e);

	if (rc < 0)
		return rc;
	visible = alloc_array(n_visible, sizeof(*visible));
	if (!visible)
		return err_nomem(e);
	if (n_visible > 0)
		memcpy(visible, c->params, n_visible * sizeof(*visible));
	if (find_netcdf(code->handle, &nc))
		ncid = make_variable(&nc, w, &var);
	*ret_said = k->modify_parameters ? k->modify_parameters(ncid, var, &n_visible, &visible,
								&n_working, &working)
					 : -1;
	if (ncid >= 0)
		(void)nc.discard(ncid);
	return *ret_said == 0 ? give_params(c, n_working, working, e) : 0;
}

/* run_prepare - first the filter's own function: HDF5 writers use it, it needs no netCDF library
 * and gives the same result; then the codec's; else the parameters are unchanged. */
static int run_prepare(struct plugin_call *c, struct err *e)
{
	const H5Z_class2_t *f;
	struct wanted w;
	int said = 0, rc = load_filter(c, &f, e);

	rc = rc ? rc : read_wanted(c, &w, e);
	if (rc < 0)
		return rc;
	if (f->set_local || !c->codec_lib)
		return by_hdf5(c, &w, f, e);
	rc = by_codec(c, &w, &said, e);
	if (rc == 0 && said != 0)
		rc = by_hdf5(c, &w, f, e);
	return rc;
}

static int run_describe(struct plugin_call *c, struct err *e)
{
	struct plugin_code *code;
	int rc = plugin_load((const char *)c->in, &code, e);

	return rc < 0 ? rc : plugin_give(c, &code->desc, sizeof(code->desc), e);
}

const struct H5Z_class2_t *plugin_class(const char *path, uint32_t h5_id)
{
	struct plugin_code *code;

	if (plugin_load(path, &code, NULL) < 0 || !code->filter ||
	    (uint32_t)code->filter->id != h5_id)
		return NULL;
	return code->filter;
}

int plugin_run(struct plugin_call *c, struct err *e)
{
	static int (*const run[])(struct plugin_call *, struct err *) = {
		[PLUGIN_DESCRIBE] = run_describe,   [PLUGIN_DECODE] = run_filter,
		[PLUGIN_ENCODE] = run_filter,       [PLUGIN_PREPARE] = run_prepare,
		[PLUGIN_FROM_JSON] = run_from_json, [PLUGIN_TO_JSON] = run_to_json,
	};
	struct err inner = ERR_INIT;
	int rc;

	c->len = 0;
	if ((size_t)c->op >= ARRAY_LEN(run) || !run[c->op])
		return err_set(e, -EINVAL, "unknown call");
	(void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	(void)H5Eclear2(H5E_DEFAULT);
	rc = run[c->op](c, &inner);
	(void)H5Eclear2(H5E_DEFAULT);
	return rc < 0 ? err_set(e, rc, "%s", inner.msg) : rc;
}

/* ---- a child ---- */

static void server_handle(const struct shm *r, int sock, const struct plugin_job *job,
			  const struct plugin_request *q)
{
	struct plugin_call c = {.op = (enum plugin_op)q->op,
				.h5_id = q->h5_id,
				.filter_lib = job->filter_lib,
				.codec_lib = job->codec_lib[0] ? job->codec_lib : NULL,
				.params = (const uint32_t *)(const void *)(r->at + q->params),
				.n_params = q->n_params,
				.in = r->at + q->in,
				.in_len = (size_t)q->in_len,
				.cap = (size_t)q->cap,
				.out = r->at + q->out};
	struct err e = ERR_INIT;
	int rc = plugin_run(&c, &e);

	worker_reply(sock, rc, c.len, &e);
}

/* server_load - load ahead of calls. A failure is reported by the call. */
static void server_load(const char *path)
{
	struct plugin_code *code;

	if (path[0] && plugin_load(path, &code, NULL) < 0)
		return;
}

/* server_confine - enter the sandbox after loading all that a library needs, from any place,
 * and before reading any data that are trusted less than the library. */
static int server_confine(const struct plugin_job *job, struct err *e)
{
	const struct sandbox_limits limits = {.memory = MEMORY, .cpu_ms = job->cpu_ms};
	struct sandbox_path paths[] = {{.path = "/", .fd = -1}, {.fd = -1}};

	if (!job->any) {
		paths[0] = (struct sandbox_path){
			.path = job->filter_lib, .fd = -1, .beside = true};
		paths[1] =
			(struct sandbox_path){.path = job->codec_lib, .fd = -1, .beside = true};
		server_load(job->filter_lib);
		server_load(job->codec_lib);
	}
	return sandbox_enter(plugin_child.may, paths, ARRAY_LEN(paths), &limits, e);
}

static void server_serve(const struct child_self *self)
{
	const struct plugin_job *job = self->own ? self->own : self->data;
	struct shm r = {.fd = self->fds[0]};
	struct plugin_request q;
	struct err e = ERR_INIT;

	/* a plugin may use others, but libhdf5 must not choose where they are loaded from */
	(void)H5PLset_loading_state(0);
	if (server_confine(job, &e) < 0) {
		child_say(self->sock, -EIO, e.msg, strlen(e.msg));
		return;
	}
	while (worker_next(self->sock, &q, sizeof(q)) && shm_map(&r, q.size))
		server_handle(&r, self->sock, job, &q);
}

const struct child_kind plugin_child = {
	.name = PLUGIN_PROCESS,
	.who = "filter plugins",
	.n_fds = 1,
	.may = SANDBOX_OPENS | SANDBOX_LOADS,
	.run = server_serve,
};
