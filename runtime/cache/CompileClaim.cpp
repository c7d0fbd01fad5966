// SPDX-License-Identifier: Apache-2.0
//
// Claims: files that only one process can make (O_EXCL, which network file
// systems have had since NFS 3).
#include "runtime/cache/CompileClaim.h"

#include "runtime/cache/EntryFolder.h"
#include "runtime/cache/FileIo.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <optional>
#include <sys/types.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace spargejit::cache {

namespace {

using Clock = std::chrono::steady_clock;

/// Where process numbers mean what they mean here: the machine's name and its
/// process name space.
std::string processSpace() {
  std::array<char, 256> host{};
  std::array<char, 64> space{};
  (void)::gethostname(host.data(), host.size() - 1);
  (void)::readlink("/proc/self/ns/pid", space.data(), space.size() - 1);
  return fmt::format("{} {}", host.data(), space.data());
}

enum class Owner { Unknown, Alive, Dead };

Owner ownerOf(const std::string &claim) {
  std::size_t newline = claim.find('\n');
  if (newline == std::string::npos ||
      claim.substr(newline + 1) != processSpace())
    return Owner::Unknown;
  pid_t process = 0;
  auto [end, failure] =
      std::from_chars(claim.data(), claim.data() + newline, process);
  if (failure != std::errc() || process <= 0)
    return Owner::Unknown;
  return ::kill(process, 0) != 0 && errno == ESRCH ? Owner::Dead : Owner::Alive;
}

/// Makes the claim; an error number, EEXIST where somebody has it.
int makeClaim(const std::string &path) {
  int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0)
    return errno;
  std::string owner = fmt::format("{}\n{}", ::getpid(), processSpace());
  // Unwritten, it is a claim of nobody known.
  (void)!::write(file, owner.data(), owner.size());
  (void)::close(file);
  return 0;
}

} // namespace

CompileClaim CompileClaim::take(const std::string &parent,
                                const std::string &name, const Limits &limits) {
  const std::string path = parent + "/.claim-" + name;
  const std::string manifest = parent + "/" + name + "/" + kManifestName;
  constexpr std::int64_t kMostBytes = 4096;
  CompileClaim claim;
  auto pause = std::chrono::milliseconds(2);
  for (const auto begin = Clock::now();;) {
    int error = makeClaim(path);
    if (error == 0)
      claim.path_ = path;
    // Without a claim, too, there is something to be done.
    if (error != EEXIST)
      return claim;
    claim.hasWaited_ = true;
    FileBytes text = readFile(path, kMostBytes);
    if (isAbsence(text.error) || stateOf(manifest).bytes >= 0)
      return claim;
    Owner owner = text.error == 0 ? ownerOf(text.bytes) : Owner::Unknown;
    auto limit = owner == Owner::Alive ? limits.known : limits.unknown;
    if (owner == Owner::Dead || Clock::now() - begin > limit) {
      (void)::unlink(path.c_str());
      if (owner != Owner::Dead)
        return claim;
      continue;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(50));
  }
}

CompileClaim::CompileClaim(CompileClaim &&other) noexcept
    : path_(std::exchange(other.path_, {})), hasWaited_(other.hasWaited_) {}

CompileClaim::~CompileClaim() {
  if (isHeld())
    (void)::unlink(path_.c_str());
}

} // namespace spargejit::cache
