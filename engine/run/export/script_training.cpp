// SPDX-License-Identifier: Apache-2.0
// Windows, divisors, the rate, and the loop of each tool.
#include <fmt/format.h>

#include <algorithm>

#include "accrue/run/choice_names.h"
#include "accrue/run/parameter_groups.h"
#include "export_rules.h"
#include "script_parts.h"

namespace accrue::export_detail {

namespace {

constexpr std::string_view windows_code = R"py(
def windows():
    """Yields each update's micro-steps, as (epoch, batch)."""
    window, micro_steps = [], 0
    for epoch in itertools.count():
        for batch in range(BATCHES):
            window.append((epoch, batch))
            micro_steps += 1
            if len(window) == N or @FLUSH@micro_steps == MICRO_STEPS:
                yield window
                window = []
            if micro_steps == MICRO_STEPS:
                return

)py";

constexpr std::string_view weights_head = R"py(
def weights(window, rank):
    """What each micro-step's summed loss is multiplied by, where the gradients of RANKS processes are averaged: @WHAT@."""
)py";

constexpr std::string_view squared_error = R"py(
def loss_sum(outputs, targets):
    return F.mse_loss(outputs, targets, reduction="sum")

)py";

constexpr std::string_view cross_entropy = R"py(
def loss_sum(outputs, targets):
    """Targets of -100 do not count."""
    return F.cross_entropy(outputs.reshape(-1, outputs.shape[-1]), targets.reshape(-1), reduction="sum")

)py";

struct Division {
  std::string what;
  std::string code;
};

Division division_of(const RunPlan& plan) {
  const AccumulationKnobs& knobs = plan.knobs;
  const bool all = counts_over_ranks(knobs);
  // Summed gradients of ranks are their mean times the number of ranks.
  const std::string sum = knobs.reduce_op == ReduceOp::sum ? "RANKS * " : "";
  const std::string each = "[samples_of(epoch, batch, rank) for epoch, batch in window]";
  const std::string ranks =
      all ? "[samples_of(epoch, batch, r) for epoch, batch in window for r in range(RANKS)]" : each;
  switch (knobs.normalizer) {
    case Normalizer::tokens:
      return {
          all ? "a window's sum is divided by the items of all ranks" : "a window's sum is divided by the rank's items",
          fmt::format("    total = sum(items(samples) for samples in {})\n"
                      "    return [{} / max(total, 1)] * len(window)\n",
                      ranks, all ? "RANKS" : "1.0")};
    case Normalizer::samples:
      return {"a window's means are weighted by their samples",
              fmt::format("    total = sum(len(samples) for samples in {})\n"
                          "    return [{} * len(s) / max(items(s), 1) / max(total, 1) for s in {}]\n",
                          ranks, all ? "RANKS" : "1.0", each)};
    case Normalizer::true_size:
    case Normalizer::run_remainder:
      return {"the mean of a micro-batch, divided by the window's own length",
              fmt::format("    return [{}1.0 / (max(items(s), 1) * len(window)) for s in {}]\n", sum, each)};
    case Normalizer::none:
      return {"the mean of a micro-batch, which nothing divides",
              fmt::format("    return [{}1.0 / max(items(s), 1) for s in {}]\n", sum, each)};
    case Normalizer::steps:
      break;
  }
  return {"the mean of a micro-batch, divided by N in a short window too",
          fmt::format("    return [{}1.0 / (max(items(s), 1) * N) for s in {}]\n", sum, each)};
}

/// Remaining fraction between the end of the warm-up and the total, from `done`, as in lr_at().
std::string decaying(const LrCurve& curve) {
  const std::string done = "done = min((position - WARMUP) / (TOTAL - WARMUP), 1.0) if position < TOTAL else 1.0\n    ";
  switch (curve.kind) {
    case ScheduleKind::linear:
      return done + "return MIN_LR + (LR - MIN_LR) * (1.0 - done)";
    case ScheduleKind::cosine:
      return done + "return MIN_LR + (LR - MIN_LR) * 0.5 * (1.0 + math.cos(math.pi * done))";
    case ScheduleKind::inverse_square_root:
      return "return max(MIN_LR, LR * math.sqrt((WARMUP + 1) / (position + 1)))";
    case ScheduleKind::exponential:
      return fmt::format("return max(MIN_LR, LR * {} ** (position - WARMUP))", python(curve.gamma));
    case ScheduleKind::wsd: {
      if (curve.decay_fraction <= 0.0) return "return LR";
      std::string_view share = "left";
      if (curve.decay_tail == DecayTail::cosine) share = "0.5 * (1.0 + math.cos(math.pi * (1.0 - left)))";
      if (curve.decay_tail == DecayTail::exponential) share = "2.0 * 0.5 ** (1.0 - left) - 1.0";
      if (curve.decay_tail == DecayTail::minus_square_root) share = "1.0 - math.sqrt(1.0 - left)";
      return fmt::format(
          "left = min(max((TOTAL - position) / ({} * TOTAL), 0.0), 1.0)\n    return MIN_LR + (LR - MIN_LR) * ({})",
          python(curve.decay_fraction), share);
    }
    case ScheduleKind::constant:
      break;
  }
  return "return LR";
}

