// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of `spargejit`, one file each, and what they share: how they
// end and how they print.
#pragma once

#include "spargejit/status.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace spargejit::tool {

/// What a subcommand does once its options are parsed: the exit code (0 done,
/// 1 failed with everything said), or a failure for Main.cpp to print. Wrong
/// usage is thrown as CLI::ParseError.
using CommandBody = std::function<Result<int>()>;

/// Each adds a subcommand with its options and returns its body.
CommandBody addRunCommand(CLI::App &app);
CommandBody addCheckCommand(CLI::App &app);
CommandBody addDumpCommand(CLI::App &app);
CommandBody addCompileCommand(CLI::App &app);
CommandBody addInfoCommand(CLI::App &app);
CommandBody addCacheCommand(CLI::App &app);
CommandBody addWarmupCommand(CLI::App &app);
CommandBody addTuneCommand(CLI::App &app);
CommandBody addRecordsCommand(CLI::App &app);

/// Prints to standard output, indented, keys in the order set. Numbers that are
/// not finite become null; bytes that are not UTF-8 are replaced.
void printJson(const nlohmann::ordered_json &json);

/// Usage error on `option` unless `path` ends in one of `endings` and its
/// folder exists: better now than after a long run.
void checkOutputPath(const std::string &option, const std::string &path,
                     const std::vector<std::string> &endings);

} // namespace spargejit::tool
