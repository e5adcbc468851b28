"""The same small programs in every language that is built in.

hello, fail (exit 3 after a line on standard error), broken (does not compile or parse), upper (standard
input in capitals), args (joined by |), text (beyond ASCII), binary (all 256 bytes), big (SIZE bytes of
x on standard output), loop (a line, a child of its own, then for ever), children (prints "child" in a
child, then "parent"), write (a file `made` in the working directory), local (uses a file of LOCAL).
"""

BIG = 10 << 20

PYTHON = {
    "hello": "print('hello')",
    "fail": "import sys\nprint('bad', file=sys.stderr)\nsys.exit(3)",
    "throw": "def f():\n    raise ValueError('boom')\n\nf()",
    "broken": "print('x'\n",
    "upper": "import sys\nsys.stdout.write(sys.stdin.read().upper())",
    "args": "import sys\nprint('|'.join(sys.argv[1:]))",
    "text": "print('häßlich ☃ 𝄞')",
    "binary": "import sys\nsys.stdout.buffer.write(bytes(range(256)))",
    "big": f"import sys\nsys.stdout.write('x' * {BIG})",
    "loop": "import subprocess\nsubprocess.Popen(['sleep', '1000'])\nprint('before')\n"
            "while True:\n    pass",
    "children": "import os, sys\nif os.fork() == 0:\n    print('child')\n    sys.stdout.flush()\n"
                "    os._exit(0)\nos.wait()\nprint('parent')",
    "write": "open('made', 'w').write('12345')",
    "local": "import local\nfrom folder import deep\nprint(local.VALUE, deep.VALUE)",
}

JAVASCRIPT = {
    "hello": "console.log('hello')",
    "fail": "console.error('bad')\nprocess.exit(3)",
    "throw": "function f() {\n  throw new Error('boom')\n}\n\nf()",
    "broken": "console.log('x'\n",
    "upper": "process.stdout.write(require('fs').readFileSync(0, 'utf8').toUpperCase())",
    "args": "console.log(process.argv.slice(2).join('|'))",
    "text": "console.log('häßlich ☃ 𝄞')",
    "binary": "process.stdout.write(Buffer.from(Array.from({length: 256}, (_, i) => i)))",
    "big": f"process.stdout.write('x'.repeat({BIG}))",
    "loop": "require('child_process').spawn('sleep', ['1000'])\n"
            "require('fs').writeSync(1, 'before\\n')\nfor (;;);",
    "children": "require('child_process').spawnSync('echo', ['child'], {stdio: 'inherit'})\n"
                "console.log('parent')",
    "write": "require('fs').writeFileSync('made', '12345')",
    "local": "const local = require('./local'), deep = require('./folder/deep')\n"
             "console.log(local.VALUE, deep.VALUE)",
}

TYPESCRIPT = {
    "hello": "const word: string = 'hello'\nconsole.log(word)",
    "fail": "import { exit } from 'node:process'\nconst code: number = 3\nconsole.error('bad')\n"
            "exit(code)",
    "throw": "function f(): never {\n  throw new Error('boom')\n}\n\nf()",
    "broken": "const x: number = ;\n",
    "upper": "import { readFileSync } from 'node:fs'\nconst text: string = readFileSync(0, 'utf8')\n"
             "process.stdout.write(text.toUpperCase())",
    "args": "const list: string[] = process.argv.slice(2)\nconsole.log(list.join('|'))",
    "text": "const s: string = 'häßlich ☃ 𝄞'\nconsole.log(s)",
    "binary": "const b: Buffer = Buffer.from(Array.from({length: 256}, (_, i) => i))\n"
              "process.stdout.write(b)",
    "big": f"const n: number = {BIG}\nprocess.stdout.write('x'.repeat(n))",
    "loop": "import { spawn } from 'node:child_process'\nimport { writeSync } from 'node:fs'\n"
            "spawn('sleep', ['1000'])\nwriteSync(1, 'before\\n')\nfor (;;);",
    "children": "import { spawnSync } from 'node:child_process'\n"
                "spawnSync('echo', ['child'], {stdio: 'inherit'})\nconsole.log('parent')",
    "write": "import { writeFileSync } from 'node:fs'\nwriteFileSync('made', '12345')",
    "local": "import { VALUE } from './typed'\nenum E { A = 2 }\nconsole.log(VALUE, E.A)",
}

SH = {
    "hello": "echo hello",
    "fail": "echo bad >&2\nexit 3",
    "throw": "set -e\nfalse || { echo boom >&2; exit 1; }",
    "broken": "if then\n",
    "upper": "tr a-z A-Z",
    "args": "IFS='|'\necho \"$*\"",
    "text": "echo 'häßlich ☃ 𝄞'",
    "binary": "i=0\nwhile [ $i -lt 256 ]; do printf \"\\\\$(printf %03o $i)\"; i=$((i + 1)); done",
    "big": f"head -c {BIG} /dev/zero | tr '\\0' x",
    "loop": "sleep 1000 &\necho before\nwhile :; do :; done",
    "children": "(echo child) &\nwait\necho parent",
    "write": "printf 12345 > made",
    "local": ". ./local.sh\necho $VALUE 2",
}

