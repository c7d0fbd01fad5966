// SPDX-License-Identifier: Apache-2.0
//
// Stages in CUDA C++ on the card: their scores, their rules and the kernel
// around them against a float64 selection, on pooled vectors of the test's own.
#include "runtime/base/AlignedMemory.h"
#include "runtime/base/Environment.h"
#include "runtime/jit/CustomJit.h"
#include "runtime/jit/CustomStage.h"
#include "tests/gpu/device/GpuTest.h"
#include "tests/numerics/harness/TestSeed.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <optional>

namespace spargejit::gpu {
namespace {

using numerics::randomForTest;
using reference::Random;

/// A pair of blocks as the reference sees it.
struct Pair {
  std::int64_t batch, head, qBlock, kvBlock;
  double score;
};

struct Problem {
  std::int64_t batch = 2;
  std::int64_t qHeads = 4;
  std::int64_t kvHeads = 2;
  std::int64_t qLen = 4700;
  std::int64_t kvLen = 5000;
  std::int64_t headDim = 128;
  bool causal = false;
  bool keepDiagonal = false;
  std::int64_t keepFirst = 0;
  std::int64_t k = 0;
  float p = 0;

  static constexpr std::int64_t kBlockQ = 128;
  static constexpr std::int64_t kBlockKv = 64;
  std::int64_t qBlocks() const { return (qLen + kBlockQ - 1) / kBlockQ; }
  std::int64_t kvBlocks() const { return (kvLen + kBlockKv - 1) / kBlockKv; }
  std::int64_t rows() const { return batch * qHeads * qBlocks(); }
  /// Position among the keys of the last row of a block.
  std::int64_t lastKey(std::int64_t qBlock) const {
    return std::min((qBlock + 1) * kBlockQ, qLen) - 1 + kvLen - qLen;
  }
};

/// A row of the reference, or none where rounding may decide otherwise.
using Expected = std::optional<std::vector<std::int32_t>>;

class CustomSelect : public GpuTest {
protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!gpu_)
      return;
    auto nvrtc = jit::Nvrtc::open(*environment());
    if (nvrtc.ok())
      return;
    if (numerics::environment("SPARGEJIT_REQUIRE_GPU") == "1")
      FAIL() << nvrtc.status().message();
    GTEST_SKIP() << nvrtc.status().message();
  }

  void fill(const Problem &problem, Random &random, double keyScale) {
    problem_ = problem;
    q_.resize(static_cast<std::size_t>(problem.rows() * problem.headDim));
    k_.resize(static_cast<std::size_t>(problem.batch * problem.kvHeads *
                                       problem.kvBlocks() * problem.headDim));
    for (float &value : q_)
      value = static_cast<float>(random.normal());
    for (float &value : k_)
      value = static_cast<float>(random.normal() * keyScale);
  }

  /// Compiles, and runs on q_ and k_.
  void run(const std::string &score, const std::string &keep) {
    PlanLaunch launch;
    launch.kernel = "custom_select";
    if (!keep.empty())
      launch.sources.push_back({"keep", keep + "\n"});
    if (!score.empty())
      launch.sources.push_back({"score", score + "\n"});
    KernelSpec spec;
    spec.kernel = launch.kernel;
    spec.target.architecture = "sm_90a";
    spec.parameters = {{"head_dim", problem_.headDim},
                       {"mask_block_q", Problem::kBlockQ},
                       {"mask_block_kv", Problem::kBlockKv},
                       {"causal", std::int64_t{problem_.causal}},
                       {"keep_diagonal", std::int64_t{problem_.keepDiagonal}},
                       {"keep_first", problem_.keepFirst}};
    // Of all tests, so that each text is compiled once.
    static jit::CustomJit compiler(*environment(), spec.target);
    auto code = compiler.code(spec, jit::customText(launch, ""));
    ASSERT_TRUE(code.ok()) << code.status().message();
    auto kernel =
        cuda::LoadedKernel::load(device(), (*code)->launch, (*code)->image);
    ASSERT_TRUE(kernel.ok()) << kernel.status().message();
    runKernel(**kernel);
  }

