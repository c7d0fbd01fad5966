// SPDX-License-Identifier: Apache-2.0
//
// Attention through the installed library, with exceptions. The argument says
// whether the library has the compiler in it (1), not even artifacts (0), or
// these alone (pack).
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <spargejit/spargejit.h>
#include <vector>

void throwInvalidArgument();

namespace {

void require(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "not true: %s\n", what);
  std::exit(1);
}

constexpr std::int64_t kHeads = 2, kLength = 100, kDim = 16;

std::vector<float> randomValues(std::mt19937 &generator) {
  std::normal_distribution<float> normal;
  std::vector<float> values(kHeads * kLength * kDim);
  for (float &value : values)
    value = normal(generator);
  return values;
}

spargejit::TensorView viewOf(std::vector<float> &values) {
  return spargejit::TensorView::contiguous(
      values.data(), spargejit::DataType::Float32, {1, kHeads, kLength, kDim});
}

/// Dense attention of one row, in float64.
std::vector<double> plainRow(const std::vector<float> &q,
                             const std::vector<float> &k,
                             const std::vector<float> &v, std::int64_t head,
                             std::int64_t row) {
  auto at = [&](const std::vector<float> &x, std::int64_t i, std::int64_t d) {
    return static_cast<double>(
        x[static_cast<std::size_t>((head * kLength + i) * kDim + d)]);
  };
  std::vector<double> sums(kDim);
  double total = 0;
  for (std::int64_t j = 0; j < kLength; ++j) {
    double score = 0;
    for (std::int64_t d = 0; d < kDim; ++d)
      score += at(q, row, d) * at(k, j, d);
    double weight = std::exp(score / std::sqrt(static_cast<double>(kDim)));
    total += weight;
    for (std::int64_t d = 0; d < kDim; ++d)
      sums[static_cast<std::size_t>(d)] += weight * at(v, j, d);
  }
  for (double &sum : sums)
    sum /= total;
  return sums;
}

void checkAgainstPlainLoops(std::mt19937 &generator, bool compiler) {
  std::vector<float> q = randomValues(generator), k = randomValues(generator),
                     v = randomValues(generator);
  spargejit::AttentionConfig config;
  config.method = "dense";
  spargejit::Tensor o =
      spargejit::attention(viewOf(q), viewOf(k), viewOf(v), config).value();
  const float *result = o.data<float>();
  for (std::int64_t head = 0; head < kHeads; ++head)
    for (std::int64_t row = 0; row < kLength; ++row)
      for (double expected : plainRow(q, k, v, head, row))
        require(std::abs(*result++ - expected) < 1e-5, "o is the plain loops'");

  config.method = "spargeattention2";
  spargejit::BlockLists lists =
      spargejit::selectBlocks(viewOf(q), viewOf(k), config).value();
  require(lists.density() > 0 && lists.density() <= 1, "density is a share");
  const spargejit::Counters done = spargejit::counters();
  require((done.kernelsCompiled > 0) == compiler, "who has it compiles");
  require(compiler || done.kernelsFromDisk > 0, "kernels came from the pack");
}

void checkMissingArtifact(std::mt19937 &generator) {
  std::vector<float> q = randomValues(generator);
  spargejit::AttentionConfig config;
  config.method = "dense";
  auto o = spargejit::attention(viewOf(q), viewOf(q), viewOf(q), config);
  require(!o.ok(), "a library without a compiler and artifacts fails");
  require(o.status().code() == spargejit::ErrorCode::ArtifactMissing,
          "the code is ArtifactMissing");
  require(o.status().message().find("spargejit compile") != std::string::npos,
          "the message names the command");
}

} // namespace

int main(int argc, char **argv) {
  const bool compiler = argc == 2 && std::strcmp(argv[1], "1") == 0;
  std::random_device device;
  const unsigned seed = device();
  std::printf("spargejit %s, seed %u\n", spargejit::version(), seed);
  std::mt19937 generator(seed);

  require(std::strcmp(spargejit::version(), "0.1.0") == 0, "the version");
  require(spargejit::hasCompiler() == compiler, "hasCompiler()");
  try {
    throwInvalidArgument();
    require(false, "an exception came");
  } catch (const spargejit::Error &error) {
    require(error.code() == spargejit::ErrorCode::InvalidArgument, "its code");
    require(std::strcmp(error.what(), "sizes[0]: expected 0 or more, got -1") ==
                0,
            "its message");
  }
  const bool pack = argc == 2 && std::strcmp(argv[1], "pack") == 0;
  try {
    if (compiler || pack)
      checkAgainstPlainLoops(generator, compiler);
    else
      checkMissingArtifact(generator);
  } catch (const spargejit::Error &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
