// SPDX-License-Identifier: Apache-2.0
//
// A linker for objects of the large, position-independent code model (x86-64
// psABI 1.0, section 3.5): code reaches its constants through the offset of
// each from a table of addresses (GOT), and a few functions of the C library
// through entries of that table. So three relocations are all there is:
//   GOTPC64   GOT + A - P      GOTOFF64   S + A - GOT      GOT64   G + A
// with P the place, S the symbol, G its entry's offset in the table.
// Every number of the file is checked before it is used.
#include "runtime/jit/HostObject.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <optional>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>
#include <utility>
#include <vector>

namespace spargejit::jit {

namespace {

using Outcome = Result<std::shared_ptr<compiler::HostKernel>>;

Status unsupported(const std::string &what) {
  return Status(ErrorCode::Unsupported, "a host object with " + what);
}

std::size_t alignUp(std::size_t value, std::size_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// Functions that code generation may call.
std::optional<std::uint64_t> addressOf(std::string_view name) {
  if (name == "memcpy")
    return reinterpret_cast<std::uint64_t>(&std::memcpy);
  if (name == "memmove")
    return reinterpret_cast<std::uint64_t>(&std::memmove);
  if (name == "memset")
    return reinterpret_cast<std::uint64_t>(&std::memset);
  return std::nullopt;
}

/// Memory that is written first and run later.
class CodeMemory {
public:
  explicit CodeMemory(std::size_t bytes) : bytes_(bytes) {
    void *base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base_ = base == MAP_FAILED ? nullptr : static_cast<char *>(base);
  }
  CodeMemory(CodeMemory &&other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}
  CodeMemory &operator=(CodeMemory &&) = delete;
  ~CodeMemory() {
    if (base_)
      ::munmap(base_, bytes_);
  }

  char *base() const { return base_; }
  /// From here on the first `codeBytes` can be run, the rest be read.
  bool seal(std::size_t codeBytes) {
    return ::mprotect(base_, bytes_, PROT_READ) == 0 &&
           ::mprotect(base_, codeBytes, PROT_READ | PROT_EXEC) == 0;
  }

private:
  char *base_ = nullptr;
  std::size_t bytes_ = 0;
};

class LinkedKernel final : public compiler::HostKernel {
public:
  LinkedKernel(CodeMemory memory, HostKernelFunction function)
      : memory_(std::move(memory)), function_(function) {}
  HostKernelFunction function() const override { return function_; }

private:
  CodeMemory memory_;
  HostKernelFunction function_;
};

class HostObject {
public:
  explicit HostObject(const std::string &bytes) : bytes_(bytes) {}

  Status parse();
  Outcome link(const std::string &entry);

private:
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  template <typename T>
  Status readArray(std::uint64_t offset, std::uint64_t count,
                   std::vector<T> &items) const;
  Status place();
  Status relocate(const Elf64_Shdr &section, const CodeMemory &memory);
  Result<std::uint64_t> addressOfSymbol(const Elf64_Sym &symbol,
                                        const CodeMemory &memory) const;
  std::string_view nameOf(const Elf64_Sym &symbol) const;
  bool isInside(const Elf64_Shdr &section) const {
    return section.sh_offset <= bytes_.size() &&
           section.sh_size <= bytes_.size() - section.sh_offset;
  }

  const std::string &bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::string_view names_;
  /// Where each section lies in memory, and where the table of addresses.
  std::vector<std::size_t> offsets_;
  std::size_t codeBytes_ = 0;
  std::size_t tableOffset_ = 0;
  std::size_t totalBytes_ = 0;
  std::size_t tableEntries_ = 0;
};

template <typename T>
Status HostObject::readArray(std::uint64_t offset, std::uint64_t count,
                             std::vector<T> &items) const {
  if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(T))
    return unsupported("a table beyond its end");
  items.resize(count);
  if (count > 0)
    std::memcpy(items.data(), bytes_.data() + offset, count * sizeof(T));
  return Status();
}

Status HostObject::parse() {
  std::vector<Elf64_Ehdr> header;
  if (Status status = readArray(0, 1, header); !status)
    return unsupported("no ELF header");
  const Elf64_Ehdr &head = header.front();
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 ||
      head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_type != ET_REL ||
      head.e_machine != EM_X86_64 || head.e_shentsize != sizeof(Elf64_Shdr))
    return unsupported("another format than x86-64 ELF");
  if (Status status = readArray(head.e_shoff, head.e_shnum, sections_); !status)
    return status;
  for (const Elf64_Shdr &section : sections_) {
    if (section.sh_type != SHT_NOBITS && !isInside(section))
      return unsupported("a section beyond its end");
    if (section.sh_type != SHT_SYMTAB)
      continue;
    if (section.sh_link >= sections_.size())
      return unsupported("symbols without names");
    if (Status status = readArray(
            section.sh_offset, section.sh_size / sizeof(Elf64_Sym), symbols_);
        !status)
      return status;
    const Elf64_Shdr &strings = sections_[section.sh_link];
    if (!isInside(strings))
      return unsupported("names beyond its end");
    names_ =
        std::string_view(bytes_).substr(strings.sh_offset, strings.sh_size);
  }
  return place();
}

/// Code first, then constants from a page of their own, then the table.
Status HostObject::place() {
  offsets_.assign(sections_.size(), kNowhere);
  std::size_t end = 0;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (bool code : {true, false}) {
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr &section = sections_[i];
      bool isCode = (section.sh_flags & SHF_EXECINSTR) != 0;
      if ((section.sh_flags & SHF_ALLOC) == 0 || isCode != code)
        continue;
      if ((section.sh_flags & (SHF_WRITE | SHF_TLS)) != 0 ||
          section.sh_type != SHT_PROGBITS)
        return unsupported("data that can be written");
      if (section.sh_addralign > page)
        return unsupported("sections aligned beyond a page");
      end = alignUp(end, std::max<std::size_t>(1, section.sh_addralign));
      offsets_[i] = end;
      end += section.sh_size;
    }
    if (code)
      end = codeBytes_ = alignUp(end, page);
  }
  tableOffset_ = alignUp(end, sizeof(std::uint64_t));
  // One entry for each symbol is as many as there can be.
  totalBytes_ =
      alignUp(tableOffset_ + symbols_.size() * sizeof(std::uint64_t), page);
  return codeBytes_ > 0 ? Status() : unsupported("no code");
}

