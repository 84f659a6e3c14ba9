// The body of kiln/runtime/environment.h: environments as tools see them.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <limits>
#include <mutex>
#include <utility>

#include "kiln/ir/text.h"
#include "kiln/runtime/environment.h"
#include "src/config.h"
#include "src/environment/environment.h"
#include "src/make_error.h"
#include "src/server.h"

namespace kiln {

using rt::StoreFile;
using rt::StoreRow;

struct EnvironmentFile::State {
  std::mutex mutex;  // one thread at a time; nobody launches through here
  std::string path;
  std::unique_ptr<StoreFile> file;
};

namespace {

Error refused(const std::string& path, const std::string& why, ErrorCode code = ErrorCode::Validation) {
  return make_error(code, "Environment", "the environment '" + path + "' cannot be used: " + why);
}

template <class Work>
auto guarded(const std::string& path, Work&& work) -> decltype(work()) {
  return rt::or_no_memory([&]() -> decltype(work()) {
    try {
      return work();
    } catch (const rt::Unusable& e) { return refused(path, e.what()); } catch (const rt::SqlFailure& e) {
      return refused(path, e.what());
    }
  });
}

// The file of what a person names.
std::string file_of(const std::string& path) {
  struct stat s{};
  return stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode) ? path + "/" + rt::kStoreName : path;
}
std::string folder_of(const std::string& file) {
  const std::string above = std::filesystem::path(file).parent_path().string();
  return above.empty() ? "." : above;
}

std::unique_ptr<StoreFile> open_file(const std::string& file, StoreFile::As as) {
  return std::make_unique<StoreFile>(file, as, rt::on_local_disk(folder_of(file)));
}

// One that may be written is opened so, also to be read: whoever works on it meanwhile is seen then.
StoreFile::As to_read(const std::string& file) {
  return eaccess(file.c_str(), W_OK) == 0 && eaccess(folder_of(file).c_str(), W_OK | X_OK) == 0 ? StoreFile::As::Write
                                                                                                : StoreFile::As::Read;
}

bool takes(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& wanted) {
           return name == wanted || (name.size() > wanted.size() + 2 && name.ends_with("::" + wanted));
         });
}
bool takes(const EnvironmentFilter& filter, const rt::Entry& entry) {
  return takes(filter.kernels, entry.kernel) &&
         (filter.archs.empty() || std::find(filter.archs.begin(), filter.archs.end(), entry.arch) != filter.archs.end());
}

EnvironmentEntry told(const StoreRow& row) {
  EnvironmentEntry e;
  e.id = rt::hex(row.entry.hash);
  e.kernel = row.entry.kernel;
  e.options.arch = row.entry.arch;
  e.bytes = row.entry.bytes();
  e.created = row.created;
  e.used = row.used;
  if (const auto bytes = rt::unpack(row.entry.key))
    if (const auto key = rt::read_program_key(*bytes)) {
      e.options = key->options;
      e.build_id = key->build_id;
      e.llvm_version = key->llvm_version;
      const rt::ProgramKey own;
      e.of_this_kiln = e.build_id == own.build_id && e.llvm_version == own.llvm_version && key->interface_version == own.interface_version;
    }
  if (const auto bytes = rt::unpack(row.entry.code))
    if (const auto code = rt::read_compiled_code(*bytes)) e.code_bytes = code->code.size();
  return e;
}

// Whole entries, or an error that names the first that is not.
Result<std::vector<StoreRow>> sound_rows(StoreFile& file, const std::string& path, const EnvironmentFilter& filter) {
  std::vector<StoreRow> rows;
  std::string wrong;
  file.each("", [&](const StoreRow& row) {
    if (!takes(filter, row.entry)) return true;
    if (const std::string why = rt::wrong_in(row.entry); !why.empty()) {
      wrong = "the entry " + rt::hex(row.entry.hash) + " of kernel '" + row.entry.kernel + "' is damaged: " + why;
      return false;
    }
    rows.push_back(row);
    return true;
  });
  if (!wrong.empty()) return refused(path, wrong);
  return rows;
}

}  // namespace

