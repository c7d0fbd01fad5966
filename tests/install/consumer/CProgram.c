// SPDX-License-Identifier: Apache-2.0
//
// Attention from C through the installed library. The argument is 1 where the
// library has the compiler in it.
#include <math.h>
#include <spargejit/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  kHeads = 2,
  kLength = 200,
  kDim = 16,
  kElements = kHeads * kLength * kDim
};

static void require(int holds, const char *what) {
  if (holds)
    return;
  fprintf(stderr, "not true: %s (last error: %s)\n", what,
          spargejit_last_error());
  exit(1);
}

static SpargejitTensor tensorOf(float *data) {
  SpargejitTensor tensor = {data,
                            SpargejitFloat32,
                            4,
                            {1, kHeads, kLength, kDim},
                            {kElements, kLength * kDim, kDim, 1},
                            SpargejitCpu,
                            0};
  return tensor;
}

// The largest difference of o from attention by plain loops in float64.
static double differenceFromLoops(const float *q, const float *k,
                                  const float *v, const float *o) {
  double largest = 0;
  for (int row = 0; row < kHeads * kLength; ++row) {
    const int head = row / kLength;
    double sums[kDim] = {0}, total = 0;
    for (int j = head * kLength; j < (head + 1) * kLength; ++j) {
      double score = 0;
      for (int d = 0; d < kDim; ++d)
        score += (double)q[row * kDim + d] * k[j * kDim + d];
      const double weight = exp(score / 4); // sqrt(kDim)
      total += weight;
      for (int d = 0; d < kDim; ++d)
        sums[d] += weight * v[j * kDim + d];
    }
    for (int d = 0; d < kDim; ++d)
      largest = fmax(largest, fabs(sums[d] / total - o[row * kDim + d]));
  }
  return largest;
}

// Uniform in [-2, 2].
static float randomValue(void) {
  return (float)(rand() / (double)RAND_MAX * 4 - 2);
}

static float q[kElements], k[kElements], v[kElements], o[kElements];

static void attendDensely(SpargejitConfig *config, int compiler) {
  SpargejitTensor qView = tensorOf(q), kView = tensorOf(k), vView = tensorOf(v),
                  oView = tensorOf(o);
  config->method = "dense";
  const SpargejitStatus status =
      spargejit_attention(&oView, &qView, &kView, &vView, config, NULL);
  if (!compiler) {
    require(status == SpargejitArtifactMissing, "a kernel is missing");
    require(strstr(spargejit_last_error(), "spargejit compile") != NULL,
            "the message names the command");
    return;
  }
  require(status == SpargejitOk, "dense attention runs");
  require(differenceFromLoops(q, k, v, o) < 1e-5, "o is the plain loops'");

  SpargejitCounters counters = {.structSize = sizeof counters};
  require(spargejit_get_counters(&counters) == SpargejitOk,
          "counters are told");
  require(counters.kernelsCompiled > 0, "a kernel was compiled");
}

static void checkRefusals(const SpargejitConfig *config) {
  SpargejitTensor qView = tensorOf(q), kView = tensorOf(k), vView = tensorOf(v),
                  oView = tensorOf(o);
  kView.sizes[3] = kDim / 2;
  require(spargejit_attention(&oView, &qView, &kView, &vView, config, NULL) ==
              SpargejitInvalidArgument,
          "another head dimension is refused");
  require(strstr(spargejit_last_error(), "k.sizes[3]") != NULL,
          "the message names the argument");
  require(strcmp(spargejit_status_name(SpargejitInvalidArgument),
                 "InvalidArgument") == 0,
          "a status has its name");
}

int main(int argc, char **argv) {
  const int compiler = argc == 2 && strcmp(argv[1], "1") == 0;
  const unsigned seed = (unsigned)time(NULL);
  printf("spargejit %s, ABI %d, seed %u\n", spargejit_version(),
         spargejit_abi_version(), seed);
  require(spargejit_abi_version() == SPARGEJIT_ABI_VERSION, "the ABI");
  require(spargejit_has_compiler() == compiler, "spargejit_has_compiler()");
  srand(seed);
  for (int i = 0; i < kElements; ++i) {
    q[i] = randomValue();
    k[i] = randomValue();
    v[i] = randomValue();
    o[i] = NAN;
  }
  SpargejitConfig config;
  require(spargejit_init_config(&config, sizeof config) == SpargejitOk,
          "a config has defaults");
  require(config.topK == 0.03 && config.maskBlockKv == 64, "the defaults");
  checkRefusals(&config);
  attendDensely(&config, compiler);
  return 0;
}
