// handoff explain: prints the catalogue's page of a diagnostic.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "grader/cli/commands.h"
#include "grader/cli/exercises.h"

namespace handoff::cli {

int run_explain(const std::string& id) {
  const std::filesystem::path folder = harness::project_root() / "docs" / "diagnostics";
  std::vector<std::string> ids;
  std::error_code failed;
  for (const std::filesystem::directory_entry& page : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = page.path().stem().string();
    if (page.path().extension() == ".md" && name != "README" && name != "index") ids.push_back(name);
  }
  std::sort(ids.begin(), ids.end());
  if (ids.empty()) return refuse("no diagnostics catalogue was found in " + folder.string());
  if (id.empty()) {
    for (const std::string& known : ids) std::puts(known.c_str());
    return kFullMarks;
  }
  if (!std::binary_search(ids.begin(), ids.end(), id)) {
    return refuse("no diagnostic '" + id + "'" + suggestion(id, ids, "; ./handoff explain lists them"));
  }
  std::ifstream in(folder / (id + ".md"));
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return refuse("cannot read " + (folder / (id + ".md")).string());
  std::fputs(text.str().c_str(), stdout);
  return kFullMarks;
}

}  // namespace handoff::cli
