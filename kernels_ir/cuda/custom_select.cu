// SPDX-License-Identifier: Apache-2.0
//
// custom_select: block lists by a stage that the user wrote in CUDA C++. The
// stage's text stands before this one; NVRTC compiles both as one.
//
//   s[i, j] = SPARGEJIT_SCORE ? score(pair) : softmax_scale q[i] · k[j]
//   list[i] = SPARGEJIT_KEEP ? { j : keep(pair) }
//                            : the prefix of the ranking, as select_blocks
//
// A CTA has eight rows of blocks. Its warps score four key blocks against all
// rows at a time, so that pooled keys are read once for eight rows; then each
// warp selects from one row, in shared memory. Where that is too small for
// eight rows of scores, the CTA takes its rows one by one.

namespace spargejit::device {

//===----------------------------------------------------------------------===//
// The user's functions
//===----------------------------------------------------------------------===//

template <class Pair>
constexpr bool kHasScore = requires(const Pair &pair) { float(score(pair)); };
template <class Pair>
constexpr bool kHasKeep = requires(const Pair &pair) { bool(keep(pair)); };
static_assert(!SPARGEJIT_SCORE || kHasScore<BlockPair>,
              "sparge.custom_scores needs a definition of "
              "float score(const spargejit::BlockPair &pair)");
static_assert(!SPARGEJIT_KEEP || kHasKeep<ScoredPair>,
              "sparge.custom_select needs a definition of "
              "bool keep(const spargejit::ScoredPair &pair)");

template <class Pair>
float scoreOf(const Pair &pair) {
  if constexpr (SPARGEJIT_SCORE && kHasScore<Pair>)
    return score(pair);
  else
    return pair.score;
}

template <class Pair>
bool keepOf(const Pair &pair) {
  if constexpr (SPARGEJIT_KEEP && kHasKeep<Pair>)
    return keep(pair);
  else
    return false;
}

constexpr int kWarps = 8;
constexpr int kRows = 8;
constexpr int kThreads = 32 * kWarps;
constexpr unsigned kAll = 0xffffffffu;
/// A lane holds four columns of a pooled vector in each part.
constexpr int kParts = (kHeadDim + 127) / 128;

//===----------------------------------------------------------------------===//
// Groups (select_row.h)
//===----------------------------------------------------------------------===//

class WarpGroup {
public:
  int lane() const { return threadIdx.x % 32; }
  int size() const { return 32; }
  void sync() const { __syncwarp(); }
  int max(int value) const { return __reduce_max_sync(kAll, value); }
  int sum(int value) const { return __reduce_add_sync(kAll, value); }
  double sum(double value) const {
    for (int step = 16; step > 0; step /= 2)
      value += __shfl_xor_sync(kAll, value, step);
    return value;
  }
  int before(bool flag, int &total) const {
    const unsigned lanes = __ballot_sync(kAll, flag);
    total = __popc(lanes);
    return __popc(lanes & ((1u << lane()) - 1));
  }
};

class CtaGroup {
public:
  /// `slots`: shared memory, one for each warp.
  explicit CtaGroup(double *slots) : slots_(slots) {}

  int lane() const { return threadIdx.x; }
  int size() const { return kThreads; }
  void sync() const { __syncthreads(); }
  int max(int value) const {
    exchange(warp_.max(value));
    int result = kHidden;
    for (int i = 0; i < kWarps; ++i)
      result = max2(result, static_cast<int>(slots_[i]));
    return result;
  }
  int sum(int value) const {
    return static_cast<int>(sumOfWarps(warp_.sum(value)));
  }
  double sum(double value) const { return sumOfWarps(warp_.sum(value)); }
  int before(bool flag, int &total) const {
    int ofWarp = 0;
    const int lower = warp_.before(flag, ofWarp);
    exchange(ofWarp);
    int earlier = 0;
    total = 0;
    for (int i = 0; i < kWarps; ++i) {
      const int count = static_cast<int>(slots_[i]);
      earlier += i < threadIdx.x / 32 ? count : 0;
      total += count;
    }
    return earlier + lower;
  }

private:
  static int max2(int a, int b) { return a > b ? a : b; }
  /// Every 32-bit integer is a double.
  void exchange(double value) const {
    __syncthreads(); // the last exchange has been read
    if (warp_.lane() == 0)
      slots_[threadIdx.x / 32] = value;
    __syncthreads();
  }
  double sumOfWarps(double value) const {
    exchange(value);
    double result = 0;
    for (int i = 0; i < kWarps; ++i)
      result += slots_[i];
    return result;
  }