std::string rate_part(const RunPlan& plan) {
  const LrCurve& curve = plan.curve;
  std::string text = "\ndef rate(update):\n    \"\"\"The learning rate of an update, counted from 0.\"\"\"\n";
  if (curve.kind == ScheduleKind::constant && curve.warmup <= 0.0) return text + "    return LR\n\n";
  text += fmt::format("    position = {}\n", position_code(plan));
  if (curve.warmup > 0.0) text += "    if position < WARMUP:\n        return LR * (position + 1) / (WARMUP + 1)\n";
  return text + "    " + decaying(curve) + "\n\n";
}

std::string constructor(const OptimizerSpec& optimizer) {
  const std::string eps = python(epsilon_of(optimizer));
  const std::string betas = fmt::format("betas=({}, {})", python(optimizer.beta1), python(optimizer.beta2));
  const bool apart =
      optimizer.kind == OptimizerKind::adamw || (optimizer.kind != OptimizerKind::adam && optimizer.adamw_mode);
  if (optimizer.kind == OptimizerKind::sgd || optimizer.kind == OptimizerKind::fused_sgd)
    return fmt::format("torch.optim.SGD(groups, lr=LR, momentum={}, dampening={}, nesterov={})",
                       python(optimizer.momentum), python(optimizer.dampening), python(optimizer.nesterov));
  return fmt::format("torch.optim.{}(groups, lr=LR, {}, eps={})", apart ? "AdamW" : "Adam", betas, eps);
}

/// Whether all parameters have the same options.
bool one_group(const RunPlan& plan) {
  return plan.spec.optimizer.weight_decay == 0.0 && plan.spec.optimizer.scaled_lr.empty();
}

std::string groups_part(const RunPlan& plan) {
  const OptimizerSpec& optimizer = plan.spec.optimizer;
  if (one_group(plan))
    return fmt::format(
        "    groups = [{{\"params\": list(model.parameters()), \"weight_decay\": 0.0, \"factor\": 1.0}}]\n"
        "    return {}\n",
        constructor(optimizer));
  std::string text = "    groups = {}\n    for name, parameter in model.named_parameters():\n";
  text += fmt::format("        decay = WEIGHT_DECAY if {} else 0.0\n",
                      optimizer.no_decay ? fmt::format("not matches(name, {})", python_list(*optimizer.no_decay))
                                         : "parameter.dim() > 1");
  text += optimizer.scaled_lr.empty() ? "        factor = 1.0\n"
                                      : fmt::format("        factor = {} if matches(name, {}) else 1.0\n",
                                                    python(optimizer.lr_mult), python_list(optimizer.scaled_lr));
  text +=
      "        groups.setdefault((decay, factor), []).append(parameter)\n"
      "    groups = [{\"params\": each, \"weight_decay\": decay, \"factor\": factor} for (decay, factor), each in "
      "groups.items()]\n";
  return text + fmt::format("    return {}\n", constructor(optimizer));
}

constexpr std::string_view matcher = R"py(
def matches(name, globs):
    return any(re.fullmatch(".*".join(map(re.escape, glob.split("*"))), name) for glob in globs)

)py";

constexpr std::string_view reporting = R"py(
def report(update, loss, lr):
    print(json.dumps({"update": update + 1, "loss": loss, "lr": lr}), flush=True)


def check_processes(found):
    if found != RANKS:
        raise SystemExit(f"this script is for RANKS = {RANKS} processes and was started with {found}: an update would hold another number of samples")


