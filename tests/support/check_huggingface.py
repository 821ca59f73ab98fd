#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains from models of the real transformers, beside Accelerate, and gives the results back to transformers.

    check_huggingface.py ACCRUE_RUN SOURCE

Each model of make_huggingface_models.py is trained for 20 updates of four micro-steps on the same tokens by accrue-run and by Accelerate. Losses agree to
1e-5 of themselves: both compute in float32, with sums in another order. What accrue-run exports is opened by from_pretrained without a warning, and has
the weights of Accelerate's model to 1e-4 of the largest. A GPT-2 with a tokenizer is fine-tuned by the commands of the manual on prompts and answers;
transformers opens the result, and its loss over the answer alone is that of the last evaluation. Without the environment of python_tools.py the test is skipped, and says how to make it.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

UPDATES, STEPS, SAMPLES, CONTEXT, RATE = 20, 4, 2, 24, 0.05
LOSSES, WEIGHTS = 1e-5, 1e-4

SPEC = """accrue = 1
[model]
init = "checkpoint"
weights = "{weights}"
context = {context}
[data]
kind = "tokens"
path = "tokens.u16"
shuffle = false
[optimizer]
kind = "sgd"
lr = {rate}
[accumulation]
steps = {steps}
micro_batch = {samples}
[run]
updates = {updates}
"""


def accelerate_losses(folder, tokens):
    """Losses of the updates, and the trained model."""
    import torch
    from accelerate import Accelerator
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    accelerator = Accelerator(gradient_accumulation_steps=STEPS, cpu=True)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=RATE))
    losses = []
    for update in range(UPDATES):
        total = 0.0
        for step in range(STEPS):
            first = (update * STEPS + step) * SAMPLES
            rows = torch.stack([tokens[i * CONTEXT : i * CONTEXT + CONTEXT + 1] for i in range(first, first + SAMPLES)])
            with accelerator.accumulate(model):
                logits = model(rows[:, :-1]).logits
                loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            total += loss.item()
        losses.append(total / STEPS)
    return losses, accelerator.unwrap_model(model)


