// SPDX-License-Identifier: Apache-2.0
#include "command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>

#include "accrue/run/base/number_text.h"
#include "accrue/run/base/version.h"
#include "accrue/run/record/branch.h"
#include "manual_pages.h"
#include "print.h"
#include "verb_lesson.h"
#include "verbs.h"

namespace accrue::cli {
namespace {

/// Verbs of a program; the chosen one stores its exit status.
class Verbs {
 public:
  Verbs(CLI::App& app, int& status) : app_(app), status_(status) {}

  /// Adds a verb whose options live as long as the program's.
  template <typename Options>
  std::pair<CLI::App*, Options*> add(const char* name, const char* help, int (*act)(const Options&)) {
    auto options = std::make_shared<Options>();
    CLI::App* verb = app_.add_subcommand(name, help);
    verb->callback([options, act, &status = status_] { status = act(*options); });
    return {verb, options.get()};
  }

 private:
  CLI::App& app_;
  int& status_;
};

/// An integer within bounds, which a refusal names.
CLI::Validator whole(std::int64_t least, std::int64_t most) {
  const std::string bounds = std::to_string(least) + " to " + std::to_string(most);
  return CLI::Validator(
      [=](const std::string& text) {
        std::int64_t value = 0;
        const char* const end = text.data() + text.size();
        const auto [rest, failed] = std::from_chars(text.data(), end, value);
        const bool fits = failed == std::errc{} && rest == end && value >= least && value <= most;
        return fits ? std::string() : "takes a whole number from " + bounds + ", not \"" + text + "\"";
      },
      bounds);
}

CLI::Option* add_plugins(CLI::App& verb, std::vector<std::string>& plugins) {
  return verb
      .add_option("--plugin", plugins,
                  "A library of yours, with train steps, losses or models that the spec names; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

void add_spec_input(CLI::App& verb, SpecInput& input) {
  verb.add_option("SPEC", input.file, "The run spec (*.accrue)")->required();
  verb.add_option("--set", input.sets, "Change one key: --set accumulation.steps=16")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_plugins(verb, input.plugins);
}

void add_dir(CLI::App& verb, std::string& dir, const char* help = "The run folder") {
  verb.add_option("DIR", dir, help)->required();
}

void add_run_flags(CLI::App& verb, RunOptions& options) {
  verb.add_flag("--detach", options.detach, "Train in a separate process; return once the ranks have joined");
  verb.add_flag("--quiet", options.quiet, "Print only warnings and errors");
  verb.add_option("--supervise-fd", options.supervise_fd)->group("");
}

void add_planning(Verbs& verbs) {
  const auto [spec, print] =
      verbs.add("spec", "Print every key with its default, the JSON Schema of a spec, or a spec made from another file",
                print_spec);
  auto* what = spec->add_option_group("what");
  what->add_flag("--defaults", print->defaults, "Every key with its default, unit, range and help");
  what->add_flag("--schema", print->schema, "A JSON Schema (draft 2020-12)");
  what->add_flag("--megatron", print->megatron,
                 "The fields of Accelerate's Megatron-LM plug-in and the arguments it takes");
  what->add_option("--from-accelerate", print->from_accelerate,
                   "A spec from a configuration file of Accelerate; what it could not take goes to standard error")
      ->type_name("FILE");
  what->require_option(1);

  const auto [plan, planned] =
      verbs.add("plan", "Validate a spec and print every number that follows from it", print_plan);
  add_spec_input(*plan, planned->input);
  plan->add_flag("--json", planned->json, "As JSON");
  auto* dialects =
      plan->add_flag("--dialects", planned->dialects, "What each of the five dialects would do with the spec");
  auto* megatron = plan->add_flag("--megatron", planned->megatron,
                                  "The 43 fields of the Megatron-LM plug-in: value, origin, and what each sets");
  auto* differences = plan->add_flag("--differences", planned->differences,
                                     "What the originals, with their defects, would do otherwise with the spec");
  dialects->excludes(megatron)->excludes(differences);
  megatron->excludes(differences);

  const auto [trace, traced] =
      verbs.add("trace", "Print the plan micro-step by micro-step, one JSON object per line", print_trace);
  add_spec_input(*trace, *traced);
  trace->footer(
      "schedule_position and lr are the values after the micro-step: an update uses the rate of the line before its "
      "own. In windows that teaching.overflow_at spoils, the schedule moves as accumulation.overflow says.");
}

void add_layout(Verbs& verbs) {
  const auto [schedule, scheduled] =
      verbs.add("schedule", "Print what each pipeline stage does in a window, operation by operation", print_schedule);
  add_spec_input(*schedule, scheduled->input);
  schedule->add_flag("--json", scheduled->json, "As JSON");
  schedule->footer(
      "F2 and B2 are the forward and backward of the window's micro-step 2 (from 0), F2.1 that of the stage's chunk "
      "1;\n"
      "F2>1 sends its output to stage 1, F2<0 receives it from stage 0, and B2>0 sends the gradient back.");

  const auto [grid, placed] = verbs.add("grid", "Print each rank's place, and the groups of every axis", print_grid);
  add_spec_input(*grid, placed->input);
  grid->add_flag("--json", placed->json, "As JSON");
}

void add_training(Verbs& verbs) {
  const auto [run, runs] = verbs.add("run", "Train a spec; prints the run folder", run_spec);
  add_spec_input(*run, runs->input);
  run->add_option("--out", runs->dir, "Run folder to create (default: a new one in the user's data folder)")
      ->type_name("DIR");
  run->add_flag(
      "--paused", runs->paused,
      "Hold before the first micro-step until \"step\" or \"continue\" (with --detach, or from another terminal)");
  add_run_flags(*run, *runs);

  const auto [resume, resumes] =
      verbs.add("resume", "Continue an interrupted, stopped or failed run from its last checkpoint", resume_run);
  add_dir(*resume, resumes->from, "The run folder, or one checkpoint in it");
  auto* out = resume->add_option("--out", resumes->dir, "Branch: a new folder, and the run in DIR is only read");
  out->type_name("NEW");
  resume->add_option("--set", resumes->sets, "Change one key of a branch: --set parallel.tensor=2")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->needs(out);
  add_plugins(*resume, resumes->input.plugins);
  resume
      ->add_option("--from", resumes->checkpoint,
                   "The checkpoint to go on from; \"best\" is that of checkpoint.best (default: the newest)")
      ->type_name("step-N");
  resume->footer(std::string(branch_keys_help()));
  add_run_flags(*resume, *resumes);

  const auto [verify, verifies] = verbs.add(
      "verify", "Compare the gradient of each window with that of the same samples in one batch, on all ranks",
      verify_spec);
  add_spec_input(*verify, verifies->input);
  verify->add_option("--updates", verifies->updates, "Windows to check (default: the first epoch's, at most 64)")
      ->check(whole(1, 1'000'000));
  verify->add_flag("--json", verifies->json, "As JSON");
  verify->footer("Exit status: 0 if every window is exact or close and nothing else is wrong, 3 otherwise.");
}

void add_lesson(Verbs& verbs) {
  const auto [lesson, options] = verbs.add("lesson", "Print a lesson, or go through it", go_through_lesson);
  lesson->add_option("FILE", options->file, "The lesson (*.accrue-lesson)")->required();
  lesson->add_flag("--check", options->check, "Train what each step asks for, and look for what must be seen");
  lesson->footer("Exit status of --check: 0 if every step shows what it asks for, 3 otherwise.");
}

void add_control(Verbs& verbs) {
  const auto [attach, attaches] =
      verbs.add("attach", "Follow a run that another process trains; Ctrl+C leaves it running", attach_to_run);
  add_dir(*attach, attaches->dir);
  attach->add_flag("--quiet", attaches->quiet, "Print only warnings and errors");

  const auto [stop, stops] = verbs.add(
      "stop", "Save a checkpoint at the end of a run's current update, end it, and wait until it has", stop_run);
  add_dir(*stop, stops->dir);
  auto* now =
      stop->add_flag("--now", stops->now,
                     "End it after the current micro-step, without a checkpoint: updates since the last one are "
                     "trained again");
  auto* kill = stop->add_flag("--kill", stops->kill, "Kill the ranks at once")->excludes(now);
  // The default of stop, for users who want to be explicit.
  stop->add_flag("--checkpoint")
      ->description("Save a checkpoint first, as is done without options")
      ->excludes(now)
      ->excludes(kill);

  const auto [pause, paused] = verbs.add("pause", "Pause a run after its current micro-step", pause_run);
  add_dir(*pause, *paused);
  const auto [proceed, continued] = verbs.add("continue", "Continue a paused run", continue_run);
  add_dir(*proceed, *continued);

  const auto [step, stepped] =
      verbs.add("step", "Let a paused run go on to its next stop, and print what its ranks hold there", step_run);
  add_dir(*step, stepped->dir);
  auto* phase = step->add_flag("--phase", stepped->phase,
                               "To the end of the next phase: forward, scale, backward, and after the last micro-step "
                               "of a window reduce, unscale, clip, step, schedule, zero");
  step->add_flag("--update", stepped->update, "To the end of the update")->excludes(phase);
  step->footer("Without an option: to the end of the next micro-step's backward, before its gradients are reduced.");

  const auto [steps, change] =
      verbs.add("steps", "Change the accumulation steps of a run, from its next window on", set_steps);
  add_dir(*steps, change->dir);
  steps->add_option("N", change->steps, "Micro-steps per window")->required()->check(whole(1, 1 << 20));
}

void add_export(Verbs& verbs) {
  const auto [exported, exports] =
      verbs.add("export", "Write a spec as code for another tool, or a run's record for one", export_to);
  exported
      ->add_option("SPEC", exports->from,
                   "The run spec (*.accrue); for huggingface, tensorboard and chrome-trace a run folder")
      ->required();
  exported->add_option("--to", exports->to, "The other tool")
      ->required()
      ->check(CLI::IsMember({"accelerate", "lightning", "deepspeed", "megatron", "pytorch", "huggingface",
                             "tensorboard", "chrome-trace"}));
  exported
      ->add_option("--out", exports->out,
                   "File to write (default: standard output); for huggingface and tensorboard a folder")
      ->type_name("PATH");
  exported->add_option("--set", exports->sets, "Change one key: --set accumulation.steps=16")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  exported->add_flag("--json", exports->json, "As JSON, with the list of what could not be carried over");
  exported->footer(
      "A script for accelerate, lightning or pytorch trains the same model from the same weights on the same samples;\n"
      "deepspeed is a configuration, megatron a shell script. What could not be carried over stands in the text and\n"
      "goes to standard error. huggingface: the run's final weights with their config.json, which transformers opens\n"
      "with from_pretrained, and the tokenizer if it is known; models of GPT-2's, Llama's and Qwen2's form. "
      "tensorboard:\n"
      "the run's scalars as event files, without the throughput and the timers, which run.tensorboard_dir writes "
      "while\n"
      "it trains. chrome-trace: what each rank did and when, for Perfetto and chrome://tracing.");
}

/// Verbs for other tools.
void add_exchange(Verbs& verbs) {
  add_export(verbs);
  const auto [bundle, bundled] =
      verbs.add("bundle", "Write runs into one file, to be imported on another machine", bundle_runs);
  bundle->add_option("DIR", bundled->dirs, "Run folders")->required();
  bundle->add_option("--out", bundled->out, "File to write: NAME.accrue-bundle")
      ->type_name("FILE")
      ->required()
      ->check(CLI::Validator(
          [](const std::string& file) {
            return file.ends_with(".accrue-bundle") ? std::string() : "end the name in .accrue-bundle";
          },
          ""));
  bundle->add_option("--spec", bundled->spec, "A spec that goes along (*.accrue)")->type_name("SPEC");
  bundle->add_flag("--with-weights", bundled->with_weights, "Final weights, too");
  bundle->footer(
      "Each run's spec, plan, events and summary go along as they are, with the paths and the host's name in them;\n"
      "checkpoints and what ranks printed stay here.");

  const auto [imported, imports] =
      verbs.add("import", "Make run folders of a bundle, or of another tool's curves", import_records);
  imported
      ->add_option("FILE", imports->from, "*.accrue-bundle, or the log of another tool: a file, or a folder of them")
      ->required();
  auto* out = imported->add_option("--out", imports->dir, "Run folder to create, of one run's curves");
  out->type_name("DIR");
  imported->add_option("--into", imports->into, "Where new run folders go (default: the user's runs)")
      ->type_name("RUNS")
      ->excludes(out);
  imported->add_option("--spec", imports->spec, "Of a bundle: file to write its spec to")->type_name("FILE");
  imported->add_option("--step", imports->step, "The column or key that is the step (default: by its usual names)")
      ->type_name("NAME");
  imported
      ->add_option(
          "--loss", imports->tags.loss,
          "The tag or column that is the loss (default: by its usual names); once for each name that runs have")
      ->type_name("TAG")
      ->allow_extra_args(false);
  imported->add_option("--lr", imports->tags.lr, "The one that is the learning rate")->type_name("TAG");
  imported->add_option("--grad-norm", imports->tags.grad_norm, "The one that is the gradient's norm")->type_name("TAG");
  imported->add_option("--evaluation", imports->tags.evaluation, "The one that is the loss of evaluations")
      ->type_name("TAG");
  imported->add_option("--batch", imports->tags.batch, "Samples of a step, where the log does not say")
      ->check(whole(1, std::int64_t{1} << 40));
  imported->footer(
      "show, compare and the studio take each folder as a run like others; it cannot be resumed. A bundle's run that\n"
      "is there already is left as it is; one with the same id and another record is refused.\n"
      "Logs that are read, by their contents: TensorBoard's event files; tables with a header line (csv; what the\n"
      "studio exports, charts of W&B); JSON lines such as MMEngine's scalars.json; trainer_state.json of the HF "
      "Trainer;\n"
      "what Megatron-LM prints; MLflow's metric files. Several runs in one file or folder become a folder each.");
}

void add_records(Verbs& verbs) {
  constexpr std::int64_t most_tokens = 1 << 30;
  const auto [show, shows] = verbs.add("show", "Print a run's summary and its losses", show_run);
  add_dir(*show, shows->dir);
  show->add_flag("--json", shows->json, "As JSON, with every update");

  const auto [generate, text] =
      verbs.add("generate", "Continue a text with the final weights of a run that trained a GPT", generate_text);
  add_dir(*generate, text->dir);
  auto* prompt = generate->add_option("--prompt", text->prompt, "The text to continue");
  prompt->check(CLI::Validator(
      [](const std::string& given) { return std::string(given.empty() ? "the prompt is empty" : ""); }, ""));
  generate->add_option("--tokens", text->tokens, "Tokens in place of a text: 12,7,3")->excludes(prompt);
  generate
      ->add_option(
          "--tokenizer", text->tokenizer,
          "Of the text: a tokenizer.json, bpe:VOCAB.json, wordpiece:VOCAB.txt or sentencepiece:MODEL (default: "
          "that of the run's dataset; without one a token is a byte)")
      ->type_name("[KIND:]FILE")
      ->needs(prompt);
  generate
      ->add_option("--length", text->length,
                   "The least number of tokens to add; the total is rounded up to a multiple of 4 and ends at the "
                   "model's context")
      ->check(whole(1, most_tokens))
      ->capture_default_str();
  generate->add_option("--temperature", text->temperature, "Above 0; below 1 likely tokens become likelier")
      ->capture_default_str();
  auto* top_k =
      generate->add_option("--top-k", text->top_k, "Draw from the K likeliest tokens; 1 draws nothing, 0 = all");
  auto* top_p = generate->add_option("--top-p", text->top_p, "Draw from the fewest tokens that have probability P");
  top_p->excludes(top_k);
  generate->add_option("--top-p-decay", text->top_p_decay, "Multiplies P after each token")->needs(top_p);
  generate->add_option("--top-p-bound", text->top_p_bound, "P falls no further")->needs(top_p);
  auto* beams = generate->add_option("--beams", text->beams, "Search with so many rows in place of drawing");
  beams->check(whole(1, most_tokens))->excludes(top_k)->excludes(top_p);
  generate->add_option("--length-penalty", text->length_penalty, "A row's score is divided by its length ^ this")
      ->needs(beams);
  generate->add_flag("--add-bos", text->add_bos, "Begin with the end of document");
  generate->add_option("--seed", text->seed, "Of what is drawn: the same seed gives the same text")
      ->capture_default_str();

  const auto [compare, compares] =
      verbs.add("compare", "Compare runs: differing keys, losses at equal samples (or updates), first divergence",
                compare_runs_of);
  compare->add_option("DIR", compares->dirs, "Two or more run folders")->required()->expected(2, 64);
  compare->add_flag("--json", compares->json, "As JSON, with every common point");

  add_exchange(verbs);

  const auto [doctor, checks] =
      verbs.add("doctor", "Check this installation; the exit status is the number of problems", check_installation);
  doctor->add_flag("--json", checks->json, "As JSON");
  doctor->footer("Exit status: the number of problems; 0 where there is none.");

  const auto [manual, page] =
      verbs.add("help", "Print a page of the manual, or what a verb or a key of a spec is for", print_manual);
  manual->add_option("TOPIC", page->topic,
                     "A page (data), a verb (plan) or a key (accumulation.steps); left out, the list of the pages");
}

void add_data(CLI::App& app, int& status) {
  CLI::App* data = app.add_subcommand("data", "Build indexed datasets (PREFIX.bin and PREFIX.idx) and look into them");
  data->require_subcommand(1);
  Verbs verbs(*data, status);
  const auto [build, built] = verbs.add("build", "Make an indexed dataset of texts", build_data);
  build->add_option("TEXT", built->texts, "Texts in UTF-8 or JSON lines, plain or packed by gzip, in this order")
      ->required();
  build->add_option("--out", built->prefix, "PREFIX of the dataset to create")->type_name("PREFIX")->required();
  build->add_option("--documents", built->documents, "What becomes a document: a file, a paragraph or a line")
      ->check(CLI::IsMember({"file", "paragraph", "line"}))
      ->capture_default_str();
  build
      ->add_option(
          "--json-keys", built->json_key,
          "The texts are JSON lines, as Megatron-LM's preprocess_data.py takes them, with the text of a document "
          "under KEY (default for .jsonl, .ndjson and .json: text)")
      ->type_name("KEY");
  build
      ->add_option("--prompt-key", built->prompt_key,
                   "Each object has a prompt under KEY, before its text: the model reads it, and it has no part in the "
                   "loss")
      ->type_name("KEY");
  build
      ->add_option(
          "--tokenizer", built->tokenizer,
          "bytes (a token a byte), the path of a tokenizer.json or of its folder, bpe:VOCAB.json (GPT-2's, with "
          "merges.txt beside it), wordpiece:VOCAB.txt (BERT's) or sentencepiece:MODEL")
      ->type_name("[KIND:]FILE")
      ->capture_default_str();
  build->add_flag("--keep-case", built->keep_case, "For wordpiece: letters keep their case and their accents");
  build->add_flag(
      "--sentences", built->sentences,
      "For BERT and T5: each line is a sequence, and a blank line (in JSON lines the object) ends a document");
  build->add_flag("--append-eod", built->append_eod,
                  "End each document with the token that the tokenizer has for it (bytes: 256)");
  build->footer(
      "A build that was stopped or killed goes on when it is asked for again. Without --append-eod nothing marks\n"
      "where one document of a sample ends and the next begins. PREFIX.json says what the tokens mean. Where lines\n"
      "divide a text, they end as on any system, and one of white space alone is blank. An object of JSON lines\n"
      "without text is left out; a list of texts under KEY is a sequence for each.");

  const auto [show, shown] = verbs.add("show", "Check an indexed dataset and print what it holds", show_data);
  show->add_option("PREFIX", shown->prefix, "The dataset, without .bin or .idx")->required();
  show->add_flag("--json", shown->json, "As JSON");

  const auto [index, indexed] =
      verbs.add("index", "Print which tokens a GPT's samples hold: document, sample and shuffle index", index_data);
  index->add_option("PREFIX", indexed->prefix, "The dataset, without .bin or .idx")->required();
  index->add_option("--seq-length", indexed->sequence_length, "Tokens of a sample")->required();
  index
      ->add_option("--samples", indexed->samples,
                   "At least so many of train, valid and test: 1000,100,10 (default: one epoch)")
      ->delimiter(',')
      ->expected(1, 3);
  index->add_option("--seed", indexed->seed, "Seed of the shuffles")->capture_default_str();
  index->add_option("--split", indexed->split, "Proportions of train, valid and test")->capture_default_str();
  index->add_flag("--json", indexed->json, "As JSON, with all three indices");
}

/// `command`: words after "--" on the command line.
void add_launch(Verbs& verbs, std::vector<std::string> command) {
  const auto [launch, options] =
      verbs.add("launch", "Start a program of yours as the ranks of one world on this host", launch_programs);
  options->group.command = std::move(command);
  launch->add_option("-n,--ranks", options->group.ranks, "Ranks to start (default: 1)")->check(whole(1, 1024));
  launch
      ->add_option("--threads", options->group.threads,
                   "Threads of each rank (default: OMP_NUM_THREADS, or an equal share of the cores)")
      ->check(whole(1, 4096));
  launch->add_option("--env", options->group.environment, "Pass a variable on: NAME, or NAME=VALUE; may be repeated")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  launch
      ->add_option("--out", options->dir,
                   "Run folder: the record of a program that opens a RunRecord (ACCRUE_RUN_DIR is DIR there), and what "
                   "the ranks print in DIR/ranks/R.log")
      ->type_name("DIR");
  launch->add_option("--guard-fd", options->guard)->group("");
  launch->footer(
      "The program and its arguments follow --:  accrue-run launch -n 2 -- ./train --lr 0.1\n"
      "The ranks find RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and a new\n"
      "ACCRUE_RUN_SECRET in their environment, and of the caller's the variables that ranks of a run get,\n"
      "ACCELERATE_*, MEGATRON_LM_* and OMP_*. Others need --env. If one rank fails, the others are ended.\n"
      "Exit status: 0 all ranks ended with 0, 2 nothing was started, 4 a rank failed or was killed, 5 the folder\n"
      "cannot be written, 130 stopped by the user.");
}

/// Index of the words after "launch ... --", which belong to another program and are not inspected.
int first_of_another_program(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "launch") return argc;
  for (int i = 2; i < argc; ++i)
    if (std::string_view(argv[i]) == "--") return i + 1;
  return argc;
}

using Names = std::vector<std::string>;

Names subcommands_of(const CLI::App& verb) {
  Names names;
  for (const CLI::App* each : verb.get_subcommands([](const CLI::App* sub) { return !sub->get_name().empty(); }))
    names.push_back(each->get_name());
  return names;
}

/// Options that --help lists, including those of its groups.
Names options_of(const CLI::App& verb) {
  Names names;
  for (const CLI::Option* each : verb.get_options())
    if (each != verb.get_help_ptr() && !each->get_lnames().empty() && !each->get_group().empty())
      names.push_back("--" + each->get_lnames().front());
  for (const CLI::App* group : verb.get_subcommands([](const CLI::App* sub) { return sub->get_name().empty(); }))
    for (std::string& name : options_of(*group)) names.push_back(std::move(name));
  return names;
}

/// Reports a word that the verb does not know.
std::string unknown_word(const CLI::App& verb, const std::string& word) {
  const Names subcommands = subcommands_of(verb);
  if (word.starts_with("-")) {
    const Names options = options_of(verb);
    return "there is no option \"" + word + "\"" + (options.empty() ? "" : ". There are " + joined(options));
  }
  if (subcommands.empty()) return "\"" + word + "\" is one word too many";
  return "there is no subcommand \"" + word + "\". There are " + joined(subcommands);
}

/// For an option with a value of another type: CLI11 says "Could not convert: NAME = VALUE".
std::string wrong_type(const CLI::App& verb, const std::string& said) {
  const auto colon = said.find(": ");
  const auto equals = said.find(" = ");
  if (colon == std::string::npos || equals == std::string::npos) return said;
  const std::string name = said.substr(colon + 2, equals - colon - 2);
  const CLI::Option* option = verb.get_option_no_throw(name);
  const std::string type = option == nullptr ? std::string() : option->get_type_name();
  const char* const wanted = type.starts_with("FLOAT")  ? "a number"
                             : type.starts_with("UINT") ? "a whole number from 0 up"
                             : type.starts_with("INT")  ? "a whole number"
                                                        : "another value";
  return name + " takes " + wanted + ", not \"" + said.substr(equals + 3) + "\"";
}

/// For a missing option or word: CLI11's text begins with its name.
std::string missing(const CLI::App& verb, const std::string& said) {
  const std::string name = said.substr(0, said.find(' '));
  const CLI::Option* option = verb.get_option_no_throw(name);
  if (option == nullptr) return said;
  const std::string type = option->get_type_name();  // one of several is in braces
  const auto choices = type.find('{');
  const std::string which = choices == std::string::npos ? "" : ", one of " + type.substr(choices);
  return name + " is missing: " + option->get_description() + which;
}

/// For an option without its value: CLI11 says "NAME: 1 required TYPE missing".
std::string missing_value(const std::string& said) {
  constexpr std::string_view number = ": 1 required ", end = " missing";
  const auto at = said.find(number);
  if (at == std::string::npos || !said.ends_with(end)) return said;
  const auto type = at + number.size();
  return said.substr(0, at) + " needs a value: " + said.substr(type, said.size() - end.size() - type);
}

/// Reports what is wrong with a command line, where, and what would be right.
int refuse(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* verb = &app;
  std::string words = "accrue-run";
  while (verb->remaining().empty()) {
    const auto named = verb->get_subcommands();
    if (named.empty()) break;
    verb = named.front();
    words += " " + verb->get_name();
  }
  std::string what = error.what();
  if (const auto unknown = verb->remaining(); !unknown.empty())
    what = unknown_word(*verb, unknown.front());
  else if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr)
    what = wrong_type(*verb, what);
  else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)
    what = missing_value(what);
  else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !subcommands_of(*verb).empty())
    what = "a subcommand is missing. There are " + joined(subcommands_of(*verb));
  else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)
    what = missing(*verb, what);
  say("%s: %s\n\"%s --help\" says more\n", words.c_str(), what.c_str(), words.c_str());
  return status_refused;
}

