#include "src/profile/trace.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>

#include "src/stream_text.h"

namespace kiln::rt {
namespace {

void append_text(std::string& out, const std::string& text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", byte);
      out += code;
    } else {
      out += c;
    }
  }
  out += '"';
}

// Nanoseconds as microseconds, exactly.
void append_time(std::string& out, std::int64_t nanoseconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%lld.%03d", static_cast<long long>(nanoseconds / 1000), static_cast<int>(nanoseconds % 1000));
  out += text;
}

void append_three(std::string& out, const char* key, const std::array<std::uint32_t, 3>& d) {
  out += std::string(",\"") + key + "\":[" + std::to_string(d[0]) + "," + std::to_string(d[1]) + "," + std::to_string(d[2]) + "]";
}

class Writer {
 public:
  void name_process(std::size_t process, const std::string& name) { meta("process_name", process, 0, name); }
  void name_track(std::size_t process, std::uint32_t track, const std::string& name) { meta("thread_name", process, track, name); }
  // An event without its end: "args" are open.
  void begin(std::size_t process, std::uint32_t track, const char* kind, const std::string& name, std::int64_t at, std::int64_t length) {
    separate();
    out_ +=
        "{\"ph\":\"X\",\"pid\":" + std::to_string(process) + ",\"tid\":" + std::to_string(track) + ",\"cat\":\"" + kind + "\",\"name\":";
    append_text(out_, name);
    out_ += ",\"ts\":";
    append_time(out_, at);
    out_ += ",\"dur\":";
    append_time(out_, length);
    out_ += std::string(",\"args\":{\"kind\":\"") + kind + "\"";
  }
  void text(const char* key, const std::string& value) {
    out_ += std::string(",\"") + key + "\":";
    append_text(out_, value);
  }
  void number(const char* key, std::uint64_t value) { out_ += std::string(",\"") + key + "\":" + std::to_string(value); }
  void stream(std::uint64_t stream) {
    number("stream", stream_number(stream));
    if (stream_priority(stream) != StreamPriority::Normal)
      text("priority", stream_priority(stream) == StreamPriority::High ? "high" : "low");
  }
  void three(const char* key, const std::array<std::uint32_t, 3>& d) { append_three(out_, key, d); }
  void end() { out_ += "}}"; }
  std::string finish(std::uint64_t dropped) {
    return "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped\":\"" + std::to_string(dropped) + "\"},\"traceEvents\":[\n" + out_ +
           "\n]}\n";
  }

 private:
  void separate() {
    if (!out_.empty()) out_ += ",\n";
  }
  void meta(const char* what, std::size_t process, std::uint32_t track, const std::string& name) {
    separate();
    out_ += std::string("{\"ph\":\"M\",\"name\":\"") + what + "\",\"pid\":" + std::to_string(process) +
            ",\"tid\":" + std::to_string(track) + ",\"args\":{\"name\":";
    append_text(out_, name);
    out_ += "}}";
  }
  std::string out_;
};

std::string track_name(const std::set<std::uint64_t>& streams, std::uint32_t queue) {
  if (streams.empty()) return "queue " + std::to_string(queue);
  std::string name = streams.size() == 1 ? "stream" : "streams";
  for (const std::uint64_t stream : streams) name += (name.back() == 'm' || name.back() == 's' ? " " : ", ") + stream_name(stream);
  return name;
}

void write_device(Writer& out, std::size_t process, std::int64_t start, DeviceTrace& device) {
  std::vector<TracedOperation>& all = device.operations;
  for (TracedOperation& o : all) {  // the clocks of host and device are not known to the last microsecond
    o.begin = std::max(o.begin, start);
    o.end = std::max(o.end, o.begin);
  }
  std::sort(all.begin(), all.end(), [](const TracedOperation& a, const TracedOperation& b) {
    return a.queue != b.queue ? a.queue < b.queue : a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  out.name_process(process, device.label);
  for (std::size_t first = 0; first < all.size();) {
    std::size_t last = first;
    std::set<std::uint64_t> streams;
    for (; last < all.size() && all[last].queue == all[first].queue; ++last)
      if (all[last].has_stream) streams.insert(all[last].stream);
    out.name_track(process, all[first].queue, track_name(streams, all[first].queue));
    for (; first < last; ++first) {
      TracedOperation& o = all[first];
      if (first + 1 < last) o.end = std::min(o.end, all[first + 1].begin);
      out.begin(process, o.queue, o.kind, o.name, o.begin - start, o.end - o.begin);
      if (!o.place.empty()) out.text("source", o.place);
      if (o.has_stream) out.stream(o.stream);
      if (o.has_grid) {
        if (o.grid_on_device) out.text("grid", "from the device");
        else out.three("grid", o.grid);
        out.three("block", o.block);
      } else if (o.operations != 0) {
        out.number("operations", o.operations);
      } else {
        out.number("bytes", o.bytes);
      }
      out.end();
    }
  }
}

}  // namespace

std::int64_t host_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string chrome_trace(std::int64_t start, std::vector<DeviceTrace>& devices, std::vector<TracedSpan>& host, std::uint64_t dropped) {
  Writer out;
  out.name_process(0, "host");
  std::sort(host.begin(), host.end(), [](const TracedSpan& a, const TracedSpan& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.begin != b.begin ? a.begin < b.begin : a.end > b.end;  // what holds others first
  });
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (i == 0 || host[i].thread != host[i - 1].thread) out.name_track(0, host[i].thread, "thread " + std::to_string(host[i].thread));
    out.begin(0, host[i].thread, host[i].kind, host[i].name, std::max<std::int64_t>(0, host[i].begin - start),
              std::max<std::int64_t>(0, host[i].end - host[i].begin));
    if (!host[i].kernel.empty()) out.text("kernel", host[i].kernel);
    if (!host[i].place.empty()) out.text("source", host[i].place);
    if (host[i].has_stream) out.stream(host[i].stream);
    out.end();
  }
  for (std::size_t i = 0; i < devices.size(); ++i) write_device(out, i + 1, start, devices[i]);
  return out.finish(dropped);
}

}  // namespace kiln::rt
