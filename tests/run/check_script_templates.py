#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The templates of resources/export are Python as they stand, and scripts made of them are whole.

    check_script_templates.py ACCRUE_RUN SOURCE

Each template and each script compiles without a warning, no placeholder (_DTYPE_) is left in a script, each name that a
script uses is defined and each module that it imports is used, each text is one that a file can be named by, and each
block of a template reaches a script of one of the specs below.
"""
import ast
import builtins
import itertools
import pathlib
import re
import subprocess
import symtable
import sys
import tempfile
import warnings

TOOLS = ["pytorch", "accelerate", "lightning"]
MLP = """accrue = 1
[model]
kind = "mlp"
inputs = 5
outputs = 3
hidden = [16, 8]
[data]
kind = "synthetic"
samples = 75
[optimizer]
kind = "sgd"
[accumulation]
steps = 4
micro_batch = 4
[run]
updates = 20
"""
GPT = MLP.replace('"mlp"', '"gpt"').replace('"sgd"', '"adamw"').replace("inputs = 5\noutputs = 3\nhidden = [16, 8]", "layers = 2\nwidth = 32\nheads = 4\ncontext = 16\nvocabulary = 256")
LABELS = ["model.loss=cross_entropy"]
CSV = ["data.kind=csv", "data.path=table.csv", 'data.label_columns=["y", "3", "b"]']
CHANGES = [
    [GPT, "parallel.data=2"],
    [GPT, "parallel.data=2", "accumulation.uneven_ranks=repeat"],
    [GPT, "parallel.data=2", "accumulation.uneven_ranks=repeat", "data.shuffle=false"],
    [GPT, "model.init=normal", "data.shuffle=false", "data.kind=text", "data.path=text.txt"],
    [GPT, "model.init=zeros", "model.dropout=0.1", "data.kind=tokens", "data.path=zeros.bin", "data.token_type=uint32"],
    [MLP, "model.init=zeros", "model.dtype=float64", "model.activation=tanh", "model.batch_norm=true", "model.bias=false"],
    [MLP, "model.activation=tanh"],
    [MLP, "model.batch_norm=true"],
    [MLP, "model.init=normal", "optimizer.weight_decay=0.1", 'optimizer.no_decay=["*.bias"]'],
    [MLP, "model.kind=linear", "model.init=values", "model.bias=false", "model.values=" + str([0.5] * 15)],
    [MLP, *LABELS, "optimizer.clip_norm=1", "parallel.data=2"],
    [MLP, *CSV, "optimizer.clip_norm=1", "accumulation.clip_kind=value"],
    [MLP, "optimizer.kind=adam", 'optimizer.scaled_lr=["layers.1.*"]', "optimizer.lr_mult=0.5"],
    [MLP, 'optimizer.scaled_lr=["*"]', "optimizer.lr_mult=0.5"],
    [MLP, "run.name=recoding: a baseline"],
    [MLP, "data.kind=csv", "data.path=caf\u00e9 \U0001f600.csv", 'data.label_columns=["y"]', "model.outputs=1"],
    *([MLP, "schedule.kind=" + kind, "schedule.warmup=3"] for kind in ["linear", "cosine", "inverse-square-root", "exponential"]),
    [MLP, "schedule.kind=exponential", "schedule.gamma=0.97", "schedule.min_lr=0.001"],
    *([MLP, "schedule.kind=WSD", "schedule.decay_tail=" + tail] for tail in ["linear", "cosine", "exponential", "minus-square-root"]),
    *([MLP, "accumulation.dialect=" + dialect, "schedule.warmup=3", "parallel.data=2"] for dialect in ["llm", "colossalai", "accelerate", "mmengine"]),
    *([MLP, "accumulation.normalizer=" + by, "parallel.data=2"] for by in ["none", "steps", "true_size", "samples", "tokens"]),
    *([GPT, "accumulation.normalizer=" + by, "accumulation.normalizer_scope=rank", "parallel.data=2"] for by in ["samples", "tokens"]),
    *([MLP, "accumulation.normalizer=" + by, "accumulation.reduce_op=sum", "parallel.data=2"] for by in ["none", "steps", "true_size"]),
]


def scripts(accrue_run, source, work):
    """Yields the text of every script, with its name."""
    (work / "text.txt").write_text("A text of some length, so that windows of it differ. " * 400)
    (work / "zeros.bin").write_bytes(bytes(32768))
    table = "a,b,c,d,e,f,g,y\n" + "".join(f"{row},1,2,3,4,5,6,{row % 7}\n" for row in range(40))
    (work / "table.csv").write_text(table)
    (work / "caf\u00e9 \U0001f600.csv").write_text(table.replace(",e,f", "").replace(",4,5", ""))
    specs = [(preset, []) for preset in sorted((source / "resources/presets").glob("*.accrue"))]
    for number, (text, *changes) in enumerate(CHANGES):
        spec = work / f"{number}.accrue"
        spec.write_text(text)
        specs.append((spec, changes))
    for (spec, changes), tool in itertools.product(specs, TOOLS):
        sets = [part for each in changes for part in ("--set", each)]
        done = subprocess.run([accrue_run, "export", spec, "--to", tool, *sets], capture_output=True, text=True)
        name = " ".join([spec.name, *changes, "to", tool])
        if done.returncode == 0:
            yield name, done.stdout
        elif changes:  # presets have models that scripts do not
            sys.exit(f"FAILED: {name}:\n{done.stderr}")


def faults(text):
    """Yields what compiles and fails later, or serves nothing: names without a value, modules without a use, texts that
    are not Unicode."""
    script = symtable.symtable(text, "script", "exec")
    scopes = [script]
    for scope in scopes:
        scopes += scope.get_children()
    used = {each.get_name() for scope in scopes for each in scope.get_symbols() if each.is_global() and each.is_referenced()}
    imported = {each.get_name() for each in script.get_symbols() if each.is_imported()}
    defined = {each.get_name() for each in script.get_symbols() if each.is_assigned()} | imported
    yield from (f"{name} has no value" for name in sorted(used - defined - set(dir(builtins))))
    yield from (f"{name} is imported and not used" for name in sorted(imported - used))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search("[\ud800-\udfff]", node.value):
            yield f"{node.value!a} is not Unicode"


def blocks(template):
    """The lines of each block that no placeholder fills."""
    for block in re.split(r"^# %%", template, flags=re.M)[1:]:
        name, *lines = block.splitlines()
        yield name.strip(), [line for line in lines if line.strip() and not re.search(r"\b_[A-Z0-9_]+_\b", line)]


def main():
    accrue_run, source = sys.argv[1], pathlib.Path(sys.argv[2])
    templates = sorted((source / "resources/export").glob("*.py"))
    made = ""
    warnings.simplefilter("error")
    for template in templates:
        compile(template.read_text(), template, "exec")
    with tempfile.TemporaryDirectory() as work:
        for name, text in scripts(accrue_run, source, pathlib.Path(work)):
            compile(text.encode(), name, "exec")
            for fault in faults(text):
                sys.exit(f"FAILED: {name}: {fault}")
            if left := re.search(r"\b_[A-Z0-9_]+_\b|^# %%.*", text, flags=re.M):
                sys.exit(f"FAILED: {name}: {left[0]} is left in the script")
            made += text
    lines = set(made.splitlines())
    for template in templates:
        for name, fixed in blocks(template.read_text()):
            missing = [line for line in fixed if line not in lines]
            if missing and name != "device=cuda":  # a spec for a device is refused where there is none
                sys.exit(f"FAILED: {template.name}, block {name}: no script has the line\n{missing[0]}")
    print(f"{len(templates)} templates, {made.count('#!/usr/bin/env')} scripts")


if __name__ == "__main__":
    main()
