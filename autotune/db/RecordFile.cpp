// SPDX-License-Identifier: Apache-2.0
//
// Record files.
#include "autotune/db/RecordFile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <system_error>
#include <unistd.h>

namespace spargejit::autotune {

namespace {

constexpr std::string_view kHeader = R"({"spargejit_tuning_records":1})";

Status ioError(const std::string &path, int error) {
  return Status(ErrorCode::IoError,
                path + ": " + std::generic_category().message(error));
}

int writeAll(int file, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return count < 0 ? errno : EIO;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

/// All of a file up to a size that no file of records has; an error number.
int readAll(int file, std::string &text) {
  constexpr std::size_t kStep = 1 << 16, kMost = std::size_t{256} << 20;
  for (;;) {
    const std::size_t begin = text.size();
    if (begin > kMost)
      return EFBIG;
    text.resize(begin + kStep);
    const ssize_t count = ::read(file, text.data() + begin, kStep);
    const int error = errno;
    text.resize(begin + static_cast<std::size_t>(count > 0 ? count : 0));
    if (count == 0)
      return 0;
    if (count < 0 && error != EINTR)
      return error;
  }
}

/// Whether the last byte of the file is something else than a line's end.
bool endsUnfinished(int file, off_t size) {
  char last = '\n';
  return size > 0 && ::pread(file, &last, 1, size - 1) == 1 && last != '\n';
}

/// A rank among the tries of one problem: lower is better.
int rankOf(const TuningRecord &record) {
  return record.isWinner ? 0 : record.isDefault ? 1 : 2;
}

bool isBetter(const TuningRecord &a, const TuningRecord &b) {
  if (rankOf(a) != rankOf(b))
    return rankOf(a) < rankOf(b);
  // Of two winners the later one won against a newer default.
  if (a.isWinner && a.date != b.date)
    return a.date > b.date;
  return a.medianUs < b.medianUs;
}

} // namespace

Result<RecordFile> parseRecords(const std::string &text,
                                const std::string &name) {
  RecordFile file;
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (number == 1) {
      if (line != kHeader)
        return Status(ErrorCode::InvalidArgument,
                      fmt::format("{}:1: expected {}, the header of a file of "
                                  "tuning records",
                                  name, kHeader));
      continue;
    }
    // Merged by people, a file may have several headers.
    if (line.empty() || line == kHeader)
      continue;
    auto record = parseRecord(line);
    if (record.ok())
      file.records.push_back(*std::move(record));
    else
      file.skipped.push_back(
          fmt::format("{}:{}: {}", name, number, record.status().message()));
  }
  return file;
}

Result<RecordFile> readRecords(const std::string &path) {
  // Read to its end, since it may be a pipe.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return ioError(path, errno);
  std::string text;
  const int error = readAll(file, text);
  ::close(file);
  if (error != 0)
    return ioError(path, error);
  return parseRecords(text, path);
}

Status appendRecords(const std::string &path,
                     const std::vector<TuningRecord> &records) {
  int file =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0)
    return ioError(path, errno);
  const off_t size = ::lseek(file, 0, SEEK_END);
  std::string text;
  if (size == 0)
    text = std::string(kHeader) + "\n";
  else if (endsUnfinished(file, size))
    text = "\n";
  int error = 0;
  for (const TuningRecord &record : records) {
    text += recordLine(record) + "\n";
    error = error != 0 ? error : writeAll(file, text);
    text.clear();
  }
  if (::close(file) != 0 && error == 0)
    error = errno;
  return error == 0 ? Status() : ioError(path, error);
}

Status writeRecords(const std::string &path,
                    const std::vector<TuningRecord> &records) {
  const std::string next =
      fmt::format("{}.{}", path, static_cast<long>(::getpid()));
  std::ofstream stream(next, std::ios::binary | std::ios::trunc);
  stream << kHeader << "\n";
  for (const TuningRecord &record : records)
    stream << recordLine(record) << "\n";
  stream.close();
  if (stream && std::rename(next.c_str(), path.c_str()) == 0)
    return Status();
  Status status = ioError(path, errno != 0 ? errno : EIO);
  (void)std::remove(next.c_str());
  return status;
}

std::vector<TuningRecord> mergeRecords(std::vector<TuningRecord> records) {
  std::vector<TuningRecord> merged;
  for (TuningRecord &record : records) {
    auto it = std::find_if(
        merged.begin(), merged.end(),
        [&](const TuningRecord &other) { return isSameTrial(other, record); });
    if (it == merged.end())
      merged.push_back(std::move(record));
    else if (record.date >= it->date)
      *it = std::move(record);
  }
  return merged;
}

std::vector<TuningRecord>
bestRecords(const std::vector<TuningRecord> &records) {
  std::vector<TuningRecord> best;
  for (const TuningRecord &record : records) {
    if (!record.isMeasured())
      continue;
    auto it =
        std::find_if(best.begin(), best.end(), [&](const TuningRecord &other) {
          return other.kernel == record.kernel &&
                 other.environment == record.environment &&
                 isSameProblem(other.problem, record.problem);
        });
    if (it == best.end())
      best.push_back(record);
    else if (isBetter(record, *it))
      *it = record;
  }
  return best;
}

} // namespace spargejit::autotune
