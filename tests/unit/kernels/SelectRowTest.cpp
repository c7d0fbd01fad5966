// SPDX-License-Identifier: Apache-2.0
//
// kernels_ir/cuda/select_row.h compiled for the host, by one thread and by
// several that work together as a GPU's do, against the float64 selection.
#include "kernels_ir/cuda/select_row.h"
#include "tests/reference/HostArray.h"
#include "tests/reference/ReferenceSelection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <random>
#include <thread>

namespace spargejit::unit {
namespace {

using device::keyOfScore;
using device::kHidden;
using reference::HostArray;
using reference::Random;
using reference::SelectionRules;

constexpr float kInfinite = std::numeric_limits<float>::infinity();

/// One thread.
class Alone {
public:
  int lane() const { return 0; }
  int size() const { return 1; }
  void sync() const {}
  int max(int value) const { return value; }
  int sum(int value) const { return value; }
  double sum(double value) const { return value; }
  int before(bool flag, int &total) const {
    total = flag;
    return 0;
  }
};

/// What the threads of a group share.
class Meeting {
public:
  explicit Meeting(int size) : values(static_cast<std::size_t>(size)) {}
  /// Returns when all threads are here.
  void wait() {
    std::unique_lock lock(mutex_);
    const int round = round_;
    if (++waiting_ == static_cast<int>(values.size())) {
      waiting_ = 0;
      ++round_;
      all_.notify_all();
    } else {
      all_.wait(lock, [&] { return round_ != round; });
    }
  }

  std::vector<double> values;

private:
  std::mutex mutex_;
  std::condition_variable all_;
  int waiting_ = 0;
  int round_ = 0;
};

/// One thread of several.
class Member {
public:
  Member(Meeting &meeting, int lane) : meeting_(meeting), lane_(lane) {}
  int lane() const { return lane_; }
  int size() const { return static_cast<int>(meeting_.values.size()); }
  void sync() const { meeting_.wait(); }
  int max(int value) const {
    const auto all = exchange(value);
    return static_cast<int>(*std::max_element(all.begin(), all.end()));
  }
  int sum(int value) const {
    return static_cast<int>(sum(static_cast<double>(value)));
  }
  double sum(double value) const {
    double total = 0;
    for (double one : exchange(value))
      total += one;
    return total;
  }
  int before(bool flag, int &total) const {
    const auto all = exchange(flag);
    const auto lower = std::count(all.begin(), all.begin() + lane_, 1.0);
    total = static_cast<int>(std::count(all.begin(), all.end(), 1.0));
    return static_cast<int>(lower);
  }

private:
  std::vector<double> exchange(double value) const {
    sync(); // the last values have been read
    meeting_.values[static_cast<std::size_t>(lane_)] = value;
    sync();
    return meeting_.values;
  }

  Meeting &meeting_;
  int lane_;
};

/// A row of scores and memory for what comes of it.
struct RowTrial {
  explicit RowTrial(const std::vector<float> &scores)
      : keys(scores.size()), weights(scores.size(), -1e30f),
        list(scores.size(), 12345) {
    for (std::size_t j = 0; j < scores.size(); ++j)
      keys[j] = keyOfScore(scores[j]);
  }
  device::Row row() {
    const int size = static_cast<int>(keys.size());
    return {keys.data(), weights.data(), size, forcedBlock,
            forcedFirst, list.data(),    size, &count};
  }
  template <class Group>
  void select(const Group &group, int k, float p) {
    // As the kernel does: without p, weights are whatever was there before.
    device::RowMass mass{0, 0};
    if (p > 0)
      mass = device::weighScores(group, row());
    device::selectRanked(group, row(), device::wantedOf(k, p, mass));
  }
  void selectTogether(int threads, int k, float p) {
    Meeting meeting(threads);
    std::vector<std::thread> members;
    for (int lane = 0; lane < threads; ++lane)
      members.emplace_back([&, lane] { select(Member(meeting, lane), k, p); });
    for (std::thread &member : members)
      member.join();
  }
  /// The counted entries; the rest of the memory must be -1.
  std::vector<std::int32_t> kept() const {
    EXPECT_GE(count, 0);
    EXPECT_LE(count, static_cast<int>(list.size()));
    EXPECT_TRUE(std::all_of(list.begin() + count, list.end(),
                            [](int entry) { return entry == -1; }));
    return {list.begin(), list.begin() + count};
  }

