// SPDX-License-Identifier: Apache-2.0
//
// The look of `--help`: name and value on the left, description with the
// default on the right, wrapped at 80 columns.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace spargejit::tool {

class HelpFormatter : public CLI::Formatter {
public:
  std::string
  make_group(std::string group, bool isPositional,
             std::vector<const CLI::Option *> options) const override;
  std::string make_option(const CLI::Option *option,
                          bool isPositional) const override;
  std::string make_subcommand(const CLI::App *command) const override;
  std::string make_help(const CLI::App *app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

} // namespace spargejit::tool