PHP = {
    "hello": "<?php echo \"hello\\n\";",
    "fail": "<?php fwrite(STDERR, \"bad\\n\"); exit(3);",
    "throw": "<?php\nfunction f() {\n  throw new Exception('boom');\n}\nf();",
    "broken": "<?php echo 'x' echo;\n",
    "upper": "<?php echo strtoupper(stream_get_contents(STDIN));",
    "args": "<?php echo implode('|', array_slice($argv, 1)), \"\\n\";",
    "text": "<?php echo 'häßlich ☃ 𝄞', \"\\n\";",
    "binary": "<?php for ($i = 0; $i < 256; $i++) echo chr($i);",
    "big": f"<?php echo str_repeat('x', {BIG});",
    "loop": "<?php $p = proc_open(['sleep', '1000'], [], $pipes); echo \"before\\n\"; while (true);",
    "children": "<?php passthru('echo child'); echo \"parent\\n\";",
    "write": "<?php file_put_contents('made', '12345');",
    "local": "<?php include 'local.php'; require './folder/deep.php'; echo \"$value $deep\\n\";",
}

RUBY = {
    "hello": "puts 'hello'",
    "fail": "warn 'bad'\nexit 3",
    "throw": "def f\n  raise 'boom'\nend\n\nf",
    "broken": "puts 'x' +\n",
    "upper": "print STDIN.read.upcase",
    "args": "puts ARGV.join('|')",
    "text": "puts 'häßlich ☃ 𝄞'",
    "binary": "print (0..255).to_a.pack('C*')",
    "big": f"print 'x' * {BIG}",
    "loop": "spawn('sleep 1000')\nputs 'before'\nloop {}",
    "children": "fork { puts 'child' }\nProcess.wait\nputs 'parent'",
    "write": "File.write('made', '12345')",
    "local": "require_relative 'local'\nrequire './folder/deep'\nputs \"#{VALUE} #{DEEP}\"",
}

GO_MAIN = "package main\n\nimport (\n%s)\n\nfunc main() {\n%s}\n"


def go(imports, body):
    return GO_MAIN % ("".join(f'\t"{i}"\n' for i in imports.split()), body)


GO = {
    "hello": go("fmt", 'fmt.Println("hello")\n'),
    "fail": go("fmt os", 'fmt.Fprintln(os.Stderr, "bad")\nos.Exit(3)\n'),
    "throw": go("", 'f()\n') + '\nfunc f() { panic("boom") }\n',
    "broken": go("fmt", 'fmt.Println(missing)\n'),
    "upper": go("io os strings", "b, _ := io.ReadAll(os.Stdin)\n"
                                 "os.Stdout.WriteString(strings.ToUpper(string(b)))\n"),
    "args": go("fmt os strings", 'fmt.Println(strings.Join(os.Args[1:], "|"))\n'),
    "text": go("fmt", 'fmt.Println("häßlich ☃ 𝄞")\n'),
    "binary": go("os", "for i := 0; i < 256; i++ { os.Stdout.Write([]byte{byte(i)}) }\n"),
    "big": go("os strings", f'os.Stdout.WriteString(strings.Repeat("x", {BIG}))\n'),
    "loop": go("fmt os/exec", 'exec.Command("sleep", "1000").Start()\nfmt.Println("before")\n'
                              "for {}\n"),
    "children": go("fmt os os/exec", 'c := exec.Command("echo", "child")\nc.Stdout = os.Stdout\n'
                                     'c.Run()\nfmt.Println("parent")\n'),
    "write": go("os", 'os.WriteFile("made", []byte("12345"), 0644)\n'),
    "local": go("fmt example.org/m/local", "fmt.Println(local.Value, 2)\n"),
}

SAMPLES = {"python": PYTHON, "javascript": JAVASCRIPT, "typescript": TYPESCRIPT, "bash": SH,
           "sh": SH, "php": PHP, "ruby": RUBY, "go": GO}

# Files of the working directory that `local` uses: it prints "1 2".
LOCAL = {
    "local.py": "VALUE = 1\n", "folder/deep.py": "VALUE = 2\n",
    "local.js": "exports.VALUE = 1\n", "folder/deep.js": "exports.VALUE = 2\n",
    "typed.ts": "export const VALUE: number = 1\n",
    "local.sh": "VALUE=1\n",
    "local.php": "<?php $value = 1;\n", "folder/deep.php": "<?php $deep = 2;\n",
    "local.rb": "VALUE = 1\n", "folder/deep.rb": "DEEP = 2\n",
    "go.mod": "module example.org/m\n\ngo 1.19\n",
    "local/local.go": "package local\n\nconst Value = 1\n",
}

# What an uncaught error says of where it was: the name of the file and the line.
WHERE = {"python": 'main-code.py", line 2', "javascript": "main-code.js:2",
         "typescript": "main-code.ts:2", "php": "main-code.php:3", "ruby": "main-code.rb:2",
         "go": "main.go:10"}
