/* SPDX-License-Identifier: BSD-3-Clause */
/* store_view.h - the objects of a store as a view: files under their own keys, nothing translated.
 *
 * For a store that programs write themselves, and that no kernel shows as a directory. */
#ifndef TRANSLATE_TREE_STORE_VIEW_H
#define TRANSLATE_TREE_STORE_VIEW_H

#include "translate/contract/store.h"
#include "translate/contract/view.h"

/* A look at single names of a directory that is far away costs a request or two for each. Who looks
 * at more than a few of one directory will look at more: then it is listed, which tells the store
 * of all of them at once; not those of more than 20,000 names, and again when list_ms have gone by
 * (0: never).
 *
 * store_view_open - s is borrowed and outlives the view. st: owner, times and permissions of all
 * files. An id is one version of an object: when it is another one, reading gives -ESTALE, and
 * looking it up another id. What was looked up is remembered, some 100 bytes each.
 * Returns 0 with *ret new (view->ops->close). */
int store_view_open(struct store *s, const struct stat *st, uint32_t list_ms, struct view **ret,
		    struct err *e) NZ_MUST_USE;
/* store_view_dirs - the directories above a key are there, without asking: an object is. */
int store_view_dirs(struct view *v, const char *key, struct err *e) NZ_MUST_USE;

#endif
