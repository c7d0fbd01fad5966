// SPDX-License-Identifier: Apache-2.0
//
// HelpFormatter.h.
#include "runtime/tools/spargejit/options/HelpFormatter.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

namespace spargejit::tool {

namespace {

constexpr std::size_t kLeftColumn = 26;
constexpr std::size_t kWidth = 80;

/// "  left      right", the right part wrapped and indented.
std::string twoColumns(const std::string &left, const std::string &right) {
  std::string result = "  " + left;
  std::size_t column = result.size();
  if (column + 2 > kLeftColumn) {
    result += "\n";
    column = 0;
  }
  result.append(kLeftColumn - column, ' ');
  column = kLeftColumn;
  std::istringstream words(right);
  bool first = true;
  for (std::string word; words >> word; first = false) {
    if (!first && column + 1 + word.size() > kWidth) {
      result += "\n" + std::string(kLeftColumn, ' ');
      column = kLeftColumn;
    } else if (!first) {
      result += " ";
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result + "\n";
}

} // namespace

std::string
HelpFormatter::make_group(std::string group, bool isPositional,
                          std::vector<const CLI::Option *> options) const {
  std::string result = "\n" + group + ":\n";
  for (const CLI::Option *option : options)
    result += make_option(option, isPositional);
  return result;
}

std::string HelpFormatter::make_option(const CLI::Option *option,
                                       bool isPositional) const {
  std::string left = option->get_name(isPositional, !isPositional);
  std::string description = option->get_description();
  if (option->get_type_size() != 0 && !isPositional) {
    left += " " + option->get_type_name();
    if (!option->get_default_str().empty())
      description += fmt::format(" [default: {}]", option->get_default_str());
  }
  if (option->get_required())
    description += " (required)";
  return twoColumns(left, description);
}

std::string HelpFormatter::make_subcommand(const CLI::App *command) const {
  return twoColumns(command->get_name(), command->get_description());
}

std::string HelpFormatter::make_help(const CLI::App *app, std::string name,
                                     CLI::AppFormatMode mode) const {
  // The base class separates some parts by two empty lines.
  std::string text = Formatter::make_help(app, std::move(name), mode);
  for (std::size_t at = text.find("\n\n\n"); at != std::string::npos;
       at = text.find("\n\n\n", at))
    text.erase(at, 1);
  return text;
}

} // namespace spargejit::tool