def accrue_losses(run):
    losses = []
    for line in (run / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event.get("kind") == "update":
            losses.append(event["loss"])
    return losses


def check(accrue, name, work, tokens):
    import torch
    from transformers import AutoModelForCausalLM

    spec, run, out = work / f"{name}.accrue", work / f"{name}-run", work / f"{name}-out"
    spec.write_text(SPEC.format(weights=work / name, context=CONTEXT, rate=RATE, steps=STEPS, samples=SAMPLES, updates=UPDATES))
    subprocess.run([accrue, "run", spec, "--quiet", "--out", run], check=True, stdout=subprocess.DEVNULL)
    ours = accrue_losses(run)
    theirs, trained = accelerate_losses(work / name, tokens)
    assert len(ours) == UPDATES, (name, len(ours))
    worst = max(abs(a - b) / b for a, b in zip(ours, theirs))
    assert worst <= LOSSES, f"{name}: losses differ by {worst:.2e} of themselves"
    subprocess.run([accrue, "export", run, "--to", "huggingface", "--out", out], check=True, stdout=subprocess.DEVNULL)
    opened, said = AutoModelForCausalLM.from_pretrained(out, output_loading_info=True)
    for kind, names in said.items():
        assert not names, f"{name}: transformers says {kind}: {names}"
    assert opened.config.model_type in (trained.config.model_type, "llama"), opened.config.model_type
    expected = dict(trained.named_parameters())
    start = dict(AutoModelForCausalLM.from_pretrained(work / name).named_parameters())
    moved = max(((expected[each] - start[each]).abs().max() / start[each].abs().max()).item() for each in expected)
    assert moved > 100 * WEIGHTS, f"{name}: training moves weights by {moved:.1e}, so that equal ones say nothing"
    for each, parameter in opened.named_parameters():
        wanted = expected[each].detach()[: parameter.shape[0]]  # positions beyond the context are left out
        off = (parameter - wanted).abs().max().item()
        assert off <= WEIGHTS * wanted.abs().max().item(), f"{name}: {each} differs by {off}"
    print(f"{name}: losses to {worst:.1e}, exported and opened", flush=True)


def made_tokenizer(folder, lines):
    """Trains a tokenizer of byte pairs with Llama 3's words on the lines, and writes its files."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(words), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=320, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<|endoftext|>"])
    tokenizer.train_from_iterator(lines, trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>").save_pretrained(folder)


def check_fine_tune(accrue, source, work):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

    pairs = [{"prompt": f"What is {a} plus {b}?\n", "completion": f"{a} plus {b} is {a + b}."} for a in range(12) for b in range(9)]
    (work / "chat.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    made_tokenizer(work / "published", [text for pair in pairs for text in pair.values()])
    size = len(AutoTokenizer.from_pretrained(work / "published"))
    GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=48, n_head=4, n_positions=64, vocab_size=size, bos_token_id=0, eos_token_id=0)).save_pretrained(work / "published")

    def run(command):
        path = f"{pathlib.Path(accrue).parent}:{os.environ['PATH']}"
        done = subprocess.run(command, shell=True, cwd=source, env={**os.environ, "PATH": path}, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"

    build = f"accrue-run data build {work}/NAME.jsonl --out {work}/NAME --tokenizer {work}/published --prompt-key prompt --json-keys completion --append-eod"
    run(build.replace("NAME", "chat"))
    # One sample, so that its place in a row is known: the prompt, the answer and the token that ends it.
    (work / "held.jsonl").write_text(json.dumps(pairs[50]) + "\n")
    run(build.replace("NAME", "held"))
    facts = json.loads(subprocess.run([accrue, "data", "show", work / "held", "--json"], capture_output=True, text=True, check=True).stdout)
    run(f"echo 'accrue = 1' > {work}/tune.accrue")
    run(f"accrue-run run {work}/tune.accrue --set model.init=checkpoint --set model.weights={work}/published --set data.kind=indexed"
        f" --set 'data.paths=[\"{work}/chat\"]' --set 'data.validation_paths=[\"{work}/held\"]' --set model.context={facts['tokens'] - 1}"
        f" --set evaluate.every_updates=10 --set accumulation.steps=4 --set run.updates=40 --set optimizer.lr=0.01 --out {work}/tuned")
    run(f"accrue-run export {work}/tuned --to huggingface --out {work}/given")

    events = [json.loads(line) for line in (work / "tuned/events.jsonl").read_text().splitlines()]
    evaluations = [event for event in events if event["kind"] == "evaluation"]
    tokenizer, model = AutoTokenizer.from_pretrained(work / "given"), AutoModelForCausalLM.from_pretrained(work / "given").eval()
    prompt = tokenizer(pairs[50]["prompt"], add_special_tokens=False).input_ids
    answer = tokenizer(pairs[50]["completion"], add_special_tokens=False).input_ids + [tokenizer.eos_token_id]
    tokens = torch.tensor(prompt + answer)
    assert len(tokens) == facts["tokens"] and len(prompt) == facts["prompt_tokens"], facts
    with torch.no_grad():
        logits = model(tokens[None, :-1]).logits[0]
    loss = torch.nn.functional.cross_entropy(logits[len(prompt) - 1 :], tokens[len(prompt) :]).item()
    off = abs(evaluations[-1]["loss"] - loss) / loss
    assert evaluations[-1]["tokens"] == len(answer) and off <= LOSSES, (evaluations[-1], loss)
    assert evaluations[-1]["loss"] < evaluations[0]["loss"] < 5.0, evaluations
    print(f"fine-tune: the answer's loss is {loss:.4f} there and here, to {off:.1e}", flush=True)


def main(accrue, source):
    python = pathlib.Path(source) / "build/python-tools/bin/python"
    if not python.exists():
        print("skipped: the environment is missing; tests/support/python_tools.py makes it")
        return 77
    if pathlib.Path(sys.prefix) != python.parent.parent:
        os.execv(python, [str(python), *sys.argv])
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        sys.path.insert(0, str(pathlib.Path(__file__).parent))
        import make_huggingface_models

        torch.manual_seed(3)
        tokens = torch.randint(0, 71, (UPDATES * STEPS * SAMPLES * CONTEXT + 1,))
        (work / "tokens.u16").write_bytes(tokens.to(torch.uint16).numpy().tobytes())
        for name in make_huggingface_models.MODELS:
            make_huggingface_models.make(name, work)
            check(accrue, name, work, tokens)
        check_fine_tune(accrue, source, work)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
