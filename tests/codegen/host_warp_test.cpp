// Warp operations on the CPU against the interpreter: all lanes, partial warps, lanes that went another way.
#include "codegen/host_agree.h"

using namespace kiln;
using namespace kiln::host_test;

namespace {

const std::vector<std::array<std::uint32_t, 3>> kShapes = {{64, 1, 1}, {45, 1, 1}, {16, 2, 1}};

// Stores the bits of a value in the next row of out.
std::string put(const std::string& row, const std::string& value, const std::string& type) {
  std::string text = "    %r_" + row + " = const " + row + " : u32\n";
  if (type == "u32") return text + "    store out[%r_" + row + ", %t], " + value + "\n";
  if (type == "bool") return text + "    %c_" + row + " = cast " + value + " : u32\n    store out[%r_" + row + ", %t], %c_" + row + "\n";
  if (type == "f32") return text + "    %c_" + row + " = bit_cast " + value + " : u32\n    store out[%r_" + row + ", %t], %c_" + row + "\n";
  std::string cast =
      type == "f64" ? "    %b_" + row + " = bit_cast " + value + " : u64\n" : "    %b_" + row + " = cast " + value + " : u64\n";
  return text + cast + "    %h_" + row + " = const 32 : u64\n    %s_" + row + " = shr %b_" + row + ", %h_" + row + "\n    %x_" + row +
         " = xor %b_" + row + ", %s_" + row + "\n    %c_" + row + " = cast %x_" + row + " : u32\n    store out[%r_" + row + ", %t], %c_" +
         row + "\n";
}

const std::string kHead = R"(
    %tx = thread_id.x
    %ty = thread_id.y
    %dx = block_dim.x
    %row = mul %ty, %dx
    %t = add %row, %tx
    %lane = lane_id
    %v = load in[%t]
)";

// The operations of one type on value %w, in rows from 0 on.
std::string all_operations(const std::string& type) {
  std::string body;
  int row = 0;
  const auto add = [&](const std::string& op, const std::string& result) {
    const std::string name = "%q" + std::to_string(row);
    body += "    " + name + " = " + op + "\n" + put(std::to_string(row), name, result);
    ++row;
  };
  for (const std::string& how : type == "bool"   ? std::vector<std::string>{"and", "or", "xor"}
                                : type[0] == 'f' ? std::vector<std::string>{"add", "mul", "min", "max"}
                                                 : std::vector<std::string>{"add", "mul", "min", "max", "and", "or", "xor"}) {
    add("warp_reduce." + how + " %w", type);
    add("warp_scan." + how + " %w", type);
    add("warp_scan_exclusive." + how + " %w", type);
  }
  body += "    %three = const 3 : u32\n    %sixteen = const 16 : u32\n    %far = const 32 : u32\n    %far2 = const 37 : u32\n";
  for (const std::string distance : {"%three", "%sixteen", "%far", "%far2", "%v", "%u"}) {
    for (const std::string kind : {"idx", "up", "down", "xor"}) add("shuffle_" + kind + " %w, " + distance, type);
  }
  return body;
}

// The value %w of a type, made of %v.
std::string make_value(const std::string& type) {
  if (type == "u32") return "    %w = add %v, %lane\n";
  if (type == "bool") return "    %tw = const 20 : u32\n    %w = lt %v, %tw\n";
  if (type == "f32") return "    %k = const 0.37 : f32\n    %f = cast %v : f32\n    %w = mul %f, %k\n";
  if (type == "f64") return "    %k = const -1.37 : f64\n    %f = cast %v : f64\n    %w = mul %f, %k\n";
  if (type == "i32") return "    %k = const 20 : i32\n    %f = cast %v : i32\n    %w = sub %f, %k\n";
  if (type == "i64") return "    %k = const 10000000000 : i64\n    %f = cast %v : i64\n    %fk = mul %f, %k\n    %w = sub %k, %fk\n";
  return "    %k = const 0x123456789abcdef : u64\n    %f = cast %v : u64\n    %w = mul %f, %k\n";
}

void hold(const std::string& type, bool some) {
  const std::string ops = all_operations(type);
  const std::string body = kHead + "    %u = load in[%zero]\n" + make_value(type) +
                           (some ? "    %half = const 17 : u32\n    %part = gt %v, %half\n    if %part {\n" + ops + "    }\n" : ops);
  Agree a("buffer in : u32[*] in\nbuffer out : u32[*, *] inout", "    %zero = const 0 : u32\n" + body);
  a.buffer(noise(64, 40)).buffer(std::vector<std::uint32_t>(64 * 64, 5), {64, 64});
  a.block = {45, 1, 1};  // a full and a partial warp
  a.check(false);
}

}  // namespace

