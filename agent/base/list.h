/*
 * An intrusive, circular, doubly linked list. The head is a node of its own.
 *
 * Owns nothing. A node that is zeroed or was removed may be removed again without effect.
 */
#ifndef NK_BASE_LIST_H
#define NK_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

struct nk_list {
    struct nk_list *next; /* borrowed: a neighbour, or itself in an empty head */
    struct nk_list *prev;
};

static inline void nk_list_init(struct nk_list *head)
{
    head->next = head;
    head->prev = head;
}

static inline bool nk_list_empty(const struct nk_list *head)
{
    return head->next == head;
}

static inline bool nk_list_linked(const struct nk_list *node)
{
    return node->next != NULL && node->next != node;
}

static inline void nk_list_append(struct nk_list *head, struct nk_list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

static inline void nk_list_remove(struct nk_list *node)
{
    if (!node->next)
        return;
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = NULL;
    node->prev = NULL;
}

#define nk_list_entry(node, type, member) NK_CONTAINER_OF(node, type, member)

#endif
