#include "src/environment/layer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <utility>

#include "src/logging.h"
#include "src/process.h"

namespace kiln::rt {
namespace {

// So often may a file fail in one process before it is left alone; one that somebody removed is no failure.
constexpr int kMostFailures = 8;

constexpr const char* kRemedy = "KILN_ENV sets the folder, or is off for none";

void debug(const std::string& text) {
  if (logs(LogArea::Environment, LogLevel::Debug)) say(LogArea::Environment, LogLevel::Debug, text);
}

}  // namespace

Layer::Layer(LayerPlace place, std::uint64_t most_bytes, Warn warn)
    : place_(std::move(place)), most_bytes_(most_bytes), warn_(std::move(warn)), process_(process_number()) {}
Layer::~Layer() { close_idle(); }

void Layer::close_idle() noexcept {
  std::vector<std::unique_ptr<StoreFile>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(idle_);
  }
  if (process_ == process_number()) return;
  for (auto& file : all) (void)file.release();  // the parent's: closing them would undo its locks
}

void Layer::give_up(const std::string& why, bool tell) {
  if (given_up_.exchange(true) || !tell) return;
  warn_("the environment '" + place_.path + "' cannot be used: " + why +
        (place_.writable ? "; compiled kernels are kept in memory only. " : "; what is in it is compiled anew. ") + kRemedy);
}

void Layer::tell_damage(const std::string& what) {
  if (told_damage_.exchange(true)) debug(what);
  else warn_(what);
}

std::unique_ptr<StoreFile> Layer::open_writable() {
  if (const std::string why = make_folders(place_); !why.empty()) throw Unusable(why, false);
  if (const std::string why = distrust(place_.path); !why.empty()) throw Unusable(why, false);
  const std::string path = place_.path + "/" + kStoreName;
  const bool there = file_id(path).has_value();
  if (there) {
    if (const std::string why = distrust(path); !why.empty()) throw Unusable("of '" + path + "': " + why, false);
  }
  const bool may_write = eaccess(place_.path.c_str(), W_OK | X_OK) == 0 && (!there || eaccess(path.c_str(), W_OK) == 0);
  if (!may_write) {
    if (!there) throw Unusable("it cannot be written, and there is nothing in it", false);
    auto file = std::make_unique<StoreFile>(path, StoreFile::As::Read);
    if (!no_writes_.exchange(true)) debug("the environment '" + place_.path + "' can only be read; what is compiled is not kept");
    return file;
  }
  std::unique_ptr<StoreFile> file;
  std::string damage;
  {
    const FolderLock lock(place_.path);
    if (!lock.held()) throw Unusable("another process has been opening it for seconds", false);
    const bool local = on_local_disk(place_.path);
    const auto id = file_id(path);
    try {
      file = std::make_unique<StoreFile>(path, StoreFile::As::Create, local);
    } catch (const Unusable& e) {
      if (!e.damaged() || !id) throw;
      damage = e.what();
      set_aside(*id);
      file = std::make_unique<StoreFile>(path, StoreFile::As::Create, local);
    }
  }
  if (!damage.empty()) tell_set_aside(damage);
  return file;
}

void Layer::tell_set_aside(const std::string& why) {
  const std::string path = place_.path + "/" + kStoreName;
  tell_damage("the environment's file '" + path + "' is set aside as '" + path + kSetAside + "', and a new one is begun: " + why);
}