  double *slots_;
  WarpGroup warp_;
};

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

template <class T, int kRank>
struct Tensor {
  T *data;
  long long sizes[kRank];
  long long strides[kRank];
};

/// The argument slots (runtime/base/KernelSpec.h).
struct Arguments {
  Tensor<const float, 4> pooledQ;
  Tensor<const float, 4> pooledK;
  Tensor<int, 4> indices;
  Tensor<int, 3> counts;
  float softmaxScale;
  long long k;
  float p;
  alignas(8) long long qLen;
  long long kvLen;
  /// In place of k and p where they are given: [batch, qHeads, 1].
  Tensor<const float, 3> kValues;
  Tensor<const float, 3> pValues;
  /// Key blocks that every row keeps, and rows that keep every key block.
  long long denseFirst;
  long long denseEnd;
  long long denseRowFirst;
  long long denseRowEnd;
};
static_assert(sizeof(Arguments) == 8 * 57);

float valueOf(const Tensor<const float, 3> &values, const BlockPair &pair) {
  return values.data[pair.batch * values.strides[0] +
                     pair.head * values.strides[1]];
}

/// clamp(trunc(share · kvBlocks), 1, kvBlocks), 1 for NaN.
int keptBlocks(float share, int kvBlocks) {
  const float blocks = static_cast<float>(kvBlocks);
  return static_cast<int>(fminf(fmaxf(share * blocks, 1.0f), blocks));
}

/// One head's tile of rows.
struct Tile {
  /// Everything of a pair that its rows share.
  BlockPair pair;
  const float *q;
  const float *k;
  long long qStride;
  long long kStride;
  int firstRow;
  int rows;
};

Tile tileOf(const Arguments &arguments) {
  const long long qBlocks = arguments.pooledQ.sizes[2];
  const long long tiles = (qBlocks + kRows - 1) / kRows;
  const long long heads = arguments.pooledQ.sizes[1];
  const long long program = blockIdx.x;
  Tile tile;
  BlockPair &pair = tile.pair;
  pair.batch = static_cast<int>(program / tiles / heads);
  pair.head = static_cast<int>(program / tiles % heads);
  pair.kvHead =
      static_cast<int>(pair.head / (heads / arguments.pooledK.sizes[1]));
  pair.qBlocks = static_cast<int>(qBlocks);
  pair.kvBlocks = static_cast<int>(arguments.pooledK.sizes[2]);
  pair.qLen = static_cast<int>(arguments.qLen);
  pair.kvLen = static_cast<int>(arguments.kvLen);
  pair.softmaxScale = arguments.softmaxScale;
  pair.keptBlocks = arguments.kValues.data
                        ? keptBlocks(valueOf(arguments.kValues, pair),
                                     pair.kvBlocks)
                        : static_cast<int>(arguments.k);
  pair.topP = arguments.pValues.data ? valueOf(arguments.pValues, pair)
                                     : arguments.p;
  tile.qStride = arguments.pooledQ.strides[2];
  tile.kStride = arguments.pooledK.strides[2];
  tile.q = arguments.pooledQ.data + pair.batch * arguments.pooledQ.strides[0] +
           pair.head * arguments.pooledQ.strides[1];
  tile.k = arguments.pooledK.data + pair.batch * arguments.pooledK.strides[0] +
           pair.kvHead * arguments.pooledK.strides[1];
  tile.firstRow = static_cast<int>(program % tiles) * kRows;
  const int left = pair.qBlocks - tile.firstRow;
  tile.rows = left < kRows ? left : kRows;
  return tile;
}

BlockPair pairOf(const Tile &tile, int row, int kvBlock, float score) {
  BlockPair pair = tile.pair;
  pair.qBlock = row;
  pair.kvBlock = kvBlock;
  pair.q = tile.q + row * tile.qStride;
  pair.k = tile.k + kvBlock * tile.kStride;
  pair.score = score;
  return pair;
}

/// The last key position that a row of blocks sees; may be below 0.
int lastKeyOf(const BlockPair &pair) { return pair.keyOf(pair.endRow() - 1); }

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

float dot4(float4 a, float4 b, float sum) {
  return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, sum))));
}

/// This lane's part of a pooled vector.
void loadPart(const float *vector, float4 (&part)[kParts]) {
  for (int i = 0; i < kParts; ++i) {
    const int column = 4 * (threadIdx.x % 32) + 128 * i;
    part[i] = column < kHeadDim
                  ? *reinterpret_cast<const float4 *>(vector + column)
                  : float4{0, 0, 0, 0};
  }
}

/// Lane l gets in values[0] the sum over all lanes of values[l]: each step halves
/// what a lane still has to sum.
template <int kStep = 16>
void sumTransposed(float (&values)[32]) {
  const bool upper = threadIdx.x & kStep;
#pragma unroll
  for (int i = 0; i < kStep; ++i) {
    const float mine = upper ? values[i + kStep] : values[i];
    const float other = upper ? values[i] : values[i + kStep];
    values[i] = mine + __shfl_xor_sync(kAll, other, kStep);
  }
  if constexpr (kStep > 1)
    sumTransposed<kStep / 2>(values);
}

