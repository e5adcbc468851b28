// One interpreter of a code context, in node: runs what comes over its channel in one global scope
// that stays. Started with the channel as descriptor 3, over which this text came; `context.py` says
// how requests and events look. The value of this text is a function of (require, import).
(function (require, load) {
  'use strict';
  const fs = require('fs'), net = require('net'), path = require('path'), util = require('util');
  const vm = require('vm'), inspector = require('inspector'), Module = require('module');

  // The code may put others in their place.
  const { readSync, writeSync } = fs, { stringify } = JSON, Later = Promise;
  const exit = process.exit.bind(process);

  const TEXT_MAX = 1 << 20, BUNDLE_MAX = 6 << 20, ERROR_MAX = 10000;
  const FD = 3;
  const pid = process.pid;
  const session = new inspector.Session();
  const slot = { value: undefined };
  const wait = new Int32Array(new SharedArrayBuffer(4));
  let running = null; // how the run that is on can be broken off

  // All at once, also where the other side does not read: what is queued in here would die with us.
  function send(event) {
    let data = Buffer.from(stringify(event) + '\n');
    while (data.length > 0) {
      try {
        data = data.subarray(writeSync(FD, data));
      } catch (error) {
        if (error.code === 'EPIPE' || error.code === 'ECONNRESET') return;
        if (error.code !== 'EAGAIN') throw error;
        Atomics.wait(wait, 0, 0, 1);
      }
    }
  }

  // While code runs nothing else comes than the answer to what it shows.
  function waitOk() {
    const byte = Buffer.alloc(1);
    while (byte[0] !== 10) {
      try {
        if (readSync(FD, byte) === 0) return;
      } catch (error) {
        if (error.code !== 'EAGAIN') return;
        Atomics.wait(wait, 0, 0, 1);
      }
    }
  }

  function clean(text) {
    const whole = text.toWellFormed ? text.toWellFormed() : Buffer.from(text).toString();
    return whole.replace(/\0/g, '\ufffd');
  }

  function short(text, max) {
    text = clean(String(text));
    return text.length > max ? `${clean(text.slice(0, max))}... (${text.length} characters)` : text;
  }

  // JSON that is strict enough to be told, or undefined.
  function plain(value, depth = 0) {
    if (depth > 20 || value === undefined) return undefined;
    if (typeof value === 'string') return clean(value);
    if (value === null || typeof value === 'boolean' || Number.isFinite(value)) return value;
    if (Array.isArray(value)) return value.map((v) => plain(v, depth + 1) ?? null);
    if (typeof value !== 'object') return undefined;
    const out = {};
    for (const [key, v] of Object.entries(value)) out[clean(key)] = plain(v, depth + 1) ?? null;
    return out;
  }

  const forms = [
    ['_repr_html_', 'text/html'], ['_repr_markdown_', 'text/markdown'],
    ['_repr_svg_', 'image/svg+xml'], ['_repr_png_', 'image/png'], ['_repr_jpeg_', 'image/jpeg'],
    ['_repr_latex_', 'text/latex'], ['_repr_json_', 'application/json'],
  ];

  function richer(value, out) {
    for (const [name, mime] of forms) {
      if (typeof value[name] !== 'function') continue;
      let data = value[name]();
      if (Buffer.isBuffer(data) || data instanceof Uint8Array) data = Buffer.from(data).toString('base64');
      if (mime === 'application/json') out[mime] = plain(data);
      else if (typeof data === 'string') out[mime] = clean(data);
    }
    const more = typeof value._repr_mimebundle_ === 'function' ? value._repr_mimebundle_() : {};
    for (const [mime, data] of Object.entries(more || {})) out[mime] = plain(data);
  }

  function bundle(value) {
    const out = { 'text/plain': '' }, told = {};
    try {
      out['text/plain'] = short(util.inspect(value), TEXT_MAX);
    } catch (error) {
      out['text/plain'] = '[value that cannot be inspected]';
    }
    try {
      if (value !== null && typeof value === 'object') richer(value, out);
    } catch (error) { /* it is what it is as text */ }
    let left = BUNDLE_MAX;
    for (const [mime, data] of Object.entries(out).slice(0, 32)) {
      const size = data === undefined ? Infinity : Buffer.byteLength(stringify(data));
      if (size > left || !/^[!-~]+\/[!-~]+$/.test(mime) || mime.length > 128) continue;
      left -= size;
      told[mime] = data;
    }
    return told;
  }

  function describe(error) {
    try {
      return describeOwn(error);
    } catch (other) { // what it says of itself cannot be asked
      return { name: 'Thrown', value: '', traceback: '' };
    }
  }

  function describeOwn(error) {
    if (!(error instanceof Error) && !(error && typeof error.stack === 'string'))
      return { name: 'Thrown', value: short(util.inspect(error), 4000), traceback: '' };
    const lines = String(error.stack).split('\n');
    const own = lines.findIndex((line) => /node:inspector|\(?context\.js:\d/.test(line));
    const stack = (own < 0 ? lines : lines.slice(0, own)).join('\n');
    return { name: short(error.name || 'Error', 200), value: short(error.message, 4000),
      traceback: short(stack, ERROR_MAX) };
  }

  // What the inspector holds, as the value itself.
  function grab(remote) {
    if (!remote || !('objectId' in remote)) {
      if (remote && remote.unserializableValue !== undefined)
        return vm.runInThisContext(remote.unserializableValue);
      return remote ? remote.value : undefined;
    }
    slot.value = undefined;
    session.post('Runtime.callFunctionOn', { objectId: remote.objectId, silent: true,
      functionDeclaration: `function () { globalThis[Symbol.for('nook.slot')].value = this; }` });
    session.post('Runtime.releaseObject', { objectId: remote.objectId });
    return slot.value instanceof Symbol ? slot.value.valueOf() : slot.value;
  }

  // Modules of both kinds, as if the code lay in the working directory.
  function prepare(code) {
    return code.replace(/^#!.*/, '')
      .replace(/^(\s*)import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)|(\{[^}]*\}))?\s*(?:from\s*)?(['"])([^'"\n]+)\5\s*;?[ \t]*$/gm,
        (all, indent, main, star, names, quote, from) => {
          if (!main && !star && !names) return `${indent}await import(${quote}${from}${quote});`;
          const parts = [];
          if (main) parts.push(`default: ${main}`);
          if (names) parts.push(names.slice(1, -1).trim().replace(/\s+as\s+/g, ': '));
          const got = `await import(${quote}${from}${quote})`;
          return `${indent}const ${star || `{ ${parts.join(', ')} }`} = ${got};`;
        })
      .replace(/(^|[^.\w$'"`])import\s*\(/g, '$1globalThis[Symbol.for("nook.import")](');
  }

  // The call is a script of its own because only such a one can be broken off by a signal.
  function evaluate(code, name) {
    return new Later((resolve, reject) => {
      slot.ask = () => session.post('Runtime.evaluate', { replMode: true, awaitPromise: true,
        expression: `${prepare(code)}\n//# sourceURL=${name}` }, (failed, got) => {
        if (failed) reject(failed);
        else if (got.exceptionDetails) reject(grab(got.exceptionDetails.exception));
        else resolve(grab(got.result));
      });
      running = reject;
      try {
        call.runInThisContext({ breakOnSigint: true });
      } catch (error) {
        reject(error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? interrupted() : error);
      }
    });
  }
  const call = new vm.Script(`globalThis[Symbol.for('nook.slot')].ask()`, { filename: 'context.js' });

  function interrupted() {
    const error = new Error('the code was interrupted');
    error.name = 'Interrupted';
    error.stack = `${error.name}: ${error.message}`;
    return error;
  }

  function hidden(name, value) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  }

  function setUp() {
    const here = path.join(process.cwd(), 'cell.js');
    hidden(Symbol.for('nook.slot'), slot);
    hidden(Symbol.for('nook.import'), (what) => {
      if (!/^\.{0,2}\//.test(what)) {
        try {
          return load(require('url').pathToFileURL(globalThis.require.resolve(what)).href)
            .catch(() => load(what));
        } catch (error) {
          return load(what);
        }
      }
      return load(require('url').pathToFileURL(path.resolve(what)).href);
    });
    hidden('require', Module.createRequire(here));
    hidden('module', new Module(here));
    hidden('exports', globalThis.module.exports);
    hidden('display', (...values) => {
      for (const value of values) {
        send({ event: 'display', data: bundle(value) });
        if (running) waitOk();
      }
    });
    for (const name of Module.builtinModules)
      if (/^[a-z_]+$/.test(name) && !(name in globalThis))
        Object.defineProperty(globalThis, name, { configurable: true,
          get: () => require(name), set: (value) => hidden(name, value) });
  }

  // What is thrown outside of any run must not end the interpreter.
  function onStray(error) {
    if (running) running(error);
    else process.stderr.write(`Uncaught ${util.inspect(error)}\n`);
  }

  async function run(number, code) {
    const answer = { event: 'done', run: number, status: 0, result: null, error: null };
    try {
      const value = await evaluate(code, `cell-${number}.js`);
      if (value !== undefined) {
        hidden('_', value);
        answer.result = bundle(value);
      }
    } catch (error) {
      answer.error = describe(error);
      answer.status = answer.error.name === 'Interrupted' ? 130 : 1;
    }
    running = null;
    send(answer);
  }

  // Standard input is at its end, or what this run brings: a stream of node's ends only once.
  function giveInput() {
    let stream = null;
    Object.defineProperty(process, 'stdin', { configurable: true, get: () => {
      stream = stream || fs.createReadStream('', { fd: 0, autoClose: false });
      return stream;
    } });
  }

  function serve() {
    const socket = new net.Socket({ fd: FD, readable: true, writable: false });
    let data = Buffer.alloc(0), busy = false;
    const step = async () => {
      if (busy) return;
      const end = data.indexOf(10);
      if (end < 0) return;
      const [word, number, count] = data.toString('latin1', 0, end).split(' ');
      if (word === 'ok') {
        data = data.subarray(end + 1);
        return step();
      }
      if (data.length < end + 1 + Number(count)) return;
      const code = data.toString('utf8', end + 1, end + 1 + Number(count));
      data = Buffer.from(data.subarray(end + 1 + Number(count)));
      busy = true;
      giveInput();
      try {
        await run(Number(number), code);
      } catch (error) { // nobody would ever hear of its end
        fs.writeSync(2, `${util.inspect(error)}\n`);
        exit(1);
      }
      busy = false;
      step();
    };
    socket.on('data', (more) => {
      data = Buffer.concat([data, more]);
      step();
    });
    socket.on('end', () => exit(0));
    socket.on('error', () => exit(0));
  }

  process.argv.splice(1, process.argv.length);
  setUp();
  session.connect();
  process.on('SIGINT', () => running && running(interrupted()));
  process.on('uncaughtException', onStray);
  process.on('unhandledRejection', onStray);
  serve();
  send({ event: 'ready' });
})
