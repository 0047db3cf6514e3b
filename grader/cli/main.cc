// handoff: the command line. Parses with CLI11 and calls one run_… for each command; every failure is one line and a
// status.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "grader/cli/certify.h"
#include "grader/cli/commands.h"
#include "grader/cli/conformance.h"
#include "grader/cli/exercises.h"
#include "grader/cli/timing.h"
#include "grader/device/cuda_worker.h"

namespace handoff::cli {

namespace {

/// What is wrong with the first option behind the command that it does not have: "no option '--chek' of check; did you
/// mean --check?"; empty if it has them all. The parser itself would name the value that the option leaves behind.
std::string unknown_option(const CLI::App& command, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  for (int i = 2; i < argc && std::string_view(argv[i]) != "--"; i++) {
    const std::string given = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
    if (given.size() < 2 || given[0] != '-' || std::find(names.begin(), names.end(), given) != names.end()) continue;
    const std::string otherwise = "; ./handoff " + command.get_name() + " --help shows them";
    return fmt::format("no option '{}' of {}{}", given, command.get_name(),
                       given.size() == 2 ? otherwise : suggestion(given, names, otherwise));
  }
  return {};
}

// CLI11's messages may span lines; a user gets the first, and where to read on.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

int run(int argc, char** argv) {
  CLI::App app(
      "Handoff: asynchronous programming on NVIDIA Blackwell, one exercise at a time.\n"
      "Start with:  ./handoff demo    then  ./handoff check 01a");
  app.name("./handoff");
  app.require_subcommand(1);
  app.set_version_flag("--version", "handoff " HANDOFF_VERSION);
  int status = kFullMarks;

  app.add_subcommand("list", "Show every exercise: state, points, title")->callback([&] { status = run_list(); });

  CheckArguments check;
  CLI::App* c = app.add_subcommand("check", "Grade an exercise: ./handoff check 01a");
  c->add_option("ID", check.id, "The exercise: 01a, or its name");
  c->add_flag("--all", check.all, "Grade every exercise, one line each");
  c->add_flag("--solution", check.solution, "Grade the solution instead of your file");
  c->add_option("--submission", check.submission, "Grade this file instead of exercises/…/kernel.cu")
      ->type_name("FILE");
  c->add_option("--device", check.device, "auto (emulator, and the GPU where one can run the kernel), emulator or cuda")
      ->type_name("NAME")
      ->capture_default_str();
  c->add_option("--schedule", check.schedule,
                "Order of asynchronous work: all, nominal, lazy, eager, reverse or random")
      ->type_name("NAME")
      ->capture_default_str();
  c->add_option("--seed", check.seed, "Seed of the random schedule: the same seed gives the same run")->type_name("S");
  c->add_option("--json", check.json,
                "Write the verdict as JSON (- is standard output); docs/verdict.schema.json describes it")
      ->type_name("FILE");
  c->add_option("--timeout", check.timeout, "Seconds that grading one exercise may take")
      ->type_name("S")
      ->capture_default_str();
  c->add_option("--repeats", check.repeats, "Launches of each of the harness's cases on a GPU")
      ->type_name("N")
      ->capture_default_str();
  c->add_flag("-v,--verbose", check.verbose, "Show every diagnostic and all that the kernel printed");
  c->footer("Exit status: 0 full marks, 1 graded but not full marks, 2 could not grade.");
  c->callback([&] { status = run_check(check); });

  std::string hint_id;
  bool hint_all = false, hint_reset = false;
  CLI::App* h = app.add_subcommand("hint", "Show one more hint for an exercise at each call");
  h->add_option("ID", hint_id, "The exercise: 01a, or its name");
  h->add_flag("--all", hint_all, "Show all its hints");
  h->add_flag("--reset", hint_reset, "Begin again with the first");
  h->callback([&] { status = run_hint(hint_id, hint_all, hint_reset); });

  std::string diagnostic;
  CLI::App* e = app.add_subcommand("explain", "Explain a diagnostic: ./handoff explain missing-proxy-fence");
  e->add_option("DIAGNOSTIC", diagnostic, "Its id, as the verdict shows it in brackets; without one, all are listed");
  e->callback([&] { status = run_explain(diagnostic); });

  app.add_subcommand("demo", "Grade a wrong and a right kernel, to see what a verdict looks like (works without nvcc)")
      ->callback([&] { status = run_demo(); });
  app.add_subcommand("doctor", "Show what is installed, and the cure for what is missing")->callback([&] {
    status = run_doctor();
  });
  app.add_subcommand("docs", "Build the documentation site and print where it is")->callback([&] {
    status = run_docs();
  });

  std::string bench_device, bench_json;
  CLI::App* b = app.add_subcommand("bench", "Measure the emulator's speed on this machine, or a GPU");
  b->add_option("--device", bench_device, "emulator or cuda")->type_name("NAME");
  b->add_option("--json", bench_json, "With --device cuda: file for what was measured")->type_name("FILE");
  b->callback([&] { status = run_bench(bench_device, bench_json); });

  bool mutants = false;
  CLI::App* t = app.add_subcommand("test", "Build and run the project's own tests");
  t->add_flag("--mutants", mutants, "Only the wrong submissions: is each found, and called by its name?");
  t->callback([&] { status = run_test(mutants); });

  RunArguments program;
  CLI::App* p = app.add_subcommand("run", "Run your own CUDA program on the emulator: ./handoff run -- ./program");
  p->add_option("--check", program.check, "What is told: errors, all (warnings and notes too) or off")
      ->type_name("WHAT")
      ->capture_default_str();
  p->add_option("--schedule", program.schedule,
                "Order of asynchronous work: nominal, lazy, eager, reverse, random, or all (one run for each)")
      ->type_name("NAME")
      ->capture_default_str();
  p->add_option("--seed", program.seed, "Seed of the random schedule: the same seed gives the same run")
      ->type_name("S");
  p->add_option("--suppress", program.suppress, "Findings that are known: an id a line, or ID @ FILE:LINE in KERNEL")
      ->type_name("FILE");
  p->add_option("--trace", program.trace, "Write what happened, in modeled time, for Perfetto or chrome://tracing")
      ->type_name("FILE");
  p->add_option("--json", program.json, "Write launches and diagnostics as JSON (- is standard output)")
      ->type_name("FILE");
  p->add_flag("-v,--verbose", program.verbose, "Show every diagnostic of a launch in full");
  p->add_option("PROGRAM", program.program, "The program and its arguments, after --")->required();
  p->footer(
      "Build the program with nvcc -cudart shared -lineinfo -gencode arch=compute_100a,code=compute_100a "
      "(docs/run.md).\n"
      "Exit status: the program's own, 9 if an error was found, 2 if nothing was checked.");
  p->callback([&] { status = run_program(program); });

  app.add_subcommand("keep-ptx", "Rewrite the PTX kept for machines without nvcc")->group("")->callback([&] {
    status = run_keep_ptx();
  });

  CertifyArguments whole;
  CLI::App* w = app.add_subcommand("certify", "Run everything on the GPU at hand, and write one report to send back");
  w->add_option("--out", whole.out, "The report, as JSON; what is unfinished stands in FILE.part")
      ->type_name("FILE")
      ->capture_default_str();
  w->add_option("--repeats", whole.repeats, "Launches of each input, at least 3")
      ->type_name("N")
      ->capture_default_str();
  w->add_flag("--resume", whole.resume, "Go on with a report that was cut short");
  w->add_option("--time-limit", whole.time_limit, "Begin nothing new after so many seconds; --resume goes on later")
      ->type_name("S");
  w->add_option("--only", whole.only, "Items whose name matches: ^solution/, /07a, ^gemm/")->type_name("REGEX");
  w->footer("Exit status: 0 complete and nothing failed, 1 something failed or is left to do, 2 no GPU or bad usage.");
  w->callback([&] { status = run_certify(whole); });

  ConformanceArguments suite;
  CLI::App* f = app.add_subcommand("conformance", "Run the conformance suite, on the emulator or a GPU")->group("");
  f->add_option("--device", suite.device, "emulator or cuda")->type_name("NAME")->capture_default_str();
  f->add_option("--only", suite.only, "Cases whose family/name matches")->type_name("REGEX");
  f->add_option("--record", suite.record, "Write the GPU's answers; a file that is there is added to")
      ->type_name("FILE");
  f->add_option("--compare", suite.compare, "Compare with a record, or with a folder's conformance-*.json")
      ->type_name("FILE")
      ->take_all();
  f->add_option("--json", suite.json, "Write what came of each case as JSON")->type_name("FILE");
  f->footer("Exit status: 0 all well, 1 not, 2 could not run, 77 no nvcc, or nothing recorded to compare with.");
  f->callback([&] { status = run_conformance(suite); });

  TimingArguments probes;
  CLI::App* m = app.add_subcommand("timing", "Measure what the timing model is made of")->group("");
  m->add_option("--device", probes.device, "emulator or cuda")->type_name("NAME")->capture_default_str();
  m->add_option("--model", probes.model, "What the emulator is: blackwell or hopper")
      ->type_name("NAME")
      ->capture_default_str();
  m->add_option("--only", probes.only, "Probes whose name matches")->type_name("REGEX");
  m->add_option("--record", probes.record, "Write the GPU's figures")->type_name("FILE");
  m->add_option("--compare", probes.compare, "Compare with a record, or with the last of a folder's timing-*.json")
      ->type_name("FILE");
  m->footer("Exit status: 0 all well, 1 not, 2 could not run, 77 no nvcc, or nothing recorded to compare with.");
  m->callback([&] { status = run_timing(probes); });

  ResourcesArguments taken;
  CLI::App* s = app.add_subcommand("resources", "Show what ptxas says of a kernel, for any GPU")->group("");
  s->add_option("FILE", taken.file, "A .cu file");
  s->add_option("--kernel", taken.kernel, "The entry")->type_name("NAME");
  s->add_option("--target", taken.target, "90a, 100a, 103a")->type_name("SM")->capture_default_str();
  s->add_flag("--json", taken.json, "As JSON");
  s->add_flag("--table", taken.table, "The solutions of Part III for sm_100a and sm_103a, as docs/gpu.md has them");
  s->callback([&] { status = run_resources(taken); });

  FigureArguments figure;
  CLI::App* g = app.add_subcommand("figure", "Draw the chapters' figures from recorded runs")->group("");
  g->add_option("FILE", figure.files, "chapters/NN-name/figures/NAME.toml; without one, all figures");
  g->add_option("--out", figure.out, "Where to write one figure, instead of NAME.svg beside it")->type_name("FILE");
  g->add_flag("--check", figure.check, "Compare with the figures that are kept, and write nothing");
  g->add_flag("--events", figure.events, "Print the events that were recorded");
  g->footer("Exit status: 0 all well, 1 not, 2 could not run, 77 no nvcc.");
  g->callback([&] { status = run_figure(figure); });

  RunKernelArguments bare;
  CLI::App* r = app.add_subcommand("run-kernel", "Run one kernel on the emulator with the checker")->group("");
  r->add_option("FILE", bare.file, "A .cu or .ptx file")->required();
  r->add_option("--kernel", bare.kernel, "The entry to launch")->type_name("NAME")->capture_default_str();
  r->add_option("--grid", bare.grid, "Blocks")->type_name("N")->capture_default_str();
  r->add_option("--block", bare.block, "Threads a block")->type_name("N")->capture_default_str();
  r->add_option("--cluster", bare.cluster, "Blocks a cluster")->type_name("N")->capture_default_str();
  r->add_option("--smem", bare.smem, "Dynamic shared memory of a block")->type_name("BYTES")->capture_default_str();
  r->add_option("--arg", bare.arguments,
                "A parameter: in:FLOATS or out:FLOATS, a buffer; map:W,H,BW,BH, a tensor map over the buffer before "
                "it; int:VALUE")
      ->type_name("KIND:VALUE")
      ->take_all();
  r->add_option("--schedule", bare.schedule, "all, nominal, lazy, eager, reverse or random")
      ->type_name("NAME")
      ->capture_default_str();
  r->add_option("--seed", bare.seed, "Seed of the random schedule")->type_name("S");
  r->add_option("--json", bare.json, "Write the runs as JSON (- is standard output)")->type_name("FILE");
  r->footer("Exit status: 0 nothing was found on any schedule, 1 something was, 2 could not run.");
  r->callback([&] { status = run_kernel(bare); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    app.exit(version);
  } catch (const CLI::ParseError& error) {
    if (argc < 2) {
      std::fputs(app.help().c_str(), stdout);
      return kCouldNot;
    }
    const std::string command = argv[1];
    std::vector<std::string> names;
    for (const CLI::App* known : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(known->get_name());
    if (command.rfind('-', 0) != 0 && std::find(names.begin(), names.end(), command) == names.end()) {
      return refuse("no command '" + command + "'" + suggestion(command, names, "; ./handoff --help shows them"));
    }
    if (command.rfind('-', 0) != 0) {
      const std::string unknown = unknown_option(*app.get_subcommand(command), argc, argv);
      if (!unknown.empty()) return refuse(unknown);
    }
    return refuse(first_line(error.what()) + "; ./handoff --help shows the commands");
  }
  // A full disk shows only when the text leaves the buffer.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return refuse("cannot write to standard output");
  return status;
}

}  // namespace
}  // namespace handoff::cli

int main(int argc, char** argv) {
  // A worker that drives the GPU is this program too, started with hidden arguments.
  if (const int status = handoff::device::run_cuda_worker_if_asked(argc, argv); status >= 0) return status;
  try {
    return handoff::cli::run(argc, argv);
  } catch (const std::exception& error) {
    return handoff::cli::refuse(error.what());
  }
}