  std::vector<int> keys;
  std::vector<float> weights;
  std::vector<int> list;
  int count = 12345;
  int forcedBlock = -1;
  int forcedFirst = 0;
};

std::vector<std::int32_t> select(const std::vector<float> &scores, int k,
                                 float p) {
  RowTrial trial(scores);
  trial.select(Alone(), k, p);
  return trial.kept();
}

using List = std::vector<std::int32_t>;

Random freshRandom() {
  const char *given = std::getenv("SPARGEJIT_TEST_SEED");
  const std::uint64_t seed =
      given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return Random(seed);
}

TEST(SelectRow, KeysHaveTheOrderOfScores) {
  const float ascending[] = {-kInfinite, -3e38f, -1, -1e-45f, 0,
                             1e-45f,     1,      2,  3e38f,   kInfinite};
  for (std::size_t i = 0; i < std::size(ascending); ++i) {
    EXPECT_GT(keyOfScore(ascending[i]), kHidden);
    EXPECT_EQ(device::scoreOfKey(keyOfScore(ascending[i])), ascending[i]);
    if (i > 0) {
      EXPECT_LT(keyOfScore(ascending[i - 1]), keyOfScore(ascending[i]));
    }
  }
  EXPECT_EQ(keyOfScore(-0.0f), keyOfScore(0.0f));
  EXPECT_EQ(keyOfScore(NAN), keyOfScore(-kInfinite));
  EXPECT_EQ(keyOfScore(-NAN), keyOfScore(-kInfinite));
}

TEST(SelectRow, LowerNumbersWinTies) {
  EXPECT_EQ(select({1, 2, 2, 2, 0}, 2, 0), (List{1, 2}));
  EXPECT_EQ(select({0, -0.0f, 0, -0.0f}, 3, 0), (List{0, 1, 2}));
  EXPECT_EQ(select({NAN, -kInfinite, 5}, 2, 0), (List{0, 2}));
}

TEST(SelectRow, MassIncludesTheCrossingBlock) {
  const float third = std::log(1.0f / 3);
  EXPECT_EQ(select({third, third, third}, 0, 0.3f), (List{0}));
  EXPECT_EQ(select({third, third, third}, 0, 0.5f), (List{0, 1}));
  EXPECT_EQ(select({third, third, third}, 0, 0.9f), (List{0, 1, 2}));
  EXPECT_EQ(select({-200, 0, -200}, 0, 1), (List{0, 1, 2}));
  EXPECT_EQ(select({-200, 0, -200}, 2, 0.5f), (List{0, 1}));
}

// Without finite scores the rank alone decides, p = 1 still asks for all.
TEST(SelectRow, InfiniteScoresGoByRank) {
  EXPECT_EQ(select({0, kInfinite, 1, kInfinite}, 3, 0.5f), (List{1, 2, 3}));
  EXPECT_EQ(select({0, kInfinite}, 1, 1), (List{0, 1}));
  EXPECT_EQ(select({-kInfinite, -kInfinite, -kInfinite}, 2, 0.9f),
            (List{0, 1}));
}

TEST(SelectRow, HiddenBlocksAreNeverKept) {
  RowTrial trial({5, 4, 3, 2});
  trial.keys[0] = trial.keys[3] = kHidden;
  trial.forcedBlock = 3;
  trial.forcedFirst = 1;
  trial.select(Alone(), 4, 1);
  EXPECT_EQ(trial.kept(), (List{1, 2}));
  RowTrial hidden({5, 4});
  hidden.keys[0] = hidden.keys[1] = kHidden;
  hidden.select(Alone(), 1, 0.5f);
  EXPECT_EQ(hidden.kept(), List{});
}

TEST(SelectRow, ForcedBlocksJoin) {
  RowTrial trial({1, 2, 9, 3, 4});
  trial.forcedBlock = 3;
  trial.forcedFirst = 2;
  trial.select(Alone(), 1, 0);
  EXPECT_EQ(trial.kept(), (List{0, 1, 2, 3}));
}

/// One kind of input, as fills k (rows of one key each).
struct Kind {
  const char *name;
  double scale;
  int distinct; ///< keys are drawn from so many different ones; 0: all differ
  double nanShare;
};

constexpr Kind kKinds[] = {{"uniform", 0.05, 0, 0},
                           {"skewed", 4, 0, 0},
                           {"tied", 1, 3, 0},
                           {"NaN", 1, 0, 0.1},
                           {"one value", 1, 1, 0}};

/// Keys of one kind, and rules, both drawn afresh. Each key is a block of its
/// own, so that the reference's pooling does nothing and its scores are those
/// of the rows.
struct Draw {
  Draw(const Kind &kind, std::int64_t queries, std::int64_t keys,
       Random &random)
      : qLen(queries), kvLen(keys),
        q(DataType::Float32, {1, 1, queries, kHeadDim}),
        k(DataType::Float32, {1, 1, keys, kHeadDim}) {
    q.fillNormal(random);
    std::vector<std::array<double, kHeadDim>> values(
        static_cast<std::size_t>(kind.distinct ? kind.distinct : keys));
    for (auto &vector : values)
      for (double &value : vector)
        value = random.normal() * kind.scale;
    for (std::int64_t n = 0; n < keys; ++n) {
      const auto &vector = values[static_cast<std::size_t>(
          kind.distinct ? random.below(kind.distinct) : n)];
      const bool isNan = random.chance(kind.nanShare);
      for (std::int64_t d = 0; d < kHeadDim; ++d)
        k.set(0, 0, n, d, isNan ? NAN : vector[static_cast<std::size_t>(d)]);
    }
    rules.maskBlockQ = rules.maskBlockKv = 1;
    rules.softmaxScale = 0.7;
    rules.causal = random.chance(0.3);
    rules.keepDiagonal = random.chance(0.3);
    rules.keepFirstBlocks = random.chance(0.3) ? 2 : 0;
    rules.topK = random.uniform() * 0.3;
    if (random.chance(0.7))
      rules.topP = static_cast<float>(random.uniform());
  }

