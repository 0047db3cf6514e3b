// What a figure of a chapter shows: chapters/NN-name/figures/NAME.toml, read and checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace handoff::report {

/// One kernel parameter of the launch that is recorded.
struct FigureArgument {
  /// In: a buffer with contents. Out: a poisoned buffer. Int: a 32-bit value. Map: a tensor map over a buffer.
  enum class Kind : uint8_t { In, Out, Int, Map };
  Kind kind = Kind::Int;          ///< what is passed
  std::string name;               ///< of a buffer, for maps and messages
  std::string type;               ///< elements of a buffer or map: "f32", "f16" or "bf16"
  int64_t value = 0;              ///< elements of a buffer; the int
  bool passed = true;             ///< false: a buffer that only maps reach
  std::vector<uint64_t> dim;      ///< of a map, elements, innermost first
  std::vector<uint64_t> strides;  ///< of a map, bytes, one fewer than dim; empty: dense
  std::vector<uint32_t> box;      ///< of a map, elements
  std::string swizzle = "none";   ///< of a map: "none" or "128B"
};

/// One figure, of the first block of a launch:
///   title = "Two copies on one barrier"                # heading of the figure, one line
///   kind = "timeline"                                  # fields | parity | timeline
///   source = "solutions/04a-two-copies-one-barrier/kernel.cu"    # kept PTX beside it is preferred to nvcc
///   kernel = "two_copies"                              # the entry
///   barriers = ["full"]                                # which mbarriers, in this order; fields: exactly one
///   warps = [0, 1]                                     # parity: whose waits; timeline: rows, default all that act
///   notes = ["…"]                                      # lines under the figure
///   [launch]
///   grid = 1
///   block = 64                                         # threads
///   smem = 0                                           # dynamic shared memory, bytes
///   arguments = [{ in = "f32", count = 1024, name = "a" }, { out = "f32", count = 1024 }, { int = 1024 },
///                { map = "bf16", over = "a", dim = [64, 16], box = [64, 16], swizzle = "128B" }]
///   [names]                                            # what the recording calls an object = what the figure calls it
///   "slots+1024" = "full[0]"
///   "warp 0" = "producer"
///   [show]
///   from = 0                                           # cycles; timeline: what is drawn of the run
///   to = 0                                             # 0: to its end
///   waits = true                                       # fields: answers of waits, too
///   loads = "tile"                                     # timeline: the copies of one phase are one bar, "tile 0", …
///   stores = "out"                                     # timeline: bulk stores are called "out 0", …
///   mmas = "k"                                         # timeline: the MMAs of one commit are one bar, "k 0", …
///   column = "round"                                   # parity: what the columns count, from 0
///   variable = "phase_tma"                             # parity: what the kernel calls the parity that it passes
struct FigureSpec {
  /// As in the file.
  ///@{
  std::string title, kind, source, kernel;
  std::vector<std::string> barriers, notes;
  std::vector<int32_t> warps;
  uint32_t grid = 1, block = 1, smem = 0;
  std::vector<FigureArgument> arguments;
  std::map<std::string, std::string> names;
  uint64_t from = 0, to = 0;
  bool waits = true;
  std::string loads, stores, mmas, column = "wait", variable = "parity";
  ///@}
  /// `object` as the figure calls it.
  std::string name_of(const std::string& object) const;
};

/// Reads the text of a figure's file. Errors ("figures/tx.toml:3: kind must be …") go to `errors`; then the figure is
/// not to be used.
FigureSpec read_figure_spec(const std::string& text, const std::string& shown_path, std::vector<std::string>* errors);

}  // namespace handoff::report