bool is_verb_without_page(const CLI::App& app, const std::string& topic) {
  const Names verbs = subcommands_of(app);
  return std::ranges::find(verbs, topic) != verbs.end() &&
         std::ranges::find(manual_pages(), topic, &ManualPage::topic) == manual_pages().end();
}

}  // namespace

int run_command_line(int argc, char** argv) {
  const int others = first_of_another_program(argc, argv);
  CLI::App app{"Trains runs of Accrue without a window.", "accrue-run"};
  app.set_version_flag("--version", accrue::version());
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 done, 2 refused before the start, 3 the training failed, 4 ranks were lost,\n"
      "5 disk or store, 130 stopped by the user.");
  int status = status_done;
  Verbs verbs(app, status);
  add_planning(verbs);
  add_layout(verbs);
  add_training(verbs);
  add_lesson(verbs);
  add_control(verbs);
  add_records(verbs);
  add_data(app, status);
  add_launch(verbs, {argv + others, argv + argc});
  try {
    if (argc == 3 && argv[1] == std::string_view("help") && is_verb_without_page(app, argv[2]))
      app.parse(std::vector<std::string>{"--help", argv[2]});  // the last argument first
    else
      app.parse(others < argc ? others - 1 : argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return refuse(app, error);
  } catch (const std::exception& error) {
    say("accrue-run: %s\n", error.what());
    return exit_status(ErrorCode::internal);
  }
  return status;
}

}  // namespace accrue::cli