Result<EnvironmentReport> environment_report() {
  return rt::or_no_memory([]() -> Result<EnvironmentReport> {
    if (auto ok = rt::check_configuration(); !ok.has_value()) return ok.error();
    const rt::Places places = rt::process_places();
    EnvironmentReport report{.off = places.off, .problem = places.problem, .most_bytes = rt::process_environment_bytes(), .layers = {}};
    for (const rt::LayerPlace& place : places.layers) {
      EnvironmentLayer layer;
      layer.path = place.path;
      layer.writable = place.writable;
      struct stat s{};
      const bool there = stat(place.path.c_str(), &s) == 0;
      layer.file = place.writable || (there && S_ISDIR(s.st_mode)) ? place.path + "/" + rt::kStoreName : place.path;
      layer.exists = rt::file_id(layer.file).has_value();
      if (there && place.writable && !S_ISDIR(s.st_mode)) layer.problem = "it is a file, and has to be a folder";
      if (there && layer.problem.empty()) layer.problem = rt::distrust(place.path);
      if (layer.exists && layer.problem.empty()) layer.problem = rt::distrust(layer.file);
      if (!layer.exists && layer.problem.empty()) {
        if (!place.writable) layer.problem = "there is no environment";
        else if (there && eaccess(place.path.c_str(), W_OK | X_OK) != 0) layer.problem = "it cannot be written, and there is nothing in it";
        else if (!there && !rt::file_id(folder_of(place.made.front())))
          layer.problem = "'" + place.made.front() + "' cannot be made: " + std::strerror(ENOENT);
      }
      if (layer.exists && layer.problem.empty()) {
        const auto looked = guarded(layer.file, [&]() -> Result<void> {
          const auto file = open_file(layer.file, to_read(layer.file));
          layer.entries = file->count();
          layer.bytes = file->bytes();
          return {};
        });
        if (!looked.has_value()) layer.problem = looked.error().data().message;
      }
      report.layers.push_back(std::move(layer));
    }
    return report;
  });
}

Result<EnvironmentFile> EnvironmentFile::open(const std::string& path, For purpose) {
  return guarded(path, [&]() -> Result<EnvironmentFile> {
    auto state = std::make_shared<State>();
    state->path = file_of(path);
    if (!rt::file_id(state->path)) return refused(path, "there is no environment", ErrorCode::NotFound);
    const rt::FolderLock lock(folder_of(state->path));  // nobody replaces it meanwhile
    state->file = open_file(state->path, purpose == For::Changing ? StoreFile::As::Write : to_read(state->path));
    return EnvironmentFile(std::move(state));
  });
}

Result<EnvironmentFile> EnvironmentFile::make(const std::string& folder) {
  return guarded(folder, [&]() -> Result<EnvironmentFile> {
    rt::LayerPlace place{folder, true, {folder}};
    for (const rt::LayerPlace& known : rt::process_places().layers)
      if (known.path == folder) place = known;
    if (const std::string why = rt::make_folders(place); !why.empty()) return refused(folder, why);
    if (const std::string why = rt::distrust(folder); !why.empty()) return refused(folder, why);
    auto state = std::make_shared<State>();
    state->path = folder + "/" + rt::kStoreName;
    const rt::FolderLock lock(folder);
    if (!lock.held()) return refused(folder, "another process has been opening it for seconds");
    state->file = open_file(state->path, StoreFile::As::Create);
    return EnvironmentFile(std::move(state));
  });
}

const std::string& EnvironmentFile::path() const { return state_->path; }

Result<std::vector<EnvironmentEntry>> EnvironmentFile::list(const EnvironmentFilter& filter) const {
  const std::lock_guard lock(state_->mutex);
  return guarded(path(), [&]() -> Result<std::vector<EnvironmentEntry>> {
    std::vector<EnvironmentEntry> all;
    state_->file->each("", [&](const StoreRow& row) {
      if (takes(filter, row.entry)) all.push_back(told(row));
      return true;
    });
    return all;
  });
}

Result<std::vector<EnvironmentEntry>> EnvironmentFile::verify() const {
  const std::lock_guard lock(state_->mutex);
  return guarded(path(), [&]() -> Result<std::vector<EnvironmentEntry>> {
    std::vector<EnvironmentEntry> bad;
    if (const std::string wrong = state_->file->check_pages(); !wrong.empty()) {
      bad.emplace_back();
      bad.back().wrong = wrong;
    }
    state_->file->each("", [&](const StoreRow& row) {
      if (const std::string wrong = rt::wrong_in(row.entry); !wrong.empty()) {
        bad.push_back(told(row));
        bad.back().wrong = wrong;
      }
      return true;
    });
    return bad;
  });
}

Result<std::uint64_t> EnvironmentFile::prune(std::uint64_t most_bytes, std::int64_t unused_seconds) {
  const std::lock_guard lock(state_->mutex);
  return guarded(path(), [&]() -> Result<std::uint64_t> {
    const std::int64_t now = std::time(nullptr);
    const std::uint64_t gone = state_->file->prune(unused_seconds < now ? now - unused_seconds : 0, most_bytes);
    state_->file->tidy();
    return gone;
  });
}

