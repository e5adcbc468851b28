/* rooms: code base */
/*
 * What an interpreter says over its channel: nothing of it may hurt, and what was taken is of bounded
 * size and is told as JSON that reads back.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "code/event.h"
#include "code/outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void read_back(const struct nk_buf *text)
{
    struct nk_json *root = NULL;

    if (nk_buf_left(text) == 0)
        return;
    must(nk_json_parse(nk_buf_front(text), nk_buf_left(text), &root, NULL) == 0);
    nk_json_free(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nk_outcome *o;
    struct nk_event e;

    if (nk_event_read(data, size, &e, NULL) < 0)
        return 0;
    o = nk_outcome_new(256);
    must(o != NULL);
    must(e.status <= 255);
    if (e.kind == NK_EVENT_DISPLAY) {
        nk_outcome_show(o, 0, e.data);
        must(nk_outcome_at(o, 0) != NULL);
        read_back(&nk_outcome_at(o, 0)->json);
    }
    nk_outcome_set_result(o, e.data);
    nk_outcome_set_error(o, e.error);
    read_back(&o->result);
    read_back(&o->error);
    nk_outcome_free(o);
    nk_event_fini(&e);
    return 0;
}