def leave_processes():
    """Gloo's thread needs the interpreter's lock to let go of its last call, and destroy_process_group() holds that lock
    while it waits for the thread: without a pause the script may hang. A script that ends without destroying may abort."""
    if RANKS > 1:
        time.sleep(0.5)
        torch.distributed.destroy_process_group()

)py";

constexpr std::string_view pytorch_loop = R"py(
def main():
    torch.set_num_threads(THREADS)
    check_processes(int(os.environ.get("WORLD_SIZE", "1")))
    rank = int(os.environ.get("RANK", "0"))
    device = torch.device(@DEVICE@)
    model = draw_weights(Model()).to(device)
    optimizer = make_optimizer(model)
    if RANKS > 1:
        torch.distributed.init_process_group(@BACKEND@)
        model = nn.parallel.DistributedDataParallel(model)
    for update, window in enumerate(windows()):
        window_loss = torch.zeros((), dtype=torch.float64, device=device)
        for number, ((epoch, batch), weight) in enumerate(zip(window, weights(window, rank))):
            inputs, targets = (part.to(device) for part in read(samples_of(epoch, batch, rank)))
            # Only the last backward of a window reduces the gradients.
            waits = RANKS > 1 and number + 1 < len(window)
            with model.no_sync() if waits else contextlib.nullcontext():
                loss = loss_sum(model(inputs), targets) * weight
                loss.backward()
            window_loss += loss.detach()
@CLIP@        for group in optimizer.param_groups:
            group["lr"] = rate(update) * group["factor"]
        optimizer.step()
        optimizer.zero_grad()
        if RANKS > 1:
            torch.distributed.all_reduce(window_loss)
        if rank == 0:
            report(update, window_loss.item() / RANKS, rate(update))
    leave_processes()


main()
)py";

constexpr std::string_view accelerate_loop = R"py(
def main():
    torch.set_num_threads(THREADS)
    accelerator = Accelerator(@CPU@gradient_accumulation_steps=N)
    check_processes(accelerator.num_processes)
    rank = accelerator.process_index
    model = draw_weights(Model())
    model, optimizer = accelerator.prepare(model, make_optimizer(model))
    # accumulate() divides every loss by N. Here each window is taken whole and weights its own losses, as in Accelerate's
    # guide on samples of variable size: no_sync() but for the last micro-step.
    for update, window in enumerate(windows()):
        window_loss = torch.zeros((), dtype=torch.float64, device=accelerator.device)
        for number, ((epoch, batch), weight) in enumerate(zip(window, weights(window, rank))):
            inputs, targets = (part.to(accelerator.device) for part in read(samples_of(epoch, batch, rank)))
            waits = number + 1 < len(window)
            with accelerator.no_sync(model) if waits else contextlib.nullcontext():
                loss = loss_sum(model(inputs), targets) * weight
                accelerator.backward(loss * N)  # which divides by N
            window_loss += loss.detach()
@CLIP@        for group in optimizer.param_groups:
            group["lr"] = rate(update) * group["factor"]
        optimizer.step()
        optimizer.zero_grad()
        window_loss = accelerator.reduce(window_loss, reduction="mean")
        if accelerator.is_main_process:
            report(update, window_loss.item(), rate(update))
    leave_processes()  # as end_training() does, which does not wait


main()
)py";

constexpr std::string_view lightning_loop = R"py(
class MicroSteps(torch.utils.data.Dataset):
    """The micro-steps of one of Lightning's epochs: inputs, targets, weight."""

    def __init__(self, windows, rank):
        self.steps = [(*place, w) for window in windows for place, w in zip(window, weights(window, rank))]
        self.rank = rank

    def __len__(self):
        return len(self.steps)

    def __getitem__(self, number):
        epoch, batch, weight = self.steps[number]
        return *read(samples_of(epoch, batch, self.rank)), weight


