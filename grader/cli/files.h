// Files that commands read: whole texts, and the records of earlier runs.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace handoff::cli {

/// All bytes of `file`; empty where it cannot be read.
std::string read_file(const std::filesystem::path& file);

/// Appends the records of `folder`, which are its files KIND-*.json, in the order of their names: the last one is the
/// newest. Returns what is wrong with the folder, one line, or empty.
std::string records_in(const std::filesystem::path& folder, std::string_view kind,
                       std::vector<std::filesystem::path>* records);

}  // namespace handoff::cli
