#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a text to a model that continues it, on the command line: trained on two ranks that share every layer, the final weights give back the rhyme.
#   check_generate.sh ACCRUE_RUN SOURCE_TREE
set -euo pipefail
accrue_run=$1 sources=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { printf 'FAILED: %s\n' "$*"; exit 1; }

for i in $(seq 40); do
  printf 'One, two, three, four, five, once I caught a fish alive. Six, seven, eight, nine, ten, then I let it go again. '
done >"$folder/rhyme.txt"
cat >"$folder/rhyme.accrue" <<SPEC
accrue = 1
[model]
kind = "gpt"
layers = 2
width = 64
heads = 4
context = 32
[data]
kind = "text"
path = "rhyme.txt"
[optimizer]
lr = 0.003
clip_norm = 1.0
[accumulation]
steps = 2
micro_batch = 4
[parallel]
tensor = 2
[run]
updates = 400
SPEC
"$accrue_run" run "$folder/rhyme.accrue" --out "$folder/run" --quiet >/dev/null
text=$("$accrue_run" generate "$folder/run" --prompt 'Six, seven, ' --length 18 --top-k 1)
printf '%s\n' "$text"
[ "$text" = 'Six, seven, eight, nine, ten, th' ] || fail "not the rhyme: $text"

drawn() { "$accrue_run" generate "$folder/run" --prompt 'One, ' --length 25 --temperature 3 "$@"; }
[ "$(drawn --seed 1)" = "$(drawn --seed 1)" ] || fail 'one seed gave two texts'
[ "$(drawn --seed 1)" != "$(drawn --seed 2)" ] || fail 'two seeds gave one text'
[ "$("$accrue_run" generate "$folder/run" --tokens 83,105,120 --length 5 --top-k 1)" = '83,105,120,44,32,115,101,118' ] || fail 'tokens do not go on'
beam=$("$accrue_run" generate "$folder/run" --prompt 'once I ' --length 8 --beams 3)
[ "$beam" = 'once I caught a ' ] || fail "the beam found: $beam"

cut() { "$accrue_run" generate "$folder/run" --prompt 'Six, seven, ' --top-k 1 "$@" 2>&1 >/dev/null; }
[ "$(cut --length 200)" = "note: 20 of 200 tokens were added: the model's context is 32 tokens" ] || fail "a text cut short: $(cut --length 200)"
[ -z "$(cut --length 20)" ] || fail "a text that fits: $(cut --length 20)"

refused() { # STATUS WORD ARGUMENT...: says the word and ends so
  local status=$1 word=$2 said code=0; shift 2
  said=$("$accrue_run" generate "$@" 2>&1 >/dev/null) || code=$?
  [ "$code" = "$status" ] && [[ $said == *"$word"* ]] || fail "$* ended with $code and said: $said"
}
refused 2 'the model takes 32' "$folder/run" --prompt "$(printf 'x%.0s' $(seq 40))"
refused 2 'temperature' "$folder/run" --prompt x --temperature 0
refused 2 '--top-k' "$folder/run" --prompt x --top-k 2 --top-p 0.5
refused 2 'no token' "$folder/run" --tokens 256
refused 2 '--prompt' "$folder/run"
refused 2 'accrue-run: command line: give --prompt TEXT or --tokens IDS' "$folder/run"
refused 2 'the prompt is empty' "$folder/run" --prompt ''
refused 2 'spec.toml' "$folder" --prompt x

# The Megatron-LM plug-in's preset, by its fields, on the rhyme: as many micro-steps, on less of a model.
"$accrue_run" run "$sources/resources/presets/megatron-gpt.accrue" --out "$folder/megatron" --quiet --set "data.path=\"$folder/rhyme.txt\"" \
  --set model.layers=2 --set model.context=32 --set megatron.train_iters=600 --set megatron.num_micro_batches=1 --set megatron.eval_interval=300 >/dev/null
text=$("$accrue_run" generate "$folder/megatron" --prompt 'alive. Six, seven, ' --length 12 --top-k 1)
[ "$text" = 'alive. Six, seven, eight, nine, ' ] || fail "not the rhyme, of the plug-in's preset: $text"
ls "$folder/megatron/board"/events.out.tfevents.* >/dev/null || fail 'tensorboard_dir has no event file'

# Words of a tokenizer: text in and text out, by the vocabulary that the dataset was built with.
words='the cat saw a mat and one dog run far off'
{ printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n'; tr ' ' '\n' <<<"${words/ saw/ sa}"; printf '##w\n.\n'; } >"$folder/vocab.txt"
for i in $(seq 30); do printf '%s. ' "$words"; done >"$folder/cats.txt"
(cd "$folder" && "$accrue_run" data build cats.txt --out cats --tokenizer wordpiece:vocab.txt >/dev/null)
"$accrue_run" run "$folder/rhyme.accrue" --out "$folder/words" --quiet --set data.kind=indexed --set 'data.paths=["cats"]' --set model.vocabulary=20 \
  --set model.context=16 --set parallel.tensor=1 --set run.updates=150 >/dev/null
continued() { "$accrue_run" generate "$folder/words" --prompt 'The cat' --length 6 --top-k 1 "$@"; }
[ "$(continued)" = 'the cat saw a mat and one' ] || fail "not the words: $(continued)"
mv "$folder/vocab.txt" "$folder/moved.txt"
refused 2 '--tokenizer KIND:FILE' "$folder/words" --prompt 'The cat'
[ "$(continued --tokenizer "wordpiece:$folder/moved.txt")" = 'the cat saw a mat and one' ] || fail 'the vocabulary was not found again'
printf 'more\n' >>"$folder/moved.txt"
refused 2 'the file differs' "$folder/words" --prompt 'The cat' --tokenizer "wordpiece:$folder/moved.txt"

rm "$folder/run/final/model.safetensors"
refused 5 'model.safetensors' "$folder/run" --prompt x

# A run that was stopped on its way says so.
"$accrue_run" run "$folder/rhyme.accrue" --out "$folder/stopped" --quiet --paused >/dev/null 2>&1 &
for _ in $(seq 300); do "$accrue_run" step "$folder/stopped" --update >/dev/null 2>&1 && break; sleep 0.1; done
"$accrue_run" stop "$folder/stopped" >/dev/null
wait $! || true
refused 2 'no final weights yet: stopped after' "$folder/stopped" --prompt x
refused 2 'accrue-run resume' "$folder/stopped" --prompt x
