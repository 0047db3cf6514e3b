// The build that this program came from, and running its parts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace handoff::cli {

/// The folder that holds the running program; empty if the system does not tell.
std::filesystem::path build_folder();

/// Brings a CMake target of that build up to date, with progress on the terminal. Empty, or one line that says what
/// failed.
std::string build_target(const std::string& target);

/// Runs a program with this program's standard streams, without a time limit; returns its exit status (128 + signal if
/// one ended it).
int run_in_foreground(const std::vector<std::string>& argv);

}  // namespace handoff::cli
