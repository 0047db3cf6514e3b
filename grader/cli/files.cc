// Tested by files_test.cc.
#include "grader/cli/files.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace handoff::cli {

namespace fs = std::filesystem;

std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string records_in(const fs::path& folder, std::string_view kind, std::vector<fs::path>* records) {
  std::vector<fs::path> found;
  const std::string start = std::string(kind) + "-";
  std::error_code failed;
  for (const fs::directory_entry& e : fs::directory_iterator(folder, failed)) {
    if (e.path().filename().string().starts_with(start) && e.path().extension() == ".json") found.push_back(e.path());
  }
  if (failed) return folder.string() + ": " + failed.message();
  std::sort(found.begin(), found.end());
  records->insert(records->end(), found.begin(), found.end());
  return "";
}

}  // namespace handoff::cli
