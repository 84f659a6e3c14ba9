// One math function on the CPU device, through the public interface: what is measured is the code that kernels run.
#pragma once
#include <kiln/kiln.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

namespace kiln::bench {

// out[i] = f(x[i]) or f(x[i], y[i]). For one host thread at a time. Throws kiln::Exception.
template <class T>
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // x, y and the result have the count that the evaluator was made with; y is not looked at by a function of one argument, and holds
  // numbers of the second argument's type (T, or i32).
  virtual std::vector<T> operator()(const std::vector<T>& x, const std::vector<double>& y) = 0;
};

// `Body` is the type of a lambda without captures on kernel values: (Val<T>), and (Val<T>, Val<Second>) below.
template <class T, class Body>
class OfOne final : public Evaluator<T> {
 public:
  OfOne(std::size_t count, bool fast)
      : x_(Buffer<T>::zeroed(client_, count).value()), out_(Buffer<T>::zeroed(client_, count).value()), fast_(fast) {}
  std::vector<T> operator()(const std::vector<T>& x, const std::vector<double>&) override {
    x_.write(stream_, x).value();
    if (fast_) {
      static const auto kernel = made<true>();
      kernel(stream_, for_num_elems(x.size()), x_, out_).value();
    } else {
      static const auto kernel = made<false>();
      kernel(stream_, for_num_elems(x.size()), x_, out_).value();
    }
    return out_.read(stream_).value();
  }

 private:
  template <bool Fast>
  static auto made() {
    return local_kernel("math_ulp", [](In<T> x, Out<T> out) {
      options({.fast_math = Fast});
      require(x.size() >= out.size());
      auto i = global_id().x;
      If (i < out.size()) { out[i] = Body{}(Val<T>(x[i])); }
    });
  }
  Client client_ = Client::open("cpu").value();
  Stream stream_ = client_.stream();
  Buffer<T> x_, out_;
  bool fast_;
};

template <class T, class Second, class Body>
class OfTwo final : public Evaluator<T> {
 public:
  OfTwo(std::size_t count, bool fast)
      : x_(Buffer<T>::zeroed(client_, count).value()),
        out_(Buffer<T>::zeroed(client_, count).value()),
        y_(Buffer<Second>::zeroed(client_, count).value()),
        fast_(fast) {}
  std::vector<T> operator()(const std::vector<T>& x, const std::vector<double>& y) override {
    x_.write(stream_, x).value();
    std::vector<Second> seconds(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) seconds[i] = static_cast<Second>(y[i]);
    y_.write(stream_, seconds).value();
    if (fast_) {
      static const auto kernel = made<true>();
      kernel(stream_, for_num_elems(x.size()), x_, y_, out_).value();
    } else {
      static const auto kernel = made<false>();
      kernel(stream_, for_num_elems(x.size()), x_, y_, out_).value();
    }
    return out_.read(stream_).value();
  }

 private:
  template <bool Fast>
  static auto made() {
    return local_kernel("math_ulp", [](In<T> x, In<Second> y, Out<T> out) {
      options({.fast_math = Fast});
      require(x.size() >= out.size());
      require(y.size() >= out.size());
      auto i = global_id().x;
      If (i < out.size()) { out[i] = Body{}(Val<T>(x[i]), Val<Second>(y[i])); }
    });
  }
  Client client_ = Client::open("cpu").value();
  Stream stream_ = client_.stream();
  Buffer<T> x_, out_;
  Buffer<Second> y_;
  bool fast_;
};

}  // namespace kiln::bench
