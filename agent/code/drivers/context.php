<?php
// One interpreter of a code context, in PHP: runs what comes over its channel in one scope that stays.
// Started with the channel as descriptor 3, over which this text came (as $nook_channel); `context.py`
// says how requests and events look.

final class NookContext
{
    const TEXT_MAX = 1 << 20;
    const FORMS = ['_repr_html_' => 'text/html', '_repr_markdown_' => 'text/markdown',
        '_repr_svg_' => 'image/svg+xml', '_repr_png_' => 'image/png', '_repr_jpeg_' => 'image/jpeg',
        '_repr_latex_' => 'text/latex'];
    public static $channel;
    public static $pid;
    public static $number = 0;
    public static $running = false;

    static function clean(string $text): string
    {
        if (preg_match('//u', $text) !== 1)
            $text = function_exists('mb_scrub') ? mb_scrub($text, 'UTF-8')
                : preg_replace('/[\x80-\xff]/', '?', $text);
        return str_replace("\0", "\u{fffd}", $text);
    }

    static function short(string $text, int $max): string
    {
        $size = strlen($text);
        return $size > $max ? self::clean(substr($text, 0, $max)) . "... ($size bytes)"
            : self::clean($text);
    }

    static function send(array $event): void
    {
        if (getmypid() !== self::$pid)
            return;
        $data = json_encode($event, JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES) . "\n";
        for ($at = 0; $at < strlen($data); $at += $n) {
            $n = fwrite(self::$channel, substr($data, $at));
            if ($n === false || $n === 0)
                return;
        }
        fflush(self::$channel);
    }

    static function flush(): void
    {
        while (ob_get_level() > 0)
            ob_end_flush();
        flush();
    }

    static function bundle($value): array
    {
        try {
            $out = ['text/plain' => self::short(var_export($value, true), self::TEXT_MAX)];
        } catch (Throwable $error) {
            $out = ['text/plain' => get_debug_type($value)];
        }
        foreach (is_object($value) ? self::FORMS : [] as $name => $mime) {
            if (!method_exists($value, $name))
                continue;
            try {
                $data = $value->$name();
            } catch (Throwable $error) {
                if ($error instanceof NookInterrupt)
                    throw $error;
                continue;
            }
            if (is_string($data) && strlen($data) <= 2 << 20)
                $out[$mime] = preg_match('/png|jpeg/', $mime) && preg_match('//u', $data) !== 1
                    ? base64_encode($data) : self::clean($data);
        }
        return $out;
    }

    static function describe(Throwable $error): array
    {
        $name = get_class($error);
        $line = $error instanceof NookInterrupt ? $error->getTrace()[0]['line'] ?? 0 : $error->getLine();
        $trace = "$name: {$error->getMessage()} in cell-" . self::$number . ":$line\n";
        foreach ($error->getTrace() as $at) {
            if (!in_array($at['function'] ?? '', ['eval', '{closure}']) || isset($at['class']))
                $trace .= '  in ' . ($at['class'] ?? '') . ($at['type'] ?? '') . $at['function']
                    . "() called at line " . ($at['line'] ?? '?') . "\n";
        }
        return ['name' => self::clean($name), 'value' => self::short($error->getMessage(), 8000),
            'traceback' => self::short($trace, 20000)];
    }

    static function read(int $count): string
    {
        for ($data = ''; strlen($data) < $count; $data .= $more) {
            $more = fread(self::$channel, $count - strlen($data));
            if ($more === false || $more === '')
                exit(0);
        }
        return $data;
    }

    static function done(int $status, $result, $error): void
    {
        self::$running = false;
        self::flush();
        self::send(['event' => 'done', 'run' => self::$number, 'status' => $status,
            'result' => $result, 'error' => $error]);
    }

    // With its last statement ended; a text outside of the code has none.
    static function closed(string $code): string
    {
        $tokens = token_get_all("<?php $code");
        $last = end($tokens);
        return is_array($last) && $last[0] === T_INLINE_HTML ? $code : $code . "\n;";
    }

