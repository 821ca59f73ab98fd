# SPDX-License-Identifier: Apache-2.0
# The loop in PyTorch.
# %%

def main():
    torch.set_num_threads(THREADS)
    check_processes(int(os.environ.get("WORLD_SIZE", "1")))
    rank = int(os.environ.get("RANK", "0"))
# %% device=cpu
    device = torch.device("cpu")
# %% device=cuda
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
# %%
    model = draw_weights(Model()).to(device)
    optimizer = make_optimizer(model)
    if RANKS > 1:
# %% device=cpu
        torch.distributed.init_process_group("gloo")
# %% device=cuda
        torch.distributed.init_process_group("nccl")
# %%
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
# %% clips
        nn.utils._CLIP_GRAD_(model.parameters(), CLIP)
# %%
        for group in optimizer.param_groups:
            group["lr"] = rate(update) * group["factor"]
        optimizer.step()
        optimizer.zero_grad()
        if RANKS > 1:
            torch.distributed.all_reduce(window_loss)
        if rank == 0:
            report(update, window_loss.item() / RANKS, rate(update))
    leave_processes()


main()
