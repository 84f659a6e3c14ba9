#include "src/environment/places.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <thread>

namespace kiln::rt {
namespace {

namespace fs = std::filesystem;

std::string normal(const fs::path& path) {
  std::string text = path.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

void add_own_place(Places& places, const std::string& xdg, const std::string& home) {
  const bool by_xdg = xdg.starts_with('/');
  if (!by_xdg && !home.starts_with('/')) {
    places.problem = "neither HOME nor XDG_CACHE_HOME says where";
    return;
  }
  const std::string above = normal(by_xdg ? fs::path(xdg) : fs::path(home) / ".cache"), path = above == "/" ? "/kiln" : above + "/kiln";
  places.layers.push_back({path, true, {above, path}});
}

}  // namespace

Places environment_places(const std::string& named, const std::string& xdg_cache_home, const std::string& home,
                          const std::string& directory) {
  Places places;
  if (named == "off") {
    places.off = true;
    return places;
  }
  std::size_t at = 0;
  for (bool first = true; at <= named.size(); first = false) {
    const std::size_t end = std::min(named.find(kBetweenLayers, at), named.size());
    const std::string part = named.substr(at, end - at);
    at = end + 1;
    if (part.empty()) {
      if (first) add_own_place(places, xdg_cache_home, home);
      continue;
    }
    if (first && part == "off") continue;
    const std::string path = normal(fs::path(directory) / part);  // an absolute one stays what it is
    places.layers.push_back({path, first, first ? std::vector<std::string>{path} : std::vector<std::string>{}});
  }
  return places;
}

std::string make_folders(const LayerPlace& place) {
  for (const std::string& folder : place.made) {
    if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) continue;
    const int why = errno;
    struct stat s{};
    if (stat(folder.c_str(), &s) == 0) continue;  // on a disk that is only read a folder that is there gives another reason
    return "'" + folder + "' cannot be made: " + std::strerror(why);
  }
  struct stat s{};
  if (stat(place.path.c_str(), &s) != 0) return std::strerror(errno);
  return S_ISDIR(s.st_mode) ? "" : "it is a file, and has to be a folder";
}

bool on_local_disk(const std::string& folder) {
  struct statfs s{};
  if (statfs(folder.c_str(), &s) != 0) return false;
  constexpr std::uint32_t local[] = {
      0xef53,      // ext2, 3, 4
      0x58465342,  // XFS
      0x9123683e,  // btrfs
      0x01021994,  // tmpfs
      0x858458f6,  // ramfs
      0xf2f52010,  // F2FS
      0x2fc12fc1,  // ZFS
      0x794c7630,  // overlay
      0xca451a4e,  // bcachefs
  };
  return std::find(std::begin(local), std::end(local), static_cast<std::uint32_t>(s.f_type)) != std::end(local);
}

FolderLock::FolderLock(const std::string& folder, int ms) {
  fd_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ < 0) return;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  for (auto pause = std::chrono::microseconds(200);; pause = std::min(pause * 2, std::chrono::microseconds(20000))) {
    if (flock(fd_, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR)) {
      held_ = true;
      return;
    }
    if (std::chrono::steady_clock::now() >= until) return;
    std::this_thread::sleep_for(pause);
  }
}
FolderLock::~FolderLock() {
  if (fd_ < 0) return;
  flock(fd_, LOCK_UN);  // also where a fork meanwhile has made a second handle
  close(fd_);
}

}  // namespace kiln::rt
