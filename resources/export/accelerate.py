# SPDX-License-Identifier: Apache-2.0
# The loop in Accelerate.
# %%

def main():
    torch.set_num_threads(THREADS)
# %% device=cpu
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=N)
# %% device=cuda
    accelerator = Accelerator(gradient_accumulation_steps=N)
# %%
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
# %% clips
        accelerator._CLIP_GRAD_(model.parameters(), CLIP)
# %%
        for group in optimizer.param_groups:
            group["lr"] = rate(update) * group["factor"]
        optimizer.step()
        optimizer.zero_grad()
        window_loss = accelerator.reduce(window_loss, reduction="mean")
        if accelerator.is_main_process:
            report(update, window_loss.item(), rate(update))
    leave_processes()  # as end_training() does, which does not wait


main()
