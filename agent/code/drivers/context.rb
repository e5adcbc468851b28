# One interpreter of a code context, in ruby: runs what comes over its channel in one binding that
# stays. Started with the channel as descriptor 3, over which this text came (as `channel`);
# `context.py` says how requests and events look.
require 'json'

module NookContext
  TEXT_MAX = 1 << 20
  BUNDLE_MAX = 6 << 20
  FORMS = {
    _repr_html_: 'text/html', _repr_markdown_: 'text/markdown', _repr_svg_: 'image/svg+xml',
    _repr_png_: 'image/png', _repr_jpeg_: 'image/jpeg', _repr_latex_: 'text/latex',
    to_html: 'text/html'
  }.freeze
  CHANNEL = NOOK_CHANNEL
  CHANNEL.close_on_exec = true
  INPUT = IO.for_fd(0, autoclose: false).dup
  NULL = File.open('/dev/null')
  PID = Process.pid
  LOCK = Mutex.new
  GENERATE = JSON.method(:generate) # the code may put another in its place
  class << self

    def clean(text)
      text.to_s.dup.force_encoding('UTF-8').scrub('?').tr("\0", "\ufffd")
    rescue StandardError
      '?'
    end

    def short(text, max)
      text = clean(text)
      text.length > max ? "#{text[0, max]}... (#{text.length} characters)" : text
    end

    # An interrupt must not cut a line in two.
    def send(event)
      return if Process.pid != PID

      text = "#{GENERATE.call(event)}\n"
      @sending = true
      LOCK.synchronize { CHANNEL.write(text) }
      @sending = false
      raise Interrupt, '' if @late && @running
    end

    def show(value)
      send(event: 'display', data: bundle(value))
      CHANNEL.gets if @running && Thread.current == Thread.main && Process.pid == PID
    end

    def interrupt
      return unless @running
      raise Interrupt, '' unless @sending

      @late = true
    end

    def form(value, name)
      data = value.public_send(name)
      return nil unless data.is_a?(String)

      data.encoding == Encoding::BINARY ? [data].pack('m0') : clean(data)
    rescue StandardError
      nil
    end

    def plain(value)
      short(value.inspect, TEXT_MAX)
    rescue StandardError => error
      "#<a value whose inspect raised #{error.class}>"
    end

    def bundle(value)
      out = { 'text/plain' => plain(value) }
      return out unless Object === value

      left = BUNDLE_MAX - out['text/plain'].bytesize
      FORMS.each do |name, mime|
        next unless !out.key?(mime) && value.respond_to?(name)

        data = form(value, name)
        next if data.nil? || data.bytesize > left

        out[mime] = data
        left -= data.bytesize
      end
      out
    end

    def describe(error)
      lines = error.backtrace || []
      lines = lines[0..(lines.rindex { |line| line.start_with?('cell-') } || -1)]
      lines = lines.reject { |line| line.start_with?('context.rb:', '-e:') }
      head = short(error.message, 4000)
      head = error.class.to_s if head.empty?
      text = "#{lines.first}: #{head} (#{error.class})\n" +
             lines.drop(1).first(80).map { |line| "\tfrom #{line}\n" }.join
      text = "#{head} (#{error.class})\n" if lines.empty?
      { name: clean(error.class.name || 'Error'), value: head, traceback: short(text, 10_000) }
    rescue StandardError
      { name: 'Error', value: '', traceback: '' }
    end

    def evaluate(code, name)
      value = TOPLEVEL_BINDING.eval(code, name, 1)
      return nil if nil.equal?(value)

      TOPLEVEL_BINDING.local_variable_set(:_, value)
      bundle(value)
    end

    def status(error)
      case error
      when nil then 0
      when SystemExit then error.status & 255
      when Interrupt then 130
      else 1
      end
    end

    def run(number, code)
      error = result = nil
      begin
        @late = false
        @running = true
        result = evaluate(code, "cell-#{number}.rb")
        @running = false
      rescue Exception => caught
        @running = false
        error = caught
      end
      end_child(error) if Process.pid != PID
      code = status(error)
      send(event: 'done', run: number, status: code, result: error ? nil : result,
           error: code.zero? ? nil : describe(error))
    end

    # The code forked, and the child came to its end.
    def end_child(error)
      warn describe(error)[:traceback] if error && !error.is_a?(SystemExit)
      exit!(status(error))
    end

    def give_input(given)
      STDIN.reopen(given ? INPUT : File.open('/dev/null')) if given || @given
      $stdin = STDIN
      @given = given
    end

    def serve
      trap('INT') { interrupt }
      @running = @sending = @late = false
      @given = true
      give_input(false)
      send(event: 'ready')
      while (line = CHANNEL.gets)
        next if line == "ok\n"

        _, number, count, given = line.split
        code = CHANNEL.read(count.to_i).to_s.force_encoding('UTF-8')
        give_input(given == '1')
        run(number.to_i, code)
      end
    end
  end
end

# Shows values as rich as they can be.
TOPLEVEL_BINDING.receiver.define_singleton_method(:display) do |*values|
  values.each { |value| NookContext.show(value) }
  nil
end

$stdout.sync = true
$stderr.sync = true
$0 = 'ruby'
$LOAD_PATH.unshift('.')
NookContext.serve
