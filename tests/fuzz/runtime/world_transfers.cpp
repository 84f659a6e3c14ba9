// Copies, writes and reads.
#include <algorithm>

#include "fuzz/runtime/world_parts.h"

namespace kiln::fuzz {

// --- writes -----------------------------------------------------------------------------------------------------------------------

void World::copy() {
  const Part y = part();
  const auto found = other_part(y, y.count);
  if (!found || !written(*found)) return;
  const Part x = *found;
  const Stream s = stream();
  note("copy " + y.text() + " from " + x.text() + " on " + std::to_string(s.id()), {y}, {x});
  did(s,
      Action{{y},
             {},
             {x},
             [=] {
               for (std::uint64_t i = 0; i < y.count; ++i) y.set(i, x.cell(i).value);
             }},
      rt::copy(s, y.view().binding(), x.view().binding()));
}

void World::host_write() {
  const Part y = part();
  const std::vector<u32> host = numbers(y.count);
  const Stream s = stream();
  note("write " + y.text() + " on " + std::to_string(s.id()), {y});
  did(s,
      Action{{y},
             {},
             {},
             [=] {
               for (std::uint64_t i = 0; i < y.count; ++i) y.set(i, host[i]);
             }},
      y.view().write(s, host));
}

void World::wrong_write() {
  Part y = part();
  const std::vector<u32> host(new_number() % 4096 + y.count + 1);
  const Stream s = stream();
  note("write_wrong " + y.text() + " on " + std::to_string(s.id()), {y});
  const std::string root = "size " + std::to_string(host.size());
  switch (below(3)) {
    case 0: return refused(s, {y}, root, y.view().write(s, host), "a write of too many elements");
    case 1: {
      y.step = y.count > 1 ? 2 : 1;
      y.count = (y.count + 1) / 2;
      return refused(s, {y}, root, y.strided().write(s, host), "a strided write of too many elements");
    }
    default: {
      const auto memory = HostBuffer<u32>::make(client_, y.count);
      if (!memory.has_value()) return excused(memory.error()) ? void() : wrong("pinned memory gave: " + memory.error().text());
      Buffer<u32> view = y.view();
      return refused(s, {y}, "HostRange", memory->upload(s, view, 1), "an upload of too many elements");
    }
  }
}

void World::fill() {
  const Part y = part();
  const Stream s = stream();
  note("fill " + y.text() + " on " + std::to_string(s.id()), {y});
  did(s,
      Action{{y},
             {},
             {},
             [=] {
               for (std::uint64_t i = 0; i < y.count; ++i) y.set(i, 0);
             }},
      rt::fill_zero(s, y.view().binding()));
}

// A graph has one operation for each piece of a strided one.
void World::strided_write() {
  Part y = part();
  y.step = 1 + below(4);
  y.count = (y.count - 1) / y.step + 1;
  const std::vector<u32> host = numbers(y.count);
  const Stream s = stream();
  note("write_strided " + y.text() + " on " + std::to_string(s.id()), {y});
  const std::uint64_t pieces = records(s) && y.step > 1 ? y.count : 1, each = y.count / pieces;
  Actions actions;
  for (std::uint64_t first = 0; first < y.count; first += each) {
    const Part piece{y.of, y.first + first * y.step, each, y.step};
    actions.push_back({{piece}, {}, {}, [=] {
                         for (std::uint64_t i = 0; i < each; ++i) piece.set(i, host[first + i]);
                       }});
  }
  did(s, actions, y.strided().write(s, host));
}

void World::strided_copy() {
  Part y = part();
  y.step = 2 + below(3);
  y.count = (y.count - 1) / y.step + 1;
  const auto found = other_part(y, y.count);
  if (!found || !written(*found)) return;
  const Part x = *found;
  const Stream s = stream();
  const std::uint64_t pieces = records(s) ? y.count : 1, each = y.count / pieces;
  Actions actions;
  for (std::uint64_t first = 0; first < y.count; first += each) {
    const Part to{y.of, y.first + first * y.step, each, y.step}, from{x.of, x.first + first, each};
    actions.push_back({{to}, {}, {from}, [=] {
                         for (std::uint64_t i = 0; i < each; ++i) to.set(i, from.cell(i).value);
                       }});
  }
  if (records(s) && !met_in(actions, recorded_->ops).empty()) return;  // some pieces would be skipped, and others recorded
  note("copy_strided " + y.text() + " from " + x.text() + " on " + std::to_string(s.id()), {y}, {x});
  did(s, actions, y.strided().copy_from(s, x.strided()));
}

void World::upload() {
  const Part y = part();
  const std::vector<u32> host = numbers(y.count);
  const Stream s = stream();
  note("upload " + y.text() + " on " + std::to_string(s.id()), {y});
  const auto memory = HostBuffer<u32>::make(client_, y.count);
  if (!memory.has_value()) return excused(memory.error()) ? void() : wrong("pinned memory gave: " + memory.error().text());
  HostBuffer<u32> pinned = *memory;
  const auto space = pinned.write();
  if (!space.has_value()) return excused(space.error()) ? void() : wrong("fresh pinned memory gave: " + space.error().text());
  std::ranges::copy(host, space->begin());
  Buffer<u32> view = y.view();
  did(s,
      Action{{y},
             {},
             {},
             [=] {
               for (std::uint64_t i = 0; i < y.count; ++i) y.set(i, host[i]);
             }},
      pinned.upload(s, view));
}

// --- reads ------------------------------------------------------------------------------------------------------------------------

void World::read_all(const Part& p, const Result<std::vector<u32>>& got, const std::string& what, bool lost_before, bool all_known) {
  Roots wanted = roots_of(p);
  if (!got.has_value() && !all_known) wanted.merge(older_of(p));
  const std::string where = what + " of " + p.text();
  if (got.has_value()) {
    if (lost_before) wrong(where + " gave data after the device was lost", p.of->name);
    if (!wanted.empty()) wrong(where + " gave data where " + *wanted.begin() + " lies", p.of->name);
    for (std::uint64_t i = 0; i < p.count; ++i)
      if (p.cell(i).known && (*got)[i] != p.cell(i).value)
        wrong(where + ": element " + std::to_string(i) + " is " + std::to_string((*got)[i]) + ", not " + std::to_string(p.cell(i).value),
              p.of->name);
    return;
  }
  hear(got.error());
  Roots found;
  bool one_each = true;
  for (const Error& cause : got.error().causes()) {
    const std::string root = root_name(cause);
    const bool has_number = root.find(' ') != std::string::npos && !root.starts_with("size ");  // sizes repeat
    one_each = (found.insert(root).second || !has_number || repeated_.contains(root)) && one_each;
  }
  if (faults()) {  // faults claim more than the model knows, and the read itself may meet one
    if (got.error().code() != ErrorCode::Several) found = {root_name(got.error())};
    for (const std::string& root : found)
      if (!is_injected(root) && !wanted.contains(root)) wrong(where + " says " + got.error().text(), p.of->name);
    return;
  }
  Roots certain;
  for (std::uint64_t i = 0; i < p.count && all_known; ++i)
    if (p.cell(i).roots.size() == 1) certain.insert(*p.cell(i).roots.begin());
  if (got.error().code() != ErrorCode::Several || !one_each || found.empty() || !std::ranges::includes(wanted, found) ||
      !std::ranges::includes(found, certain)) {
    std::string text = where + " says " + got.error().text() + "\nand the model has:";
    for (const std::string& w : wanted) text += " " + w + ";";
    wrong(text, p.of->name);
  }
}

void World::read() {
  const Part p = part();
  if (!written(p)) return;
  const Stream s = stream();
  note("read " + p.text() + " on " + std::to_string(s.id()), {}, {p});
  const bool lost = together_.lost;
  const auto got = p.view().read(s);
  if (!records(s)) return read_all(p, got, "a read", lost);
  if (got.has_value() || (got.error().rule() != "NotInCapture" && !excused(got.error()))) wrong("a stream that is recorded was read from");
}

void World::strided_read() {
  Part p = part();
  p.step = 2 + below(3);
  p.count = (p.count - 1) / p.step + 1;
  if (!written(p)) return;
  const Stream s = stream();
  note("read_strided " + p.text() + " on " + std::to_string(s.id()), {}, {p});
  const bool lost = together_.lost;
  const auto got = p.strided().read(s);
  if (!records(s)) return read_all(p, got, "a strided read", lost);
  if (got.has_value() || (got.error().rule() != "NotInCapture" && !excused(got.error()))) wrong("a stream that is recorded was read from");
}

// Into pinned memory, looked at later.
void World::download() {
  const Part p = part();
  if (!written(p)) return;
  const Stream s = stream();
  note("download " + p.text() + " on " + std::to_string(s.id()), {}, {p});
  const auto memory = HostBuffer<u32>::make(client_, p.count);
  if (!memory.has_value()) return excused(memory.error()) ? void() : wrong("pinned memory gave: " + memory.error().text());
  HostBuffer<u32> host = *memory;
  const auto enqueued = host.download(s, p.view());
  if (records(s)) return refused(s, {}, "NotInCapture", enqueued, "a download in a capture");
  if (!enqueued.has_value() && !excused(enqueued.error()) && roots_of(p).empty()) wrong("a download gave: " + enqueued.error().text());
  // One that is refused says what was known by then.
  later_.push_back(std::make_unique<Later>(
      Later{picture(p), "the download in operation " + std::to_string(noted_), std::move(host), {}, enqueued.has_value()}));
  if (later_.size() > 4) settle_reads();
}

void World::read_later() {
  const Part p = part();
  const Stream s = stream();
  if (!written(p) || records(s)) return;
  note("read_later " + p.text() + " on " + std::to_string(s.id()), {}, {p});
  later_.push_back(
      std::make_unique<Later>(Later{picture(p), "the read in operation " + std::to_string(noted_), {}, op::read(p.view()).start(s), true}));
  if (later_.size() > 4) settle_reads();
}

void World::settle_reads() {
  while (!later_.empty()) {
    const auto first = std::move(later_.front());
    later_.pop_front();
    if (first->reading) {
      read_all(first->picture, std::move(*first->reading).sync(), first->what, false);
      continue;
    }
    const auto got = first->host->read();
    read_all(first->picture, got.has_value() ? Result<std::vector<u32>>(std::vector<u32>(got->begin(), got->end())) : got.error(),
             first->what, false, first->all_known);
  }
}

// The host looks at memory where it is, and nothing writes there meanwhile.
void World::view() {
  const Part p = part();
  const Stream s = stream();
  if (!written(p)) return;
  const bool reached = client_.properties().kind == "cpu";
  note("view " + p.text() + " on " + std::to_string(s.id()), {p});
  const bool lost = together_.lost;
  auto opened = host_view(s, p.view());
  if (!reached || records(s)) {
    if (opened.has_value()) wrong("a view was opened that cannot be");
    return hear(opened.error());
  }
  read_all(p, opened.has_value() ? Result<std::vector<u32>>(std::vector<u32>(opened->begin(), opened->end())) : opened.error(), "a view",
           lost);
  if (!opened.has_value() || chance(50)) return;
  const Stream t = stream();
  if (records(t)) return;
  refused(t, {p}, "HostViewOpen", chance(50) ? p.view().write(t, numbers(p.count)) : rt::fill_zero(t, p.view().binding()),
          "a write of memory that the host looks at");
}

}  // namespace kiln::fuzz
