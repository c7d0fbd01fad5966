// SPDX-License-Identifier: Apache-2.0
//
// The CPU as a back end under test: ordinary memory, or pages between two
// pages that fault.
#include "tests/numerics/harness/TestBackend.h"

#include "tests/numerics/harness/CudaTestBackend.h"

#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

namespace spargejit::numerics {
namespace {

class CpuBackend : public TestBackend {
public:
  std::string name() const override { return "Cpu"; }
  Device device() const override { return {}; }
  bool hasFences() const override { return true; }

  std::shared_ptr<std::byte> allocate(std::size_t size,
                                      Surroundings surroundings,
                                      bool fenceAtEnd) override {
    if (surroundings == Surroundings::Poison)
      return {new std::byte[size], std::default_delete<std::byte[]>()};
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inner = (size + page - 1) / page * page;
    const std::size_t whole = inner + 2 * page;
    void *mapped =
        mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
      throw std::runtime_error("mmap failed");
    auto *base = static_cast<std::byte *>(mapped);
    if (inner > 0 && mprotect(base + page, inner, PROT_READ | PROT_WRITE) != 0)
      throw std::runtime_error("mprotect failed");
    std::byte *data = base + page + (fenceAtEnd ? inner - size : 0);
    return {data, [base, whole](std::byte *) { munmap(base, whole); }};
  }

  void write(std::byte *to, const std::byte *from, std::size_t size) override {
    std::memcpy(to, from, size);
  }
  void read(std::byte *to, const std::byte *from, std::size_t size) override {
    std::memcpy(to, from, size);
  }
};

} // namespace

const std::vector<TestBackend *> &availableBackends() {
  static CpuBackend cpu;
  static const std::vector<TestBackend *> kBackends = [] {
    std::vector<TestBackend *> backends = {&cpu};
    if (TestBackend *cuda = cudaTestBackend())
      backends.push_back(cuda);
    return backends;
  }();
  return kBackends;
}

} // namespace spargejit::numerics
