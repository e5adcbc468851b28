#include "code/runtime_table.h"

#include "base/attr.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NOTHING ((const char *const[]){NULL})
#define ENV(...) ((const struct nk_runtime_env[]){__VA_ARGS__, {0}})
#define NODE_START "{dir}/node-start.cjs"
#define NODE_HELPER .helper = "node-start.cjs", .helper_text = nk_runtime_table_node

/* go run would hide the exit code of the program. */
static const char go_script[] =
    "\"$1\" build -o \"$2/main\" \"$3\" || exit; main=$2/main; shift 3; exec \"$main\" \"$@\"";

/* Bundled, so that imports of other files are translated too; they are looked for in the working
 * directory, where esbuild takes its standard input to lie. */
static const char esbuild_script[] =
    "\"$1\" --log-level=warning --bundle --platform=node --format=esm --packages=external "
    "--sourcemap=inline --sourcefile=main-code.ts --loader=ts <\"$3/main-code.ts\" "
    ">\"$3/main-code.js\" || exit; node=$2; dir=$3; shift 3; "
    "exec \"$node\" --enable-source-maps \"$dir/node-start.cjs\" \"$dir/main-code.js\" \"$@\"";

/* What it takes by itself depends on its version and that of node, and may not run at all. */
static const char ts_node_options[] = "{\"module\":\"commonjs\",\"esModuleInterop\":true}";

static const struct nk_runtime_way python[] = {{
    .tools = {"python3", "python"},
    .version = "--version",
    .argv = LIST("{tool}", "{file}"),
    .file = "main-code.py", /* a name that no import can mean */
    .env = ENV({"PYTHONUNBUFFERED", "1", false}, {"PYTHONPATH", "{cwd}", true}),
}};

static const struct nk_runtime_way javascript[] = {{
    .tools = {"node", "nodejs"},
    .version = "--version",
    .argv = LIST("{tool}", NODE_START, "{file}"),
    .file = "main-code.js",
    NODE_HELPER,
}};

static const struct nk_runtime_way typescript[] = {
    {
        .tools = {"tsx"},
        .needs = "node",
        .version = "--version",
        .argv = LIST("{tool}", "{file}"),
        .file = "main-code.ts",
        .links = true,
    },
    {
        .tools = {"ts-node"},
        .needs = "node",
        .version = "--version",
        .argv = LIST("{tool}", "-T", "-O", ts_node_options, "{file}"),
        .file = "main-code.ts",
        .links = true,
    },
    {
        .tools = {"deno"},
        .version = "--version",
        .argv = LIST("{tool}", "run", "--quiet", "--allow-all", "--no-check",
                     "--unstable-sloppy-imports", "{file}"),
        .file = "main-code.ts",
        .env = ENV({"DENO_DIR", "{cache}/deno", false}, {"DENO_NO_UPDATE_CHECK", "1", false},
                   {"NO_COLOR", "1", false}),
        .links = true,
    },
    {
        .tools = {"bun"},
        .version = "--version",
        .argv = LIST("{tool}", "run", "{file}"),
        .file = "main-code.ts",
        .links = true,
    },
    {
        .tools = {"node", "nodejs"},
        .major = 23,
        .minor = 6,
        .version = "--version",
        .argv = LIST("{tool}", "--disable-warning=ExperimentalWarning", NODE_START, "{file}"),
        .file = "main-code.ts",
        NODE_HELPER,
    },
    {
        .tools = {"node", "nodejs"},
        .major = 22,
        .minor = 6,
        .version = "--version",
        .argv = LIST("{tool}", "--experimental-strip-types",
                     "--disable-warning=ExperimentalWarning", NODE_START, "{file}"),
        .file = "main-code.ts",
        NODE_HELPER,
    },
    {
        .tools = {"esbuild"},
        .needs = "node",
        .version = "--version",
        .argv = LIST("/bin/sh", "-c", esbuild_script, "esbuild", "{tool}", "{needs}", "{dir}"),
        .file = "main-code.ts",
        NODE_HELPER,
    },
};

static const struct nk_runtime_way bash[] = {{
    .tools = {"bash"},
    .version = "--version",
    .argv = LIST("{tool}", "{file}"),
    .file = "main-code.sh",
}};

static const struct nk_runtime_way sh[] = {{
    .tools = {"sh"},
    .argv = LIST("{tool}", "{file}"),
    .file = "main-code.sh",
}};

static const struct nk_runtime_way php[] = {{
    .tools = {"php"},
    .version = "--version",
    .argv = LIST("{tool}", "-d", "display_errors=stderr", "-d", "log_errors=0", "-d",
                 "html_errors=0", "{file}"),
    .file = "main-code.php",
}};

static const struct nk_runtime_way ruby[] = {{
    .tools = {"ruby"},
    .version = "--version",
    .argv = LIST("{tool}", "-I.", "{dir}/ruby-start.rb", "{file}"),
    .file = "main-code.rb",
    .helper = "ruby-start.rb",
    .helper_text = nk_runtime_table_ruby,
}};