std::string_view HostObject::nameOf(const Elf64_Sym &symbol) const {
  if (symbol.st_name >= names_.size())
    return {};
  std::string_view name = names_.substr(symbol.st_name);
  return name.substr(0, name.find('\0'));
}

Result<std::uint64_t>
HostObject::addressOfSymbol(const Elf64_Sym &symbol,
                            const CodeMemory &memory) const {
  if (symbol.st_shndx == SHN_UNDEF) {
    auto address = addressOf(nameOf(symbol));
    if (!address)
      return unsupported(fmt::format("a call of {}", nameOf(symbol)));
    return *address;
  }
  if (symbol.st_shndx >= offsets_.size() ||
      offsets_[symbol.st_shndx] == kNowhere ||
      symbol.st_value > sections_[symbol.st_shndx].sh_size)
    return unsupported("a symbol that lies nowhere");
  return reinterpret_cast<std::uint64_t>(memory.base()) +
         offsets_[symbol.st_shndx] + symbol.st_value;
}

Status HostObject::relocate(const Elf64_Shdr &section,
                            const CodeMemory &memory) {
  if (section.sh_info >= sections_.size())
    return unsupported("relocations of no section");
  const std::size_t target = offsets_[section.sh_info];
  if (target == kNowhere)
    return Status(); // of what is not loaded, such as notes
  std::vector<Elf64_Rela> relocations;
  if (Status status = readArray(
          section.sh_offset, section.sh_size / sizeof(Elf64_Rela), relocations);
      !status)
    return status;
  const auto table =
      reinterpret_cast<std::uint64_t>(memory.base()) + tableOffset_;
  std::unordered_map<std::uint64_t, std::uint64_t> entries;
  for (const Elf64_Rela &relocation : relocations) {
    const std::uint64_t index = ELF64_R_SYM(relocation.r_info);
    const std::uint64_t room = sections_[section.sh_info].sh_size;
    if (index >= symbols_.size() || room < sizeof(std::uint64_t) ||
        relocation.r_offset > room - sizeof(std::uint64_t))
      return unsupported("a relocation beyond its section");
    char *placed = memory.base() + target + relocation.r_offset;
    const auto addend = static_cast<std::uint64_t>(relocation.r_addend);
    std::uint64_t value = 0;
    const auto type = ELF64_R_TYPE(relocation.r_info);
    if (type == R_X86_64_GOTPC64) {
      value = table + addend - reinterpret_cast<std::uint64_t>(placed);
    } else if (type == R_X86_64_GOTOFF64 || type == R_X86_64_GOT64) {
      auto address = addressOfSymbol(symbols_[index], memory);
      if (!address.ok())
        return address.status();
      if (type == R_X86_64_GOTOFF64) {
        value = *address + addend - table;
      } else {
        auto [entry, isNew] = entries.emplace(*address, 0);
        if (isNew) {
          if (tableEntries_ == symbols_.size())
            return unsupported("more addresses than symbols");
          entry->second = sizeof(std::uint64_t) * tableEntries_++;
          std::memcpy(memory.base() + tableOffset_ + entry->second,
                      &entry->first, sizeof(std::uint64_t));
        }
        value = entry->second + addend;
      }
    } else {
      return unsupported(fmt::format("relocations of type {}", type));
    }
    std::memcpy(placed, &value, sizeof(value));
  }
  return Status();
}

Outcome HostObject::link(const std::string &entry) {
  CodeMemory memory(totalBytes_);
  if (!memory.base())
    return Status(
        ErrorCode::OutOfResources,
        fmt::format("{} bytes of memory for code cannot be had", totalBytes_));
  for (std::size_t i = 0; i < sections_.size(); ++i)
    if (offsets_[i] != kNowhere && sections_[i].sh_size > 0)
      std::memcpy(memory.base() + offsets_[i],
                  bytes_.data() + sections_[i].sh_offset, sections_[i].sh_size);
  for (const Elf64_Shdr &section : sections_)
    if (section.sh_type == SHT_RELA)
      if (Status status = relocate(section, memory); !status)
        return status;
  for (const Elf64_Sym &symbol : symbols_) {
    if (nameOf(symbol) != entry || symbol.st_shndx == SHN_UNDEF)
      continue;
    auto address = addressOfSymbol(symbol, memory);
    if (!address.ok())
      return address.status();
    if (!memory.seal(codeBytes_))
      return Status(ErrorCode::OutOfResources,
                    "memory cannot be made executable");
    auto function = reinterpret_cast<HostKernelFunction>(*address);
    return std::shared_ptr<compiler::HostKernel>(
        std::make_shared<LinkedKernel>(std::move(memory), function));
  }
  return Status(
      ErrorCode::CompileFailed,
      fmt::format("expected a function {} in the object, found none", entry));
}

} // namespace

Outcome loadHostObject(const KernelArtifact &artifact) {
#if defined(__x86_64__)
  HostObject object(artifact.code);
  if (Status status = object.parse(); !status)
    return status;
  return object.link(artifact.launch.entryName);
#else
  (void)artifact;
  return unsupported("code for another processor than x86-64");
#endif
}

} // namespace spargejit::jit
