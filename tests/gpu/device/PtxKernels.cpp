// SPDX-License-Identifier: Apache-2.0
//
// The texts. A tensor of rank 4 takes 9 slots: address, sizes, strides.
#include "tests/gpu/device/PtxKernels.h"

namespace spargejit::gpu {

namespace {

using Kind = KernelArgument::Kind;

LaunchInfo infoOf(const char *entry, std::vector<KernelArgument> arguments,
                  std::int64_t tile) {
  LaunchInfo info;
  info.entryName = entry;
  int slot = 0;
  for (KernelArgument &argument : arguments) {
    argument.firstSlot = slot;
    slot += argument.slotCount();
  }
  info.arguments = std::move(arguments);
  info.gridTile = tile;
  info.threads = 128;
  return info;
}

/// More rows than any tensor of these tests has: one program.
constexpr std::int64_t kWhole = 1 << 30;

} // namespace

LaunchInfo addOneInfo() {
  return infoOf("add_one", {{"x", Kind::Tensor, 4}}, 128);
}

const char *const kAddOnePtx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry add_one(.param .align 8 .b8 slots[72])
.maxntid 128, 1, 1
{
  .reg .pred %p;
  .reg .b32 %r<5>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [slots];
  ld.param.u64 %d3, [slots+24];
  cvta.to.global.u64 %d1, %d1;
  cvt.u32.u64 %r4, %d3;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r1, %r2, 128, %r1;
  setp.ge.u32 %p, %r1, %r4;
  @%p ret;
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.u32 %r3, [%d1];
  add.u32 %r3, %r3, 1;
  st.global.u32 [%d1], %r3;
  ret;
}
)";

LaunchInfo spinInfo() {
  return infoOf("spin", {{"x", Kind::Tensor, 4}, {"nanoseconds", Kind::Index}},
                kWhole);
}

const char *const kSpinPtx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry spin(.param .align 8 .b8 slots[80])
.maxntid 128, 1, 1
{
  .reg .pred %p;
  .reg .b32 %r<2>;
  .reg .b64 %d<5>;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p, %r1, 0;
  @%p ret;
  ld.param.u64 %d1, [slots];
  ld.param.u64 %d2, [slots+72];
  cvta.to.global.u64 %d1, %d1;
  mov.u64 %d3, %globaltimer;
  add.u64 %d3, %d3, %d2;
SPIN:
  mov.u64 %d4, %globaltimer;
  setp.lt.u64 %p, %d4, %d3;
  @%p bra SPIN;
  st.global.u32 [%d1], 1;
  ret;
}
)";

LaunchInfo copyBoxInfo() {
  LaunchInfo info = infoOf("copy_box",
                           {{"x", Kind::Tensor, 4},
                            {"out", Kind::Tensor, 4},
                            {"batch", Kind::Index},
                            {"head", Kind::Index},
                            {"row", Kind::Index}},
                           kWhole);
  info.gridArgument = 1;
  info.sharedBytes = 2048 + 1024;
  info.tensorMaps = {{0, DataType::BFloat16, 16, 64, 128}};
  return info;
}

// The box goes to the first multiple of 1024 bytes of shared memory, which the
// swizzle counts from. 128 threads write 16 bytes each.
const char *const kCopyBoxPtx = R"(.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 box[];
.visible .entry copy_box(.param .align 8 .b8 slots[168],
                         .param .align 64 .b8 map[128])
.maxntid 128, 1, 1
{
  .reg .pred %p, %q;
  .reg .b32 %r<12>;
  .reg .b64 %d<8>;
  .shared .align 8 .b64 landed;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, landed;
  mov.u32 %r3, box;
  add.u32 %r3, %r3, 1023;
  and.b32 %r3, %r3, -1024;
  setp.ne.u32 %p, %r1, 0;
  @%p bra READY;
  mbarrier.init.shared.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
READY:
  bar.sync 0;
  @%p bra WAIT;
  ld.param.u64 %d1, [slots+144];
  ld.param.u64 %d2, [slots+152];
  ld.param.u64 %d3, [slots+160];
  cvt.u32.u64 %r4, %d1;
  cvt.u32.u64 %r5, %d2;
  cvt.u32.u64 %r6, %d3;
  mov.u32 %r7, 0;
  mov.b64 %d4, map;
  cvta.param.u64 %d4, %d4;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 2048;
  cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r3], [%d4, {%r7, %r6, %r5, %r4}], [%r2];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %q, [%r2], 0;
  @!%q bra WAIT;
  ld.param.u64 %d5, [slots+72];
  cvta.to.global.u64 %d5, %d5;
  mul.wide.u32 %d6, %r1, 16;
  add.u64 %d5, %d5, %d6;
  shl.b32 %r8, %r1, 4;
  add.u32 %r3, %r3, %r8;
  ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%r3];
  st.global.v4.u32 [%d5], {%r8, %r9, %r10, %r11};
  ret;
}
)";

LaunchInfo faultInfo() {
  return infoOf("fault", {{"x", Kind::Tensor, 4}}, kWhole);
}

const char *const kFaultPtx = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry fault(.param .align 8 .b8 slots[72])
.maxntid 128, 1, 1
{
  .reg .b32 %r<2>;
  .reg .b64 %d<3>;
  ld.param.u64 %d2, [slots];
  cvta.to.global.u64 %d2, %d2;
  mov.u64 %d1, 16;
  ld.volatile.global.u32 %r1, [%d1];
  st.global.u32 [%d2], %r1;
  ret;
}
)";

} // namespace spargejit::gpu