Result<std::uint64_t> EnvironmentFile::drop_damaged() {
  const std::lock_guard lock(state_->mutex);
  return guarded(path(), [&]() -> Result<std::uint64_t> {
    std::vector<std::int64_t> bad;
    state_->file->each("", [&](const StoreRow& row) {
      if (!rt::wrong_in(row.entry).empty()) bad.push_back(row.id);
      return true;
    });
    for (const std::int64_t id : bad) state_->file->drop(id);
    return bad.size();
  });
}

Result<std::uint64_t> EnvironmentFile::clear() {
  const std::lock_guard lock(state_->mutex);
  return guarded(path(), [&]() -> Result<std::uint64_t> {
    const std::uint64_t gone = state_->file->clear();
    state_->file->tidy();
    return gone;
  });
}

Result<std::uint64_t> EnvironmentFile::import_from(const std::string& from) {
  const auto rows = guarded(from, [&]() -> Result<std::vector<StoreRow>> {
    const std::string file = file_of(from);
    if (!rt::file_id(file)) return refused(from, "there is no environment", ErrorCode::NotFound);
    if (rt::file_id(file) == rt::file_id(path())) return refused(from, "it is the one that is imported to");
    return sound_rows(*open_file(file, to_read(file)), from, {});
  });
  if (!rows.has_value()) return rows.error();
  const std::lock_guard lock(state_->mutex);
  return guarded(path(), [&]() -> Result<std::uint64_t> {
    std::uint64_t came = 0;
    const std::uint64_t most = rt::process_environment_bytes();
    // The least used first, so that those are what the size bound costs.
    for (auto row = rows->rbegin(); row != rows->rend(); ++row) came += state_->file->put(*row, most);
    return came;
  });
}

Result<std::uint64_t> EnvironmentFile::export_to(const std::string& to, const EnvironmentFilter& filter) const {
  const auto rows = [&] {
    const std::lock_guard lock(state_->mutex);
    return guarded(path(), [&]() -> Result<std::vector<StoreRow>> { return sound_rows(*state_->file, path(), filter); });
  }();
  if (!rows.has_value()) return rows.error();
  return guarded(to, [&]() -> Result<std::uint64_t> {
    const std::string unfinished = to + "." + std::to_string(getpid()) + ".kiln-tmp";
    const auto forget = [&] {
      unlink(unfinished.c_str());
      rt::remove_beside(unfinished);
    };
    forget();
    try {
      StoreFile file(unfinished, StoreFile::As::Exchanged);
      for (auto row = rows->rbegin(); row != rows->rend(); ++row)
        if (!file.put(*row, std::numeric_limits<std::int64_t>::max())) return refused(to, "an entry is too large");
    } catch (...) {
      forget();
      throw;
    }
    if (std::rename(unfinished.c_str(), to.c_str()) != 0) {
      const int why = errno;
      forget();
      return refused(to, std::strerror(why));
    }
    return rows->size();
  });
}

Result<EnvironmentAnswer> environment_why(const EnvironmentQuestion& question) {
  return rt::or_no_memory([&]() -> Result<EnvironmentAnswer> {
    auto report = environment_report();
    if (!report.has_value()) return report.error();
    rt::ProgramKey wanted;
    wanted.kernel_text = ir::print(question.kernel.kernel);
    wanted.options = question.options;
    const rt::Overlooked overlooked{question.any_alignment, question.any_ptx_version, question.any_warps};
    EnvironmentAnswer answer;
    rt::Nearest nearest;
    for (const EnvironmentLayer& layer : report->layers) {
      if (!layer.exists || !layer.problem.empty()) continue;
      const auto looked = guarded(layer.file, [&]() -> Result<void> {
        if (look_for_nearest(*open_file(layer.file, to_read(layer.file)), wanted, question.kernel.kernel.name, nearest, overlooked))
          answer.file = layer.file;
        return {};
      });
      if (!looked.has_value()) return looked.error();
      if (nearest.of_kernel != 0 && nearest.reasons.empty()) break;
    }
    answer.of_kernel = nearest.of_kernel;
    answer.reasons = std::move(nearest.reasons);
    if (nearest.of_kernel == 0) {
      answer.reasons.push_back("there is no entry of that kernel");
      return answer;
    }
    answer.nearest = told(nearest.row);
    answer.nearest.wrong = rt::wrong_in(nearest.row.entry);
    if (!answer.nearest.wrong.empty()) answer.reasons.push_back("its entry is damaged");
    answer.hit = answer.reasons.empty();
    return answer;
  });
}

}  // namespace kiln
