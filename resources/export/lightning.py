# SPDX-License-Identifier: Apache-2.0
# The loop in Lightning.
# %%

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
# %% epochs=apart
        """One epoch: Lightning also steps at its last batch, so a tail makes an update."""
        epoch = [window for window in windows() if window[0][0] == self.current_epoch]
# %% epochs=joined
        """The whole run as one epoch: Lightning steps at an epoch's last batch, and here windows cross epochs."""
        epoch = [window for window in windows() if True]
# %%
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
        max_steps=UPDATES, max_epochs=-1, accumulate_grad_batches=N, gradient_clip_val=CLIP, gradient_clip_algorithm=_ALGORITHM_,
        accelerator=_ACCELERATOR_, devices=RANKS, strategy=_STRATEGY_, use_distributed_sampler=False,
        reload_dataloaders_every_n_epochs=_RELOAD_, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Training())
    leave_processes()  # which Lightning leaves to the end of the process


main()