  RowTrial rowTrial(std::int64_t i) const {
    std::vector<float> scores;
    for (std::int64_t j = 0; j < kvLen; ++j) {
      double sum = 0;
      for (std::int64_t d = 0; d < kHeadDim; ++d)
        sum += q.get(0, 0, i, d) * k.get(0, 0, j, d);
      scores.push_back(static_cast<float>(rules.softmaxScale * sum));
    }
    RowTrial trial(scores);
    const std::int64_t lastKey = i + kvLen - qLen;
    for (std::int64_t j = 0; rules.causal && j < kvLen; ++j)
      if (j > lastKey)
        trial.keys[static_cast<std::size_t>(j)] = kHidden;
    if (rules.keepDiagonal)
      trial.forcedBlock =
          static_cast<int>(std::clamp<std::int64_t>(lastKey, 0, kvLen - 1));
    trial.forcedFirst = static_cast<int>(rules.keepFirstBlocks);
    return trial;
  }
  int keptBlocks() const {
    const double blocks = *rules.topK * static_cast<double>(kvLen);
    return static_cast<int>(
        std::clamp<std::int64_t>(static_cast<std::int64_t>(blocks), 1, kvLen));
  }

  static constexpr std::int64_t kHeadDim = 8;
  std::int64_t qLen, kvLen;
  HostArray q, k;
  SelectionRules rules;
};

TEST(SelectRow, EqualsTheReference) {
  Random random = freshRandom();
  std::int64_t rows = 0;
  std::int64_t nearTies = 0;
  for (int number = 0; number < 200; ++number) {
    const Kind &kind = kKinds[number % std::size(kKinds)];
    SCOPED_TRACE(kind.name);
    const std::int64_t longest = number % 20 < 5 ? 3000 : 200;
    const Draw draw(kind, 1 + random.below(12),
                    number < 5 ? 1 : 1 + random.below(longest), random);
    const auto expected =
        reference::referenceSelection(draw.q.view(), draw.k.view(), draw.rules);
    const auto p = static_cast<float>(draw.rules.topP.value_or(0));
    for (std::int64_t i = 0; i < draw.qLen; ++i, ++rows) {
      const auto &right = expected[static_cast<std::size_t>(i)];
      if (right.isNearTie()) {
        ++nearTies;
        continue;
      }
      RowTrial trial = draw.rowTrial(i);
      trial.select(Alone(), draw.keptBlocks(), p);
      EXPECT_EQ(trial.kept(), right.blocks) << "row " << i;
      // Threads meet some hundred times a row: a few rows show it.
      if (i > 0 || draw.kvLen > 60)
        continue;
      RowTrial together = draw.rowTrial(i);
      together.selectTogether(3, draw.keptBlocks(), p);
      EXPECT_EQ(together.kept(), right.blocks) << "row " << i;
    }
  }
  std::printf("%lld rows, %lld of them near-ties\n",
              static_cast<long long>(rows), static_cast<long long>(nearTies));
  EXPECT_GT(rows, 500);
  EXPECT_LT(nearTies, rows / 10);
}

// A rule of the user's: asked for what is there, in order, by every thread.
TEST(SelectRow, WritesWhatARuleWants) {
  Random random = freshRandom();
  std::vector<float> scores(1000);
  for (float &score : scores)
    score = static_cast<float>(random.normal());
  List expected;
  for (std::size_t j = 0; j < scores.size(); ++j)
    if (scores[j] > 0.5f)
      expected.push_back(static_cast<std::int32_t>(j));
  RowTrial trial(scores);
  device::writeList(Alone(), trial.row(), [&](int j, bool isHere) {
    return isHere && scores[static_cast<std::size_t>(j)] > 0.5f;
  });
  EXPECT_EQ(trial.kept(), expected);
}

} // namespace
} // namespace spargejit::unit
