// Where the environment of a process lies: what its variables say, as folders; and what can be told of a folder.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace kiln::rt {

// One file of kernels below others. Those after the first are never written.
struct LayerPlace {
  std::string path;  // the folder, or for a layer that is only read also the file itself
  bool writable = false;
  // The folders that may be made, where the one above the first of them is there; the last is `path`.
  std::vector<std::string> made = {};
  bool operator==(const LayerPlace&) const = default;
};
struct Places {
  bool off = false;     // by the user's word
  std::string problem;  // why there is no place although none was refused
  std::vector<LayerPlace> layers;
  bool operator==(const Places&) const = default;
};
inline constexpr char kBetweenLayers = ':';

// `named`: what KILN_ENV says: "off"; or folders with ':' between, the first of which is written and the others only read. An empty first
// one is the user's own place, and "off" in its place none. The user's own place is $XDG_CACHE_HOME/kiln, else $HOME/.cache/kiln; relative
// values of these two count as none, as the XDG rules say. `directory` is what relative paths of KILN_ENV begin at.
Places environment_places(const std::string& named, const std::string& xdg_cache_home, const std::string& home,
                          const std::string& directory);

// Makes what is missing of `place.made`, for this user only. Empty: the folder is there. Else why not.
std::string make_folders(const LayerPlace& place);

bool on_local_disk(const std::string& folder);  // one where processes can share memory by files

// Who makes, replaces or opens an environment's file holds its folder meanwhile; it is let go with the process, however that ends. Waits up
// to `ms`. Where the file system knows no locks all have it.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder, int ms = 3000);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  bool held() const { return held_; }

 private:
  int fd_ = -1;
  bool held_ = false;
};

}  // namespace kiln::rt
