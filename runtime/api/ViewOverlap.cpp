// SPDX-License-Identifier: Apache-2.0
//
// Overlap as an integer equation. An element of a starts at byte
// A + Σ i_n·s_n, one of b at B + Σ j_n·t_n; with each index taken from the end
// of its range where the sign asks for it, they share a byte when
//   Σ x_n·c_n = target,  0 <= x_n <= limit_n,  c_n > 0,
// has a solution for the target of some byte offset. The byte within each
// element is one more such term.
#include "runtime/api/ViewOverlap.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

namespace spargejit::api {

namespace {

struct Term {
  std::int64_t coefficient;
  std::int64_t limit;
};

class Search {
public:
  explicit Search(std::int64_t target) : target_(target) {}

  void add(std::int64_t coefficient, std::int64_t limit) {
    if (coefficient == 0 || limit <= 0)
      return;
    // x·c and y·c reach the same sums together as one term with both limits;
    // views of one layout have all coefficients in common.
    for (int n = 0; n < count_; ++n)
      if (terms_[n].coefficient == coefficient) {
        terms_[n].limit += limit;
        return;
      }
    terms_[count_++] = {coefficient, limit};
  }

  /// True when the equation has a solution, or the steps ran out.
  bool solvable() {
    std::sort(terms_.begin(), terms_.begin() + count_,
              [](const Term &a, const Term &b) {
                return a.coefficient > b.coefficient;
              });
    // What the terms from n on can reach at most.
    reach_[count_] = 0;
    for (int n = count_; n-- > 0;)
      reach_[n] = reach_[n + 1] + terms_[n].coefficient * terms_[n].limit;
    return solve(0, target_);
  }

private:
  bool solve(int n, std::int64_t rest) {
    if (rest == 0 || ++steps_ > kOverlapSteps)
      return true;
    if (rest < 0 || rest > reach_[n])
      return false;
    const Term &term = terms_[n];
    std::int64_t most = std::min(term.limit, rest / term.coefficient);
    std::int64_t least = std::max<std::int64_t>(
        0, (rest - reach_[n + 1] + term.coefficient - 1) / term.coefficient);
    for (std::int64_t x = most; x >= least; --x)
      if (solve(n + 1, rest - x * term.coefficient))
        return true;
    return false;
  }

  // Two views' dimensions and the bytes of an element of each.
  static constexpr int kMaxTerms = 2 * TensorView::kMaxRank + 2;
  std::array<Term, kMaxTerms> terms_{};
  std::array<std::int64_t, kMaxTerms + 1> reach_{};
  int count_ = 0;
  int steps_ = 0;
  std::int64_t target_;
};

} // namespace

ByteRange byteRange(const TensorView &view) {
  const auto bytes = static_cast<std::int64_t>(dataTypeSize(view.dtype));
  ByteRange range;
  range.first = range.last = std::bit_cast<std::int64_t>(view.data);
  for (std::size_t i = 0; i < TensorView::kMaxRank; ++i) {
    if (i == static_cast<std::size_t>(view.rank))
      break;
    if (view.sizes[i] == 0)
      return {INT64_MAX, INT64_MIN};
    const std::int64_t reach = (view.sizes[i] - 1) * view.strides[i] * bytes;
    (reach < 0 ? range.first : range.last) += reach;
  }
  range.last += bytes - 1;
  return range;
}

bool viewsOverlap(const SpannedView &a, const SpannedView &b) {
  if (a.bytes.last < b.bytes.first || b.bytes.last < a.bytes.first)
    return false;
  // a counts up from its first byte, b down from its last:
  //   a.bytes.first + Σ x·|s| = b.bytes.last - Σ y·|t|.
  Search search(b.bytes.last - a.bytes.first);
  for (const TensorView *view : {&a.view, &b.view}) {
    auto size = static_cast<std::int64_t>(dataTypeSize(view->dtype));
    search.add(1, size - 1);
    for (std::size_t i = 0; i < static_cast<std::size_t>(view->rank); ++i)
      search.add(std::abs(view->strides[i]) * size, view->sizes[i] - 1);
  }
  return search.solvable();
}

bool elementsAreDistinct(const TensorView &view) {
  if (view.elementCount() == 0)
    return true;
  std::array<Term, TensorView::kMaxRank> terms{};
  int count = 0;
  // Last first, which is their order in most views: nothing is left to sort.
  for (auto i = static_cast<std::size_t>(view.rank); i-- > 0;)
    if (view.sizes[i] > 1)
      terms[count++] = {std::abs(view.strides[i]), view.sizes[i] - 1};
  std::sort(terms.begin(), terms.begin() + count,
            [](const Term &a, const Term &b) {
              return a.coefficient < b.coefficient;
            });
  std::int64_t reach = 0;
  for (int i = 0; i < count; ++i) {
    if (terms[i].coefficient <= reach)
      return false;
    reach += terms[i].coefficient * terms[i].limit;
  }
  return true;
}

} // namespace spargejit::api