    // The last statement is an expression where that compiles.
    static function prepare(string $code): array
    {
        $code = preg_replace('/^\s*(<\?php\b|<\?)/', '', $code);
        $code = preg_replace('/\?>\s*$/', '', $code);
        $tokens = token_get_all("<?php $code");
        $depth = 0;
        $cut = $at = 0;
        $last = count($tokens) - 1;
        while ($last > 0 && (is_array($tokens[$last])
            ? in_array($tokens[$last][0], [T_WHITESPACE, T_COMMENT, T_DOC_COMMENT])
            : $tokens[$last] === ';'))
            $last--;
        foreach ($tokens as $i => $token) {
            $text = is_array($token) ? $token[1] : $token;
            $at += strlen($text);
            if ($text === '{' || $text === '(' || $text === '[' || $text === '${' || $text === '{$'
                || $text === '#[')
                $depth++;
            if ($text === '}' || $text === ')' || $text === ']')
                $depth--;
            if ($depth === 0 && $i < $last && ($text === ';' || $text === '}'))
                $cut = $at;
        }
        $cut = max(0, $cut - 6);
        $end = rtrim(substr($code, $cut), "; \t\n\r");
        $word = '/^\s*(echo|print|return|if|for|foreach|while|do|switch|function|class|abstract|final|'
            . 'interface|trait|enum|namespace|use|const|global|static|unset|throw|try|declare|goto|'
            . 'break|continue|exit|die|include|require|include_once|require_once)\b(?!\s*\()/i';
        $assigns = '/^\s*\$\w+(\[[^\]]*\]|->\w+)*\s*([-+*\/.%&|^?]|\*\*|<<|>>|\?\?)?=(?![=>])/';
        if (trim($end) === '' || preg_match($word, $end) || preg_match($assigns, $end))
            return [self::closed($code), null];
        $lines = str_repeat("\n", substr_count(substr($code, 0, $cut), "\n"));
        return [substr($code, 0, $cut), "{$lines}return ($end\n);"];
    }

    static function compiles(string $code): bool
    {
        try {
            token_get_all("<?php $code", TOKEN_PARSE);
            return true;
        } catch (ParseError $error) {
            return false;
        }
    }

    // A request, as [code, expression or null].
    static function next(): array
    {
        do {
            $line = fgets(self::$channel);
        } while ($line === "ok\n");
        if ($line === false)
            exit(0);
        [, $number, $count, $input] = explode(' ', trim($line));
        self::$number = (int)$number;
        $code = self::read((int)$count);
        [$first, $last] = self::prepare($code);
        if ($last !== null && !(self::compiles($first) && self::compiles($last)))
            [$first, $last] = [self::closed($code), null];
        if ($last === null)
            $first = preg_replace('/^\s*(<\?php\b|<\?)/', '', preg_replace('/\?>\s*;?\s*$/', ';', $first));
        $unread = stream_get_meta_data(STDIN)['unread_bytes']; // of what an earlier run brought
        if ($unread > 0)
            fread(STDIN, $unread);
        self::$running = true;
        return [$first, $last];
    }

    static function fail(Throwable $error): void
    {
        if (getmypid() !== self::$pid) {
            fwrite(STDERR, self::describe($error)['traceback']);
            self::leave();
        }
        self::done($error instanceof NookInterrupt ? 130 : 1, null, self::describe($error));
    }

    // A child that the code forked has come to its end.
    static function leave(): void
    {
        self::flush();
        posix_kill(getmypid(), SIGKILL);
    }
}

final class NookInterrupt extends Exception
{
}

function display(...$values): void
{
    foreach ($values as $value) {
        NookContext::flush();
        NookContext::send(['event' => 'display', 'data' => NookContext::bundle($value)]);
        if (NookContext::$running && getmypid() === NookContext::$pid)
            fgets(NookContext::$channel);
    }
}

NookContext::$channel = $nook_channel;
NookContext::$pid = getmypid();
if (function_exists('pcntl_async_signals')) {
    pcntl_async_signals(true);
    pcntl_signal(SIGINT, function () {
        if (NookContext::$running)
            throw new NookInterrupt('the code was interrupted');
    });
}
NookContext::send(['event' => 'ready']);
unset($nook_channel, $nook_text);
while (true) {
    $nook_code = NookContext::next();
    try {
        $nook_value = eval($nook_code[0]);
        if ($nook_code[1] !== null)
            $nook_value = eval($nook_code[1]);
        if (getmypid() !== NookContext::$pid)
            NookContext::leave();
        $nook_result = $nook_value === null ? null : NookContext::bundle($nook_value);
        NookContext::done(0, $nook_result, null);
    } catch (Throwable $nook_error) {
        NookContext::fail($nook_error);
    }
    unset($nook_code, $nook_value, $nook_result, $nook_error);
}