class Training(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = draw_weights(Model())
        self.window_loss = 0.0
        self.update = 0

    def train_dataloader(self):
        """@EPOCHS@"""
        epoch = [window for window in windows() if @EPOCH_TEST@]
        return torch.utils.data.DataLoader(MicroSteps(epoch, self.global_rank), batch_size=None)

    def training_step(self, batch, _):
        inputs, targets, weight = batch
        loss = loss_sum(self.model(inputs), targets) * weight
        self.window_loss += loss.detach()
        return loss * N  # which Lightning divides by accumulate_grad_batches

    def configure_optimizers(self):
        return make_optimizer(self.model)

    def optimizer_step(self, epoch, batch, optimizer, closure=None):
        lr = rate(self.update)
        for group in optimizer.param_groups:
            group["lr"] = lr * group["factor"]
        optimizer.step(closure=closure)
        loss = self.trainer.strategy.reduce(self.window_loss, reduce_op="mean")
        if self.global_rank == 0:
            report(self.update, float(loss), lr)
        self.window_loss = 0.0
        self.update += 1


def main():
    torch.set_num_threads(THREADS)
    check_processes(int(os.environ.get("WORLD_SIZE", "1")))
    trainer = lightning.Trainer(
        max_steps=UPDATES, max_epochs=-1, accumulate_grad_batches=N, gradient_clip_val=CLIP, gradient_clip_algorithm=@ALGORITHM@,
        accelerator=@ACCELERATOR@, devices=RANKS, strategy=@STRATEGY@, use_distributed_sampler=False,
        reload_dataloaders_every_n_epochs=@RELOAD@, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Training())
    leave_processes()  # which Lightning leaves to the end of the process


main()
)py";

bool clips(const RunPlan& plan) {
  return plan.spec.optimizer.clip_norm > 0.0 && plan.knobs.clip_stage == ClipStage::in_update;
}

std::string clip_line(const RunPlan& plan, std::string_view by) {
  if (!clips(plan)) return {};
  return fmt::format("        {}clip_grad_{}_(model.parameters(), CLIP)\n", by,
                     plan.knobs.clip_kind == ClipKind::norm ? "norm" : "value");
}

std::string lightning(const RunPlan& plan) {
  const bool by_epoch = plan.knobs.tail != EpochTail::carry;
  const bool cuda = plan.spec.launch.device == DeviceKind::cuda;
  const bool many = plan.order.world > 1;
  std::string text(lightning_loop);
  text = filled(
      text, "@EPOCHS@",
      by_epoch
          ? "One epoch: Lightning also steps at its last batch, so a tail makes an update."
          : "The whole run as one epoch: Lightning steps at an epoch's last batch, and here windows cross epochs.");
  text = filled(text, "@EPOCH_TEST@", by_epoch ? "window[0][0] == self.current_epoch" : "True");
  text = filled(text, "@RELOAD@", by_epoch ? "1" : "0");
  text = filled(text, "@ALGORITHM@", plan.knobs.clip_kind == ClipKind::norm ? "\"norm\"" : "\"value\"");
  text = filled(text, "@ACCELERATOR@", cuda ? "\"gpu\"" : "\"cpu\"");
  return filled(text, "@STRATEGY@", many ? "\"ddp\"" : "\"auto\"");
}

}  // namespace

std::string window_part(const RunPlan& plan) {
  const bool flush = script_windows(plan).flush;
  const Division division = division_of(plan);
  const bool squares =
      plan.spec.model.kind != ModelKind::gpt && plan.spec.model.loss.value_or(LossKind::mse) == LossKind::mse;
  return filled(windows_code, "@FLUSH@", flush ? "batch + 1 == BATCHES or " : "") +
         filled(weights_head, "@WHAT@", division.what) + division.code + "\n" +
         std::string(squares ? squared_error : cross_entropy);
}

std::string optimizer_part(const RunPlan& plan) {
  const OptimizerSpec& optimizer = plan.spec.optimizer;
  const bool globs = !one_group(plan) && (optimizer.no_decay || !optimizer.scaled_lr.empty());
  return rate_part(plan) + std::string(globs ? matcher : "") + "\ndef make_optimizer(model):\n" + groups_part(plan) +
         "\n";
}

std::string loop_part(const RunPlan& plan, CodeTarget target) {
  const bool cuda = plan.spec.launch.device == DeviceKind::cuda;
  if (target == CodeTarget::lightning) return std::string(reporting) + lightning(plan);
  if (target == CodeTarget::accelerate)
    return std::string(reporting) + filled(filled(accelerate_loop, "@CPU@", cuda ? "" : "cpu=True, "), "@CLIP@",
                                           clip_line(plan, "accelerator."));
  std::string text = filled(pytorch_loop, "@CLIP@", clip_line(plan, "nn.utils."));
  text = filled(text, "@DEVICE@", cuda ? "\"cuda\", int(os.environ.get(\"LOCAL_RANK\", \"0\"))" : "\"cpu\"");
  return std::string(reporting) + filled(text, "@BACKEND@", cuda ? "\"nccl\"" : "\"gloo\"");
}

}  // namespace accrue::export_detail
