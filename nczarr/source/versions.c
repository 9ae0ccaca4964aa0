/* versions.c - pieces of one object are of one version, or an error.
 *
 * The kernel asks for a chunk in pieces, several at a time, and keeps what it got. When an object
 * is replaced between two pieces only the store's versions tell: so the version that an object had
 * when it was first read holds as long as the source does. 32 bits of it are kept for each object,
 * in memory that is touched where objects were read. */
#include "nczarr/source/chunks.h"

#define OBJECTS_MAX ((uint64_t)1 << 26) /* of an array; beyond, only those read lately are known */

struct zr_versions {
	uint64_t n;
	_Atomic uint32_t of[]; /* n objects; 0: not read yet */
};

static struct zr_versions *versions_of(struct zr_data *d, uint32_t array, uint64_t n)
{
	_Atomic(struct zr_versions *) *slot = &d->versions[array];
	struct zr_versions *v = atomic_load_explicit(slot, memory_order_acquire), *none = NULL;

	if (v || n > OBJECTS_MAX)
		return v;
	v = alloc_array(1, sizeof(*v) + (size_t)n * sizeof(v->of[0]));
	if (v)
		v->n = n;
	if (v && !atomic_compare_exchange_strong_explicit(slot, &none, v, memory_order_acq_rel,
							  memory_order_acquire)) {
		free(v);
		v = none;
	}
	return v;
}

bool zr_version_agree(struct zr_data *d, uint32_t array, const struct zr_place *p,
		      uint64_t object, uint64_t version)
{
	struct zr_versions *v = versions_of(d, array, p->n_objects);
	uint64_t recent = zr_recent_version(&d->watch, array, object);
	uint32_t own = (uint32_t)(version ^ version >> 32) | 1, held = 0;

	if (recent == 0)
		zr_recent_note(&d->watch, array, object, version);
	if (!v || object >= v->n)
		return recent == 0 || recent == version;
	return atomic_compare_exchange_strong_explicit(&v->of[object], &held, own,
						       memory_order_acq_rel,
						       memory_order_acquire) ||
	       held == own;
}

void zr_versions_release(struct zr_data *d)
{
	for (uint32_t i = 0; d->versions && i < d->n_places; i++)
		free(atomic_load_explicit(&d->versions[i], memory_order_acquire));
	free(d->versions);
}
