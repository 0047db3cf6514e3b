// Every other call of the API: it fails with cudaErrorNotSupported, and its name is told once. A program that links
// such a call thus starts, and fails only if it gets there. missing_calls.inc lists them; the test run.exports compares
// the list with the toolkit's libraries.
#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <unordered_set>

#include "grader/runtime/runtime.h"

namespace handoff::runtime {
namespace {

Error missing(const char* name) {
  return call(name, [](Runtime&) -> Outcome { return {kNotSupported, "the emulator does not have this call"}; });
}

bool is_missing(const std::string& name) {
  static const std::unordered_set<std::string> kNames = {
#define X(name) #name,
#include "grader/runtime/missing_calls.inc"
#undef X
  };
  return kNames.count(name) != 0;
}

}  // namespace

void* find_entry_point(const char* name) {
  // This library and none before it in the order of search: the program may have functions of the same names.
  Dl_info own;
  if (dladdr(reinterpret_cast<void*>(&find_entry_point), &own) == 0) return nullptr;
  void* const library = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* found = nullptr;
  // cuMemAlloc is exported as cuMemAlloc_v2, and so are others whose arguments once changed.
  for (const char* suffix : {"_v4", "_v3", "_v2", ""}) {
    const std::string exported = std::string(name) + suffix;
    if (found == nullptr && !is_missing(exported)) found = dlsym(library, exported.c_str());
  }
  dlclose(library);
  return found;
}

}  // namespace handoff::runtime

#define X(name) \
  HANDOFF_API int name() { return handoff::runtime::missing(#name); }
#include "grader/runtime/missing_calls.inc"
#undef X
