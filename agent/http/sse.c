#include "http/sse.h"

void nk_sse_begin(struct nk_buf *out, const char *event, uint64_t id)
{
    nk_buf_add_str(out, "event: ");
    nk_buf_add_str(out, event);
    if (id != NK_SSE_NO_ID) {
        nk_buf_add_str(out, "\nid: ");
        nk_buf_add_u64(out, id);
    }
    nk_buf_add_str(out, "\ndata: ");
}

void nk_sse_end(struct nk_buf *out)
{
    nk_buf_add_str(out, "\n\n");
}

void nk_sse_comment(struct nk_buf *out, const char *text)
{
    nk_buf_add_str(out, ": ");
    nk_buf_add_str(out, text);
    nk_buf_add_str(out, "\n\n");
}
