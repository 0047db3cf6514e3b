// The commands of `handoff`, one file each. Every run_… returns the program's exit status.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace handoff::cli {

/// Exit statuses: a contract with scripts.
enum ExitStatus : int {
  kFullMarks = 0,     ///< or: the command did what it was asked
  kNotFullMarks = 1,  ///< graded; a file that does not compile included
  kCouldNot = 2,      ///< bad usage, unreadable input, no toolchain
  kHazards = 9,       ///< `run`: the checker found an error in the program, whatever its own status was
};

/// What `check` was asked, as typed: run_check judges the values.
struct CheckArguments {
  std::string id;                ///< the exercise; empty with `all`
  bool all = false;              ///< every exercise, a line each
  bool solution = false;         ///< the reference solution instead of the learner's file
  bool verbose = false;          ///< nothing is left out of the screen
  std::string submission;        ///< empty: the exercise's own kernel.cu
  std::string device = "auto";   ///< auto, emulator or cuda
  std::string schedule = "all";  ///< all, or the name of one
  std::string seed;              ///< empty: none
  std::string json;              ///< empty: none; "-": standard output
  std::string timeout = "60";    ///< seconds an exercise
  std::string repeats = "3";     ///< launches of each case on a GPU
};

/// What `run` was asked, as typed: run_program judges the values.
struct RunArguments {
  std::vector<std::string> program;  ///< and its arguments
  std::string check = "errors";      ///< errors, all (warnings and notes too) or off
  std::string schedule = "nominal";  ///< of every launch; all: one run for each
  std::string seed;                  ///< of the random schedule; empty: 0
  std::string suppress;              ///< a file of suppressions; empty: none
  std::string trace;                 ///< file for a trace; empty: none
  std::string json;                  ///< empty: none; "-": standard output
  bool verbose = false;              ///< every diagnostic of a launch in full
};

/// What `run-kernel` was asked, as typed: run_kernel judges the values.
struct RunKernelArguments {
  std::string file;                    ///< a .cu or .ptx file
  std::string kernel = "example";      ///< its entry
  std::string grid = "1";              ///< blocks
  std::string block = "32";            ///< threads
  std::string cluster = "1";           ///< blocks
  std::string smem = "0";              ///< dynamic shared memory, bytes a block
  std::vector<std::string> arguments;  ///< in:FLOATS, out:FLOATS or int:VALUE each, in the order of the parameters
  std::string schedule = "all";        ///< all, or the name of one
  std::string seed;                    ///< empty: none
  std::string json;                    ///< empty: none; "-": standard output
};

/// What `resources` was asked, as typed: run_resources judges the values.
struct ResourcesArguments {
  std::string file;             ///< a .cu file
  std::string kernel;           ///< its entry
  std::string target = "100a";  ///< as ptxas takes it after "sm_"
  bool json = false;            ///< on standard output, in place of a sentence
  bool table = false;           ///< of all solutions that need tensor memory, in Markdown, instead of one file
};

/// What `figure` was asked.
struct FigureArguments {
  std::vector<std::string> files;  ///< chapters/NN-name/figures/NAME.toml; none: all of them
  std::string out;                 ///< for one figure, instead of NAME.svg
  bool check = false;              ///< compare with what is kept instead of writing
  bool events = false;             ///< print what was recorded instead of drawing it
};

int run_list();
int run_check(const CheckArguments& arguments);
int run_hint(const std::string& id, bool all, bool reset);
int run_explain(const std::string& id);
int run_demo();
int run_doctor();
int run_docs();
/// Measures the emulator's speed, or, with `device` "cuda", kernels on the GPU at hand, for which `json` (empty: none)
/// takes a record. kNotFullMarks: a kernel is wrong, too slow, or not as the timing model has it.
int run_bench(const std::string& device, const std::string& json);
int run_test(bool mutants);
/// Runs a CUDA program on the emulator, with the checker. Returns the program's own status; kHazards where an error was
/// found; kCouldNot where nothing was checked and the program itself has status 0.
int run_program(const RunArguments& arguments);
/// Rewrites the PTX kept for machines without nvcc: solutions/*/kernel.ptx and exercises/*/demo-wrong.ptx.
int run_keep_ptx();
/// Launches one kernel on the emulator with the checker. kFullMarks: nothing was found on any schedule.
int run_kernel(const RunKernelArguments& arguments);
/// Compiles one kernel for a target and prints its resources, or the table of Part III's solutions.
int run_resources(const ResourcesArguments& arguments);
/// Draws the chapters' figures from recorded runs, or tells whether those that are kept are still what is recorded. 77:
/// there is no nvcc, and it would take one.
int run_figure(const FigureArguments& arguments);

/// Prints "handoff: <message>" on standard error; returns kCouldNot.
int refuse(const std::string& message);

}  // namespace handoff::cli
