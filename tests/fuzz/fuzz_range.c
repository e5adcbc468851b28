/* rooms: http base */
/*
 * Headers of a conditional download: a part lies in the file, and nothing else is ever asked for.
 * Lines: range, if-range, if-none-match, if-match, a date.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/range.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nk_range_file file = {.etag = "\"a\"", .mtime = 784111777};
    const char *line[5] = {0};
    uint64_t from = 0, len = 0;
    char text[1024];
    int status;

    if (size < 1 || size > sizeof text)
        return 0;
    file.size = data[0];
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    line[0] = text;
    for (size_t i = 1; i < 5 && line[i - 1]; i++) {
        char *end = strchr(line[i - 1], '\n');

        if (end)
            *end++ = '\0';
        line[i] = end;
    }
    status = nk_range_judge(&(struct nk_range_ask){.range = line[0],
                                                   .if_range = line[1],
                                                   .if_none_match = line[2],
                                                   .if_match = line[3],
                                                   .if_modified_since = line[4],
                                                   .if_unmodified_since = line[4]},
                            &file, &from, &len);
    if (status != 200 && status != 206 && status != 304 && status != 412 && status != 416)
        abort();
    if (status == 206 && (len == 0 || from >= file.size || len > file.size - from))
        abort();
    if (status == 200 && (from != 0 || len != file.size))
        abort();
    return 0;
}