static const struct nk_runtime_way go[] = {{
    .tools = {"go"},
    .version = "version",
    .argv = LIST("/bin/sh", "-c", go_script, "go", "{tool}", "{dir}", "{file}"),
    .file = "main.go",
    .env = ENV({"GOCACHE", "{cache}/go-build", false}, {"GOTOOLCHAIN", "local", false}),
}};

const struct nk_runtime nk_runtime_table[] = {
    {"python", LIST("python3", "py"), python, NK_COUNT(python), NULL, NULL},
    {"javascript", LIST("js", "node", "nodejs"), javascript, NK_COUNT(javascript), NULL, NULL},
    {"typescript", LIST("ts"), typescript, NK_COUNT(typescript), NULL, NULL},
    {"bash", NOTHING, bash, NK_COUNT(bash), NULL, NULL},
    {"sh", NOTHING, sh, NK_COUNT(sh), NULL, NULL},
    {"php", NOTHING, php, NK_COUNT(php), "<?", "<?php "},
    {"ruby", LIST("rb"), ruby, NK_COUNT(ruby), NULL, NULL},
    {"go", LIST("golang"), go, NK_COUNT(go), NULL, NULL},
};
const size_t nk_runtime_table_count = NK_COUNT(nk_runtime_table);

const char nk_runtime_table_node[] =
    "'use strict';\n"
    "// Runs a file as if it lay in the working directory: require and import look there.\n"
    "const fs = require('fs'), path = require('path'), url = require('url'), vm = require('vm');\n"
    "const Module = require('module');\n"
    "const [real, ...args] = process.argv.slice(2);\n"
    "const name = path.join(process.cwd(), path.basename(real));\n"
    "let text = fs.readFileSync(real, 'utf8').replace(/^#!.*/, '');\n"
    "\n"
    "function fail(error) {\n"
    "  console.error(error.stack.replace(/^:/, name + ':').replace(/\\n    at [^]*/, ''));\n"
    "  process.exit(1);\n"
    "}\n"
    "\n"
    "function strip(source) {\n"
    "  try {\n"
    "    return Module.stripTypeScriptTypes(source, { mode: 'strip' });\n"
    "  } catch (error) {\n"
    "    if (!/UNSUPPORTED/.test(error.code)) fail(error);\n"
    "    return Module.stripTypeScriptTypes(source, { mode: 'transform' });\n"
    "  }\n"
    "}\n"
    "\n"
    "function isModule(source) {\n"
    "  try {\n"
    "    new vm.Script(Module.wrap(source));\n"
    "    return false;\n"
    "  } catch (error) {\n"
    "    return /import|export|await/.test(error.message);\n"
    "  }\n"
    "}\n"
    "\n"
    "function runScript(source) {\n"
    "  const module = new Module(name, null);\n"
    "  module.id = '.';\n"
    "  module.filename = name;\n"
    "  module.paths = Module._nodeModulePaths(process.cwd());\n"
    "  Module._cache[name] = process.mainModule = module;\n"
    "  module._compile(source, name);\n"
    "  module.loaded = true;\n"
    "}\n"
    "\n"
    "function runModule(text, format) {\n"
    "  const main = url.pathToFileURL(name).href, source = Buffer.from(text);\n"
    "  const found = { url: main, format, shortCircuit: true };\n"
    "  if (Module.registerHooks)\n"
    "    Module.registerHooks({\n"
    "      resolve: (what, context, next) => what === main ? found : next(what, context),\n"
    "      load: (what, context, next) =>\n"
    "        what === main ? { source, ...found } : next(what, context),\n"
    "    });\n"
    "  else\n"
    "    Module.register('data:text/javascript,' + encodeURIComponent(`\n"
    "      let found, source;\n"
    "      export function initialize(data) { ({ found, source } = data); }\n"
    "      export function resolve(what, context, next) {\n"
    "        return what === found.url ? found : next(what, context);\n"
    "      }\n"
    "      export function load(what, context, next) {\n"
    "        return what === found.url ? { source, ...found } : next(what, context);\n"
    "      }`), { data: { found, source } });\n"
    "  globalThis.require = Module.createRequire(name);\n"
    "  import(main);\n"
    "}\n"
    "\n"
    "process.argv.splice(1, process.argv.length, name, ...args);\n"
    "const typed = /\\.ts$/.test(real), untouched = typed && !Module.stripTypeScriptTypes;\n"
    "if (typed && !untouched) text = strip(text);\n"
    "if (untouched || isModule(text)) runModule(text, untouched ? 'module-typescript' : "
    "'module');\n"
    "else runScript(text);\n";

const char nk_runtime_table_ruby[] =
    "# Runs a file as if it lay in the working directory: require_relative looks there.\n"
    "$stdout.sync = true\n"
    "real = ARGV.shift\n"
    "$0 = File.join(Dir.pwd, File.basename(real))\n"
    "text = File.read(real, encoding: 'UTF-8')\n"
    "if (at = text =~ /^__END__\\r?\\n/)\n"
    "  DATA = File.open(real)\n"
    "  DATA.seek(text[0...at].bytesize + $~[0].bytesize)\n"
    "end\n"
    "RubyVM::InstructionSequence.compile(text, $0, $0, 1).eval\n";