/// What the row keeps for a pair; kHidden where causality hides it.
int keyOfPair(const BlockPair &pair) {
  if (kCausal && pair.firstKey() > lastKeyOf(pair))
    return kHidden;
  return keyOfScore(scoreOf(pair));
}

/// Scores of `count` <= kCount rows from `first` on with all key blocks, by the
/// CTA: keys[row][kvBlock].
template <int kCount>
void scoreRows(const Tile &tile, int first, int count, int *keys) {
  constexpr int kColumns = 32 / kCount;
  const int lane = threadIdx.x % 32;
  const int row = lane / kColumns;
  float4 q[kCount][kParts];
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    loadPart(tile.q + (first + (i < count ? i : 0)) * tile.qStride, q[i]);
#pragma unroll 1
  for (int column = threadIdx.x / 32 * kColumns; column < tile.pair.kvBlocks;
       column += kWarps * kColumns) {
    float sums[32];
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int last = tile.pair.kvBlocks - 1;
      float4 k[kParts];
      loadPart(tile.k + (column + j < last ? column + j : last) * tile.kStride,
               k);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        float sum = 0;
#pragma unroll
        for (int part = 0; part < kParts; ++part)
          sum = dot4(q[i][part], k[part], sum);
        sums[i * kColumns + j] = sum;
      }
    }
    sumTransposed(sums);
    const int kvBlock = column + lane % kColumns;
    if (row < count && kvBlock < tile.pair.kvBlocks)
      keys[row * tile.pair.kvBlocks + kvBlock] =
          keyOfPair(pairOf(tile, first + row, kvBlock,
                           tile.pair.softmaxScale * sums[0]));
  }
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

template <class Group>
void selectRow(const Group &group, const Arguments &arguments,
               const Tile &tile, int number, const int *keys, float *weights) {
  const BlockPair pair = pairOf(tile, number, 0, 0);
  Row row;
  row.keys = keys;
  row.weights = weights;
  row.blocks = pair.kvBlocks;
  row.forcedBlock = -1;
  if (SPARGEJIT_KEEP_DIAGONAL) {
    int key = lastKeyOf(pair);
    key = key < pair.kvLen ? key : pair.kvLen - 1;
    row.forcedBlock = (key > 0 ? key : 0) / kMaskBlockKv;
  }
  row.forcedFirst = SPARGEJIT_KEEP_FIRST;
  const bool isDense =
      number >= arguments.denseRowFirst && number < arguments.denseRowEnd;
  row.denseFirst = isDense ? 0 : static_cast<int>(arguments.denseFirst);
  row.denseEnd =
      isDense ? pair.kvBlocks : static_cast<int>(arguments.denseEnd);
  const Tensor<int, 4> &indices = arguments.indices;
  row.list = indices.data + pair.batch * indices.strides[0] +
             pair.head * indices.strides[1] + number * indices.strides[2];
  row.capacity = static_cast<int>(indices.sizes[3]);
  const Tensor<int, 3> &counts = arguments.counts;
  row.count = counts.data + pair.batch * counts.strides[0] +
              pair.head * counts.strides[1] + number * counts.strides[2];

#if SPARGEJIT_KEEP
  const RowMass mass = weighScores(group, row);
  writeList(group, row, [&](int j, bool isHere) {
    return isHere &&
           keepOf(ScoredPair{pairOf(tile, number, j, scoreOfKey(keys[j])),
                             mass.max, static_cast<float>(mass.sum)});
  });
#else
  RowMass mass{0, 0};
  if (pair.topP > 0)
    mass = weighScores(group, row);
  selectRanked(group, row, wantedOf(pair.keptBlocks, pair.topP, mass));
#endif
}

} // namespace spargejit::device

extern "C" __global__ void __launch_bounds__(spargejit::device::kThreads)
    custom_select(const spargejit::device::Arguments arguments) {
  using namespace spargejit::device;
  extern __shared__ int memory[];
  __shared__ double slots[kWarps];
  unsigned bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  const Tile tile = tileOf(arguments);
  const int blocks = tile.pair.kvBlocks;
  const bool atOnce = bytes >= kRows * 8ull * blocks;
  float *weights = reinterpret_cast<float *>(
      memory + (atOnce ? kRows : 1) * blocks);
  if (atOnce) {
    scoreRows<kRows>(tile, tile.firstRow, tile.rows, memory);
    __syncthreads();
    const int row = threadIdx.x / 32;
    if (row < tile.rows)
      selectRow(WarpGroup(), arguments, tile, tile.firstRow + row,
                memory + row * blocks, weights + row * blocks);
    return;
  }
  for (int row = tile.firstRow; row < tile.firstRow + tile.rows; ++row) {
    scoreRows<1>(tile, row, 1, memory);
    __syncthreads();
    selectRow(CtaGroup(slots), arguments, tile, row, memory, weights);
    __syncthreads(); // before the next row's scores
  }
}
