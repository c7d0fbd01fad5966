// SPDX-License-Identifier: Apache-2.0
//
// A rank-4 array in host memory for tests of the reference and for frozen
// cases: dense memory, and a view of it.
#pragma once

#include "tests/reference/Elements.h"
#include "tests/reference/Random.h"

#include <array>
#include <vector>

namespace spargejit::reference {

class HostArray {
public:
  HostArray(DataType type, const std::array<std::int64_t, 4> &sizes)
      : bytes_(static_cast<std::size_t>(sizes[0] * sizes[1] * sizes[2] *
                                        sizes[3] * 4)) {
    view_.data = bytes_.data();
    view_.dtype = type;
    view_.rank = 4;
    view_.sizes = sizes;
    view_.strides = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3],
                     sizes[3], 1};
  }
  HostArray(const HostArray &) = delete;
  HostArray &operator=(const HostArray &) = delete;

  const TensorView &view() const { return view_; }

  void set(std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d,
           double value) {
    storeElement(elementAddress(view_, b, h, n, d), view_.dtype, value);
  }
  double get(std::int64_t b, std::int64_t h, std::int64_t n,
             std::int64_t d) const {
    return elementAt(view_, b, h, n, d);
  }

  /// Sets every element to value(b, h, n, d), last index fastest;
  /// indices are passed as int.
  template <typename Value>
  void fill(Value value) {
    for (std::int64_t b = 0; b < view_.sizes[0]; ++b)
      for (std::int64_t h = 0; h < view_.sizes[1]; ++h)
        for (std::int64_t n = 0; n < view_.sizes[2]; ++n)
          for (std::int64_t d = 0; d < view_.sizes[3]; ++d)
            set(b, h, n, d,
                value(static_cast<int>(b), static_cast<int>(h),
                      static_cast<int>(n), static_cast<int>(d)));
  }
  void fillNormal(Random &random) {
    fill([&](auto, auto, auto, auto) { return random.normal(); });
  }

private:
  std::vector<std::byte> bytes_;
  TensorView view_;
};

} // namespace spargejit::reference