  void runKernel(const cuda::LoadedKernel &kernel) {
    const Problem &p = problem_;
    const auto entries = static_cast<std::size_t>(p.rows() * p.kvBlocks());
    DeviceArray<float> q(gpu(), q_), k(gpu(), k_);
    DeviceArray<std::int32_t> indices(
        gpu(), std::vector<std::int32_t>(entries, 0x7fff1234));
    DeviceArray<std::int32_t> counts(
        gpu(), std::vector<std::int32_t>(static_cast<std::size_t>(p.rows()),
                                         0x7fff1234));
    std::vector<std::int64_t> slots;
    addTensor(slots, q.data(), {p.batch, p.qHeads, p.qBlocks(), p.headDim});
    addTensor(slots, k.data(), {p.batch, p.kvHeads, p.kvBlocks(), p.headDim});
    addTensor(slots, indices.data(),
              {p.batch, p.qHeads, p.qBlocks(), p.kvBlocks()});
    addTensor(slots, counts.data(), {p.batch, p.qHeads, p.qBlocks()});
    auto bits = [](float value) {
      return static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(value));
    };
    slots.insert(slots.end(), {bits(kScale), p.k, bits(p.p), p.qLen, p.kvLen});
    slots.resize(slots.size() + 2 * 7 + 4); // nothing by head, nothing dense
    ASSERT_EQ(static_cast<int>(slots.size()), kernel.launch().slotCount());
    ASSERT_EQ(kernel.run(slots.data(), nullptr).message(), "");
    indices_ = indices.read();
    counts_ = counts.read();
    measure(kernel, slots);
  }

  /// Prints the median time of a launch.
  void measure(const cuda::LoadedKernel &kernel,
               const std::vector<std::int64_t> &slots) {
    std::vector<double> times;
    cuda::CurrentContext current(device());
    for (int i = 0; i < 9; ++i) {
      auto begin = std::chrono::steady_clock::now();
      for (int j = 0; j < 10; ++j)
        ASSERT_TRUE(kernel.run(slots.data(), nullptr).ok());
      gpu().call("cuCtxSynchronize");
      std::chrono::duration<double, std::micro> elapsed =
          std::chrono::steady_clock::now() - begin;
      times.push_back(elapsed.count() / 10);
    }
    std::sort(times.begin(), times.end());
    std::printf("median of a launch: %.1f us (%lld rows of %lld blocks, %d "
                "registers, %d bytes local)\n",
                times[4], static_cast<long long>(problem_.rows()),
                static_cast<long long>(problem_.kvBlocks()),
                kernel.resources().registers, kernel.resources().localBytes);
  }

  static void addTensor(std::vector<std::int64_t> &slots, const void *data,
                        const std::vector<std::int64_t> &sizes) {
    slots.push_back(std::bit_cast<std::int64_t>(data));
    slots.insert(slots.end(), sizes.begin(), sizes.end());
    for (std::size_t i = 1; i <= sizes.size(); ++i)
      slots.push_back(
          std::accumulate(sizes.begin() + static_cast<std::ptrdiff_t>(i),
                          sizes.end(), std::int64_t{1}, std::multiplies<>()));
  }

  /// Scores of the visible blocks of a row in float64.
  std::vector<double> scoresOf(std::int64_t row) const {
    const Problem &p = problem_;
    const std::int64_t qBlock = row % p.qBlocks();
    const std::int64_t head = row / p.qBlocks() % p.qHeads;
    const std::int64_t batch = row / p.qBlocks() / p.qHeads;
    const std::int64_t kvHead = head / (p.qHeads / p.kvHeads);
    std::vector<double> scores;
    for (std::int64_t j = 0; j < p.kvBlocks(); ++j) {
      if (p.causal && j * Problem::kBlockKv > p.lastKey(qBlock))
        break;
      const float *q = q_.data() + row * p.headDim;
      const float *k =
          k_.data() +
          ((batch * p.kvHeads + kvHead) * p.kvBlocks() + j) * p.headDim;
      double sum = 0;
      for (std::int64_t d = 0; d < p.headDim; ++d)
        sum += static_cast<double>(q[d]) * k[d];
      scores.push_back(score_(Pair{batch, head, qBlock, j, kScale * sum}));
    }
    return scores;
  }

  void force(std::int64_t row, std::vector<bool> &kept) const {
    const Problem &p = problem_;
    const std::int64_t key =
        std::clamp<std::int64_t>(p.lastKey(row % p.qBlocks()), 0, p.kvLen - 1);
    const auto diagonal = static_cast<std::size_t>(key / Problem::kBlockKv);
    for (std::size_t j = 0; j < kept.size(); ++j)
      if ((p.keepDiagonal && j == diagonal) ||
          static_cast<std::int64_t>(j) < p.keepFirst)
        kept[j] = true;
  }

  static std::vector<std::int32_t> listOf(const std::vector<bool> &kept) {
    std::vector<std::int32_t> list;
    for (std::size_t j = 0; j < kept.size(); ++j)
      if (kept[j])
        list.push_back(static_cast<std::int32_t>(j));
    return list;
  }

  /// The ranked prefix by one sort.
  Expected ranked(std::int64_t row) const {
    const std::vector<double> scores = scoresOf(row);
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](auto a, auto b) {
      return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
    double total = 0;
    for (double score : scores)
      total += std::exp(score - scores[order[0]]);
    const auto least = std::min<std::size_t>(
        static_cast<std::size_t>(std::max<std::int64_t>(problem_.k, 1)),
        order.size());
    std::size_t n = 0;
    double mass = 0;
    bool isNear = false;
    while (n < order.size() && (n < least || mass < problem_.p)) {
      mass += std::exp(scores[order[n]] - scores[order[0]]) / total;
      ++n;
      isNear |= n >= least && std::fabs(mass - problem_.p) < 1e-5;
    }
    if (n > 0 && n < order.size())
      isNear |= scores[order[n - 1]] - scores[order[n]] < 1e-5;
    if (isNear)
      return std::nullopt;
    std::vector<bool> kept(scores.size());
    for (std::size_t i = 0; i < n; ++i)
      kept[order[i]] = true;
    force(row, kept);
    return listOf(kept);
  }

  /// What the threshold of docs/examples/threshold.mlir keeps.
  Expected aboveThreshold(std::int64_t row) const {
    const std::vector<double> scores = scoresOf(row);
    std::vector<bool> kept(scores.size());
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const double share =
          std::exp(scores[j] - *std::max_element(scores.begin(), scores.end()));
      if (std::fabs(share - problem_.p) < 1e-4)
        return std::nullopt;
      kept[j] = share >= problem_.p;
    }
    force(row, kept);
    return listOf(kept);
  }

  /// Compares every row: ascending lists, -1 behind them.
  void expectRows(const std::function<Expected(std::int64_t)> &expected) const {
    std::int64_t near = 0;
    const std::int64_t width = problem_.kvBlocks();
    for (std::int64_t row = 0; row < problem_.rows(); ++row) {
      const Expected right = expected(row);
      if (!right) {
        ++near;
        continue;
      }
      std::vector<std::int32_t> whole = *right;
      whole.resize(static_cast<std::size_t>(width), -1);
      const auto begin = indices_.begin() + row * width;
      ASSERT_EQ(counts_[static_cast<std::size_t>(row)],
                static_cast<std::int32_t>(right->size()))
          << "row " << row;
      ASSERT_TRUE(std::equal(whole.begin(), whole.end(), begin))
          << "row " << row;
    }
    std::printf("%lld rows, %lld of them near-ties\n",
                static_cast<long long>(problem_.rows()),
                static_cast<long long>(near));
    EXPECT_LT(near, problem_.rows() / 4 + 1);
  }
  void expectRanked() const {
    expectRows([this](std::int64_t row) { return ranked(row); });
  }

  static constexpr float kScale = 0.088388346f;
  Problem problem_;
  std::vector<float> q_, k_;
  std::vector<std::int32_t> indices_, counts_;
  /// What the stage makes of a pair's score.
  std::function<double(const Pair &)> score_ = [](const Pair &pair) {
    return pair.score;
  };
};

