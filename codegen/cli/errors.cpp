#include <algorithm>

#include "command.h"

namespace kiln::cli {

std::string joined(const std::string& text) {
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::size_t from = at;
    while (from < end && text[from] == ' ') ++from;
    if (from < end) line += (line.empty() ? "" : line.ends_with(':') ? " " : "; ") + text.substr(from, end - from);
    at = end + 1;
  }
  return line;
}

namespace {

// What only says that something before it went wrong: it is not why.
bool leads_on(ErrorCode code) {
  switch (code) {
    case ErrorCode::Unwritten:
    case ErrorCode::Several:
    case ErrorCode::Skipped:
    case ErrorCode::CompileDevicePoisoned:
    case ErrorCode::LaunchDevicePoisoned:
    case ErrorCode::IoDevicePoisoned:
    case ErrorCode::DevicePoisoned: return true;
    default: return false;
  }
}

}  // namespace

const Error& root_of(const Error& error) {
  const Error* root = &error;
  while (!root->causes().empty() && leads_on(root->code())) root = &root->causes()[0];
  return *root;
}

std::string one_line(const Error& error) {
  const Error::Data& d = root_of(error).data();
  std::string text;
  if (!d.place.empty() && d.message.find(d.place) == std::string::npos) text += d.place + ": ";
  if (!d.kernel.empty() && d.message.find(d.kernel) == std::string::npos) text += "kernel '" + d.kernel + "': ";
  text += d.message.empty() ? name(d.code) : d.message;
  if (const std::string numbers = root_of(error).numbers(); !d.bounds && !numbers.empty()) text += " (" + numbers + ")";
  for (const Error& cause : d.causes) text += ": " + one_line(cause);
  return text;
}

}  // namespace kiln::cli
