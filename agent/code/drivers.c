#include "code/drivers.h"

#include <string.h>

#include "base/attr.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define ENV(...) ((const struct nk_runtime_env[]){__VA_ARGS__, {0}})

/* Each reads a line with a number, and so many bytes of text, and runs that. */
static const char python[] =
    "f = open(3, 'rb', closefd=False)\n"
    "exec(compile(f.read(int(f.readline())), '<context>', 'exec'), {'__name__': 'context'})";

static const char node[] =
    "{ const fs = require('fs'), read = (size) => { const data = Buffer.alloc(size);\n"
    "for (let at = 0; at < size;) at += fs.readSync(3, data, at, size - at); return data; };\n"
    "let count = '', byte; while ((byte = String(read(1))) !== '\\n') count += byte;\n"
    "const text = String(read(Number(count)));\n"
    "require('vm').runInThisContext(text, { filename: 'context.js' })(require, (s) => import(s)); "
    "}";

static const char bash[] =
    "IFS= read -r -u 3 n; LC_ALL=C IFS= read -r -d '' -N \"$n\" -u 3 d; eval \"$d\"";

static const char ruby[] =
    "NOOK_CHANNEL = IO.for_fd(3, 'r+b')\n"
    "NOOK_CHANNEL.sync = true\n"
    "eval(NOOK_CHANNEL.read(NOOK_CHANNEL.gets.to_i).force_encoding('UTF-8'), TOPLEVEL_BINDING, "
    "'context.rb', 1)";

static const char php[] = "$nook_channel = fopen('php://fd/3', 'r+'); $nook_text = ''; "
                          "$nook_count = (int)fgets($nook_channel); "
                          "while (strlen($nook_text) < $nook_count) "
                          "$nook_text .= fread($nook_channel, $nook_count - strlen($nook_text)); "
                          "unset($nook_count); eval('?>' . $nook_text);";

static const struct nk_driver drivers[] = {
    {
        .id = "python",
        .way = {.argv = LIST("{tool}", "-u", "-c", python),
                .env = ENV({"MPLBACKEND", "Agg", false})},
        .text = nk_driver_py,
    },
    {
        .id = "javascript",
        .way = {.argv = LIST("{tool}", "-e", node)},
        .text = nk_driver_js,
    },
    {
        .id = "bash",
        .way = {.argv = LIST("{tool}", "--norc", "--noprofile", "-c", bash, "bash")},
        .text = nk_driver_sh,
    },
    {
        .id = "ruby",
        .way = {.argv = LIST("{tool}", "-e", ruby)},
        .text = nk_driver_rb,
    },
    {
        .id = "php",
        .way = {.argv = LIST("{tool}", "-d", "display_errors=stderr", "-d", "log_errors=0", "-d",
                             "html_errors=0", "-r", php)},
        .text = nk_driver_php,
    },
};

const struct nk_driver *nk_drivers_find(const char *id)
{
    for (size_t i = 0; i < NK_COUNT(drivers); i++)
        if (strcmp(drivers[i].id, id) == 0)
            return &drivers[i];
    return NULL;
}