// The prior of docs/examples/local_window.mlir.
const char *const kLocalWindow =
    "float score(const spargejit::BlockPair &pair) {\n"
    "  int before = pair.keyOf(pair.firstRow()) - pair.endKey();\n"
    "  int after = pair.firstKey() - pair.keyOf(pair.endRow());\n"
    "  int gap = max(0, max(before, after));\n"
    "  return pair.score - max(0, gap - 512) / 1024.0f;\n"
    "}\n";

TEST_F(CustomSelect, ALocalWindowIsAddedToTheScore) {
  score_ = [this](const Pair &pair) {
    const Problem &p = problem_;
    const std::int64_t firstRow =
        pair.qBlock * Problem::kBlockQ + p.kvLen - p.qLen;
    const std::int64_t endRow = p.lastKey(pair.qBlock) + 1;
    const std::int64_t firstKey = pair.kvBlock * Problem::kBlockKv;
    const std::int64_t endKey = std::min(firstKey + Problem::kBlockKv, p.kvLen);
    const auto gap = std::max<std::int64_t>(
        0, std::max(firstRow - endKey, firstKey - endRow));
    return pair.score -
           static_cast<double>(std::max<std::int64_t>(0, gap - 512)) / 1024;
  };
  Random random = randomForTest();
  for (std::int64_t headDim : {8, 64, 128, 200, 256})
    for (bool causal : {false, true}) {
      fill({.headDim = headDim,
            .causal = causal,
            .keepDiagonal = causal,
            .keepFirst = causal ? 2 : 0,
            .k = 9,
            .p = causal ? 0.0f : 0.3f},
           random, 1);
      run(kLocalWindow, "");
      expectRanked();
    }
}

