// What the bundles of the process have for one program: its items one after the other, the best first, and why there are no others.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/bundle/choose.h"
#include "src/bundle/modules.h"

namespace kiln::rt {

struct BundleQuestion {
  std::string kernel, recorded;  // its name, and its canonical text as recorded
  std::string place;             // where this program recorded it; may be empty
  bool checked = false;
  BundleTarget target;
  std::string device;  // for people
};

// Of one thread. Holds no module: what it gives is a copy.
class BundleSearch {
 public:
  explicit BundleSearch(BundleQuestion question) : question_(std::move(question)) {}
  struct Item {
    BundleItem::Kind kind = BundleItem::Kind::Object;
    CompiledCode code;
    std::string what;  // "the cubin for sm_90 in '/usr/lib/libk.so'"
  };
  // The best of those that were not given before. Warns, once in the process, of a kernel of that name that is not used or is damaged.
  std::optional<Item> next();
  // After next() gave none: a sentence for each bundle of that name that is of no use here. Empty: there was none.
  const std::vector<std::string>& why_not() const { return why_not_; }

 private:
  struct Copy {
    Bundle bundle;  // held, with the item
    std::string module;
    BundlePlace place;
    std::size_t item = 0;
  };
  std::optional<Copy> copy_best();
  void reject(const std::string& module, std::string sentence, bool warn);
  void reject_other(const Bundle& bundle, const std::string& module);
  BundleQuestion question_;
  std::vector<std::pair<BundlePlace, std::size_t>> given_;  // and the number of the item
  std::vector<std::string> why_not_;
};

}  // namespace kiln::rt
