// Compiles the cases of the suite, several in one call of nvcc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grader/conformance/case.h"
#include "grader/device/device.h"
#include "grader/harness/toolchain.h"

namespace handoff::conformance {

/// The code of one case.
struct Code {
  std::shared_ptr<const harness::CompileResult> compiled;  ///< of the module, which may hold other cases' kernels too
  std::string kernel = "conformance";                      ///< the case's entry in it
};

/// The toolkit's name of the architecture that `device` runs: "100a" for the emulator, "90a" for an H200.
std::string target_of(const device::Device& device);

/// One translation unit with all these texts of .cu files, each in a namespace of its own, its kernel `conformance`
/// renamed to conformance_N, N being the place in the list. Messages and line numbers keep naming the case's own file.
std::string combined_source(const std::vector<std::pair<std::string, std::string>>& names_and_texts);

/// Compiles the kernels of all cases for `target`, with a cubin where `want_cubin`; the same order as `cases`. Cases of
/// a family go to nvcc up to 16 at a time, in as many processes as there are cores. Where such a batch does not compile
/// its cases are compiled one by one, so that an error is that of its own case. A case that encodes, or whose head is
/// wrong, has no code: `compiled` is null.
std::vector<Code> compile_cases(const harness::Toolchain& toolchain, const std::vector<Case>& cases,
                                const std::string& target, bool want_cubin);

}  // namespace handoff::conformance