TEST_F(CustomSelect, AThresholdKeepsWhatReachesIt) {
  Random random = randomForTest();
  for (bool causal : {false, true}) {
    fill({.causal = causal, .keepFirst = 1, .p = 0.2f}, random, 1);
    run("", "bool keep(const spargejit::ScoredPair &pair) {\n"
            "  return expf(pair.score - pair.rowMax) >= pair.topP;\n}\n");
    expectRows([this](std::int64_t row) { return aboveThreshold(row); });
  }
}

// Lengths from one block to far beyond what eight rows of scores have room for.
TEST_F(CustomSelect, RowsOfAnyLength) {
  Random random = randomForTest();
  for (std::int64_t blocks : {1, 3, 33, 1182, 3600, 4100, 16384}) {
    const std::int64_t kvLen = 64 * blocks - 7;
    fill({.batch = 1,
          .qHeads = 2,
          .kvHeads = 1,
          .qLen = 2000,
          .kvLen = kvLen,
          .k = std::max<std::int64_t>(1, blocks / 30),
          .p = 0.1f},
         random, 2);
    run("float score(const spargejit::BlockPair &pair) {\n"
        "  return pair.score;\n}\n",
        "");
    expectRanked();
  }
}

// The length of Wan 1.3B at 480p, whose time is printed.
TEST_F(CustomSelect, RowsOfAVideo) {
  Random random = randomForTest();
  fill({.batch = 1,
        .qHeads = 12,
        .kvHeads = 12,
        .qLen = 32760,
        .kvLen = 32760,
        .k = 15,
        .p = 0.2f},
       random, 1);
  run("float score(const spargejit::BlockPair &pair) {\n"
      "  return pair.score;\n}\n",
      "");
  expectRanked();
}

TEST_F(CustomSelect, TiesGoToTheLowerBlock) {
  Random random = randomForTest();
  fill({.k = 11}, random, 1);
  score_ = [](const Pair &pair) {
    return static_cast<double>(pair.kvBlock % 3);
  };
  run("float score(const spargejit::BlockPair &pair) {\n"
      "  return pair.kvBlock % 3;\n}\n",
      "");
  std::vector<std::int32_t> expected;
  for (std::int32_t i = 0; i < 11; ++i)
    expected.push_back(3 * i + 2);
  expectRows([&](std::int64_t) { return Expected(expected); });
}

// A stage sees the vectors, numbers and lengths that the pair is of.
TEST_F(CustomSelect, AStageSeesItsPair) {
  Random random = randomForTest();
  fill({.k = 5}, random, 1);
  score_ = [this](const Pair &pair) {
    const Problem &p = problem_;
    const auto kvHead = pair.head / (p.qHeads / p.kvHeads);
    const auto row =
        (pair.batch * p.qHeads + pair.head) * p.qBlocks() + pair.qBlock;
    const auto key =
        (pair.batch * p.kvHeads + kvHead) * p.kvBlocks() + pair.kvBlock;
    return static_cast<double>(
               q_[static_cast<std::size_t>(row * p.headDim + 3)]) *
               k_[static_cast<std::size_t>(key * p.headDim + 127)] +
           0.01 * static_cast<double>(
                      (pair.batch + 2 * pair.head + 7 * kvHead + pair.qBlock) *
                      (pair.kvBlock % 2));
  };
  run("float score(const spargejit::BlockPair &pair) {\n"
      "  bool isRight = pair.qBlocks == 37 && pair.kvBlocks == 79 &&\n"
      "                 pair.qLen == 4700 && pair.kvLen == 5000 &&\n"
      "                 pair.keptBlocks == 5 && pair.topP == 0 &&\n"
      "                 spargejit::kHeadDim == 128 &&\n"
      "                 pair.softmaxScale == 0.088388346f;\n"
      "  return isRight ? pair.q[3] * pair.k[127] + 0.01f * (pair.batch +\n"
      "      2 * pair.head + 7 * pair.kvHead + pair.qBlock) *\n"
      "      (pair.kvBlock % 2) : 0;\n}\n",
      "");
  expectRanked();
}

TEST_F(CustomSelect, GivesTheSameListsEachTime) {
  Random random = randomForTest();
  fill({.k = 9, .p = 0.4f}, random, 2);
  run(kLocalWindow, "");
  const auto indices = indices_, counts = counts_;
  for (int repeat = 0; repeat < 20; ++repeat) {
    run(kLocalWindow, "");
    ASSERT_EQ(indices_, indices);
    ASSERT_EQ(counts_, counts);
  }
}

} // namespace
} // namespace spargejit::gpu
