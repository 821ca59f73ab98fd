# SPDX-License-Identifier: Apache-2.0
# What the loops of all tools call.
# %%

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

