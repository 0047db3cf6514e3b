// Tested by json_test.cc, and through the commands.
#include "grader/report/diagnostic_json.h"

#include <utility>

namespace handoff::report {

const char* to_text(Severity severity) {
  switch (severity) {
    case Severity::Error:
      return "error";
    case Severity::Warning:
      return "warning";
    case Severity::Note:
      return "note";
  }
  return "error";
}

nlohmann::ordered_json diagnostic_json(const Diagnostic& diagnostic) {
  nlohmann::ordered_json related = nlohmann::ordered_json::array();
  for (const RelatedPlace& r : diagnostic.related) {
    related.push_back({{"file", r.place.file}, {"line", r.place.line}, {"role", r.role}});
  }
  return {{"id", diagnostic.id},           {"severity", to_text(diagnostic.severity)},
          {"message", diagnostic.message}, {"hint", diagnostic.hint},
          {"file", diagnostic.place.file}, {"line", diagnostic.place.line},
          {"related", std::move(related)}};
}

}  // namespace handoff::report