TEST_CASE("warp reductions, scans and shuffles on the CPU over all lanes") {
  for (const std::string type : {"u32", "i32", "u64", "i64", "f32", "f64", "bool"}) {
    CAPTURE(type);
    hold(type, false);
  }
}

TEST_CASE("warp reductions, scans and shuffles on the CPU over the lanes of a branch") {
  for (const std::string type : {"u32", "i32", "u64", "i64", "f32", "f64", "bool"}) {
    CAPTURE(type);
    hold(type, true);
  }
}

TEST_CASE("NaN and signed zeros in warp reductions and scans on the CPU") {
  Agree a("buffer in : f32[*] in\nbuffer out : u32[*, *] inout", R"(
    %t = thread_id.x
    %w = load in[%t]
    %m = warp_reduce.min %w
    %x = warp_reduce.max %w
    %s = warp_scan.min %w
    %q = warp_scan_exclusive.max %w
    %d = warp_scan.add %w
)" + put("0", "%m", "f32") + put("1", "%x", "f32") + put("2", "%s", "f32") +
                                                                     put("4", "%d", "f32") +
                                                                     // NaN has no specified payload: only whether it is one is compared.
                                                                     "    %isnan = ne %q, %q\n" + put("3", "%isnan", "bool"));
  std::vector<float> v(64, -0.0f);
  v[5] = 0.0f, v[7] = std::bit_cast<float>(0x7fc00000u), v[40] = 3.0f, v[41] = -2.0f, v[7] = -0.0f;
  a.buffer(v).buffer(std::vector<std::uint32_t>(64 * 8, 5), {8, 64});
  a.at({{64, 1, 1}, {45, 1, 1}});
}

TEST_CASE("votes on the CPU after divergent breaks and returns count who is there") {
  Agree a("buffer in : u32[*] in\nbuffer out : u32[*, *] inout\nslot n : u32", kHead + R"(
    %zero = const 0 : u32
    %one = const 1 : u32
    %ten = const 10 : u32
    %six = const 6 : u32
    %ones = const 0xffffffff : u32
    %true = eq %zero, %zero
    for %i = %zero, %ten, %one : u32 {
      %b = ballot %true
      %g = get n
      %mix = mul %g, %six
      %gb = xor %mix, %b
      set n, %gb
      %bound = add %i, %ten
      %less = lt %v, %bound
      %any = vote_any %less
      %all = vote_all %less
      %bl = ballot %less
      %anyu = cast %any : u32
      %allu = cast %all : u32
      %au = add %anyu, %allu
      %g2 = get n
      %g3 = add %g2, %au
      %g4 = add %g3, %bl
      set n, %g4
      %out = eq %v, %i
      if %out { break
      }
      %e = add %i, %six
      %gone = eq %v, %e
      if %gone {
        store out[%one, %t], %i
        return
      }
      %odd = and %v, %one
      %isodd = eq %odd, %one
      if %isodd { continue
      }
      %r = warp_reduce.add %v
      %g5 = get n
      %g6 = add %g5, %r
      set n, %g6
    }
    %last = ballot %true
    %g7 = get n
    %g8 = xor %g7, %last
    store out[%zero, %t], %g8
)");
  a.buffer(noise(64, 40)).buffer(std::vector<std::uint32_t>(64 * 2, 5), {2, 64});
  a.at(kShapes);
}

TEST_CASE("warp operations on values that all lanes hold alike on the CPU") {
  Agree a("buffer in : u32[*] in\nbuffer out : u32[*, *] inout\nscalar p : f32", kHead + R"(
    %p = param p
    %zero = const 0 : u32
    %c = gt %v, %zero
    %lo = const 9 : u32
    %d = gt %v, %lo
    if %d {
      %r = warp_reduce.add %p
      %s = warp_scan.add %p
      %x = warp_scan_exclusive.add %p
      %h = shuffle_down %p, %lo
      %w = warp_id
      %wr = warp_reduce.xor %w
)" + put("0", "%r", "f32") + put("1", "%s", "f32") + put("2", "%x", "f32") + put("3", "%h", "f32") +
                                                                                     put("4", "%wr", "u32") + "    }\n");
  a.buffer(noise(64, 40)).buffer(std::vector<std::uint32_t>(64 * 8, 5), {8, 64}).scalar(0.1f);
  a.at(kShapes);
}