std::unique_ptr<StoreFile> Layer::open() {
  if (place_.writable) return open_writable();
  struct stat s{};
  const bool folder = stat(place_.path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
  if (const std::string why = distrust(place_.path); !why.empty()) throw Unusable(why, false);
  const std::string path = folder ? place_.path + "/" + kStoreName : place_.path;
  if (const std::string why = distrust(path); !why.empty()) throw Unusable("of '" + path + "': " + why, false);
  return std::make_unique<StoreFile>(path, StoreFile::As::Read);
}

// Under the folder's lock. Only the file that was found damaged: another process may have put a good one there.
bool Layer::set_aside(const FileId& id) {
  const std::string path = place_.path + "/" + kStoreName;
  if (file_id(path) != id || std::rename(path.c_str(), (path + kSetAside).c_str()) != 0) return false;
  remove_beside(path);
  return true;
}

void Layer::after_damage(std::unique_ptr<StoreFile> file, const std::string& why) {
  const FileId id = file->id();
  const bool ours = place_.writable && file->writable();
  file.reset();
  close_idle();
  if (failures_.fetch_add(1) >= kMostFailures) return give_up("it is damaged again and again: " + why);
  if (!ours) {  // it may be a file that somebody was writing to; if not, it comes here again
    debug("the environment '" + place_.path + "' was not as it should be (" + why + ") and is opened again");
    return;
  }
  {
    const FolderLock lock(place_.path);
    if (!lock.held() || !set_aside(id)) return;
  }
  tell_set_aside(why);
}

std::unique_ptr<StoreFile> Layer::take() {
  std::unique_ptr<StoreFile> file;
  {
    const std::lock_guard lock(mutex_);
    if (process_ != process_number()) {
      for (auto& parents : idle_) (void)parents.release();
      idle_.clear();
      process_ = process_number();
    }
    if (!idle_.empty()) {
      file = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  return file != nullptr ? std::move(file) : open();
}

void Layer::give_back(std::unique_ptr<StoreFile> file) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(file));
  } catch (const std::bad_alloc&) {}  // it is closed
}

// One failure of what was asked of `file`; null: of opening it.
void Layer::after(const SqlFailure& e, std::unique_ptr<StoreFile> file) {
  const std::string name = "the environment '" + place_.path + "'";
  if (file != nullptr && e.damaged()) return after_damage(std::move(file), e.what());
  if (file != nullptr && e.busy()) {
    debug(name + " is busy: " + e.what());
    return give_back(std::move(file));
  }
  if (file == nullptr && !e.busy()) return give_up(e.what());
  file.reset();
  if (place_.writable && e.full()) {
    if (!no_writes_.exchange(true)) warn_(name + " cannot be written: " + e.what() + "; it is only read from here on. " + kRemedy);
    return;
  }
  if (failures_.fetch_add(1) >= kMostFailures) return give_up(e.what());
  debug(name + " failed: " + e.what());
}

bool Layer::use(const std::function<void(StoreFile&)>& work) noexcept try {
  for (int tries = 0; usable(); ++tries) {
    std::unique_ptr<StoreFile> file;
    try {
      file = take();
      work(*file);
      give_back(std::move(file));
      return true;
    } catch (const Unusable& e) { give_up(e.what()); } catch (const SqlFailure& e) {
      // Somebody may be removing or replacing it just now; there is another one in a moment.
      if (tries < 2 && !e.busy() && (e.moved() || file == nullptr)) {
        file.reset();
        close_idle();
        continue;
      }
      after(e, std::move(file));
    }
    return false;
  }
  return false;
} catch (...) {  // no memory of the host: a miss
  return false;
}

Looked Layer::find(const std::string& key) noexcept try {
  Looked looked;
  if (!use([&](StoreFile& file) { looked = file.find(key, std::time(nullptr)); })) return {};
  if (looked.damaged) tell_damage("an entry of the environment '" + place_.path + "' is damaged; its kernel is compiled anew");
  return looked;
} catch (...) {  // no memory of the host: a miss
  return {};
}

bool Layer::put(const Entry& entry) noexcept try {
  if (!place_.writable || no_writes_.load(std::memory_order_acquire)) return false;
  bool kept = false;
  for (int tries = 0; tries < 2 && !kept; ++tries) {
    bool moved = false;
    const bool used = use([&](StoreFile& file) {
      moved = file.moved();
      if (!moved && file.writable()) kept = file.put(entry, std::time(nullptr), most_bytes_);
    });
    if (!used || !moved) break;
    // Somebody removed the file: what is written to it would be gone.
    close_idle();
  }
  return kept;
} catch (...) {  // no memory of the host
  return false;
}

}  // namespace kiln::rt
