/* SPDX-License-Identifier: BSD-3-Clause */
/* list.h - intrusive doubly linked lists: each element contains its links, and the list is a ring
 * through its head. No locks. */
#ifndef BASE_CORE_LIST_H
#define BASE_CORE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* list_link - the head of a list, or a member of an element (CONTAINER_OF gives the element). */
struct list_link {
	struct list_link *prev, *next;
};

/* list_init - an empty list. */
static inline void list_init(struct list_link *head)
{
	head->prev = head->next = head;
}

static inline void list_add(struct list_link *head, struct list_link *it)
{
	it->next = head->next;
	it->prev = head;
	head->next->prev = it;
	head->next = it;
}

/* list_append - at the end. */
static inline void list_append(struct list_link *head, struct list_link *it)
{
	list_add(head->prev, it);
}

static inline bool list_empty(const struct list_link *head)
{
	return head->next == head;
}

/* list_remove - remove an element that is in a list, or that list_init has initialised. It is then
 * in no list and may be removed again. */
static inline void list_remove(struct list_link *it)
{
	it->prev->next = it->next;
	it->next->prev = it->prev;
	list_init(it);
}

/* list_take - remove and return any element; NULL when the list is empty. */
static inline struct list_link *list_take(struct list_link *head)
{
	struct list_link *it = head->next;

	if (list_empty(head))
		return NULL;
	list_remove(it);
	return it;
}

#endif
