#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds accrue-tokenize against the real tokenizers on a hostile corpus.

    check_tokenizers.py ACCRUE_TOKENIZE SOURCE

Each tokenizer is trained by tokenizers with the steps of a published family, and saved as tokenizer.json. For every line of a corpus of many scripts,
marks, spaces, digits and random characters, both give the same tokens. Without the environment of python_tools.py the test is skipped, and says how to
make it.
"""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

GPT4 = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"

LINES = [
    "The cat isn't on the  mat;\n\n the other cats are. DON'T we'LL I'M You'Re it\u2019s \u017Fie'\u017F",
    "   leading and trailing   ", "\t\ttabs\tand\r\nWindows\r\n\r\nends \r alone", "\n", " ", "   \n  \n x", "a" * 300, "ab " * 200,
    "1 12 123 1234 12345 3.14159 1,000,000 0x1F \u0661\u0662\u0663 \u0967\u0968 \u2167 \u00BD \u00B2 \u2460 \U0001D7D8",
    "\u00DCber \u00C9T\u00C9 e\u0301 a\u0308\u0323 \u1E69 s\u0323\u0307 \u212B \u2126 \uFB01 \uFF21\uFF22 \uFF11 \u3392 \u33A5 \u2474",
    "\u0130stanbul I\u0131 \u1E9E stra\u00DFe STRASSE \u01C5 \u01F2 \u03A3\u03AF\u03C3\u03C5\u03C6\u03BF\u03C2 \u039F\u0394\u03A5\u03A3\u03A3\u0395\u03A5\u03A3",
    "\u65E5\u672C\u8A9E\u3068\u4E2D\u6587\u3002\u6DF7\u5728\uFF01 \u3000\u5168\u89D2 \uD55C\uAD6D\uC5B4 \u1112\u1161\u11AB \u0E44\u0E17\u0E22 \u0928\u092E\u0938\u094D\u0924\u0947 \u05E9\u05DC\u05D5\u05DD \u0645\u0631\u062D\u0628\u0627",
    "\U0001F469\u200D\U0001F469\u200D\U0001F467 \U0001F1E9\U0001F1EA \u2764\uFE0F \U0001F44D\U0001F3FD \U00020000 \U0002B830 \U0010FFFD \uE000 \u00AD \u200B \uFEFF \u2028 \u2029",
    "\x01\x02 \x7F \x85 \xA0 \u1680 \u2003 \u202F \u205F nb\xA0space", "!!!???... --- ___ ### /* */ // << >> => != `~` \\ | \" '' \u201Cq\u201D \u00ABg\u00BB \u2026\u2014\u2013",
    "if (x<0) {\n    return  -x;\n}\n\n\n\t// end\n", "https://a.b/c?d=e&f=%20#g me@x.org @user #tag $9.99 50% C++ C# A&B",
    "<|endoftext|>", "x<|endoftext|>y", " <|endoftext|> ", "a <mask> b<mask>c  <mask>  d", "<s>a</s>", "word<extra_id_0>word <extra_id_1>", "[CLS] a [MASK] b[SEP]",
    "xalonex alone alone. _alone", "trail   <r>   ing", "\u2581under \u2581 \u2581\u2581x", "<0x41> <0xZZ>", "\u00E9\u0301\u0301\u0301\u0301\u0301x", "e" + "\u0301" * 40,
]


def random_lines(count):
    draw = random.Random(20261129)
    blocks = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F),
              (0x2070, 0x218F), (0x3000, 0x30FF), (0x4E00, 0x4FFF), (0xAC00, 0xACFF), (0xFB00, 0xFB4F), (0xFF00, 0xFFEF), (0x1F300, 0x1F64F), (0x9, 0xD)]
    for _ in range(count):
        chosen = draw.sample(blocks, 3) + [(0x20, 0x7E), (0x20, 0x20)]
        yield "".join(chr(draw.randint(*draw.choice(chosen))) for _ in range(draw.randint(1, 60)))


def field_of(message, number):
    """A field of bytes of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        size = varint() if key & 7 in (0, 2) else {1: 8, 5: 4}[key & 7]
        if key == number << 3 | 2:
            return message[at : at + size]
        at += size if key & 7 else 0
    return b""


def rules_of_sentencepiece(name, corpus, work):
    """What the trainer of sentencepiece writes into its models as rules for normalising texts."""
    import sentencepiece

    prefix = pathlib.Path(work) / name
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus), model_prefix=str(prefix), vocab_size=200, hard_vocab_limit=False, minloglevel=2,
                                             normalization_rule_name=name)
    return field_of(field_of(prefix.with_suffix(".model").read_bytes(), 3), 2)


class Ours:
    """accrue-tokenize over its pipe: a letter and a count in 8 bytes; the answer begins with a count."""

    def __init__(self, program, file):
        self.process = subprocess.Popen([program, "json", file], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.facts = json.loads(self.process.stdout.readline())
        assert "error" not in self.facts, self.facts

    def number(self):
        return struct.unpack("<Q", self.process.stdout.read(8))[0]

    def ask(self, letter, count, body):
        self.process.stdin.write(letter + struct.pack("<Q", count) + body)
        self.process.stdin.flush()

    def encode(self, text):
        body = text.encode()
        self.ask(b"e", len(body), body)
        count = self.number()
        if count == 2**64 - 1:
            return self.process.stdout.read(self.number()).decode()
        tokens = list(struct.unpack(f"<{count}i", self.process.stdout.read(4 * count)))
        self.number()
        return tokens

    def decode(self, tokens):
        self.ask(b"d", len(tokens), struct.pack(f"<{len(tokens)}i", *tokens))
        return self.process.stdout.read(self.number())


def families(corpus, work):
    """Name, tokenizer, and whether its tokens hold every byte of a text."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    def trained(tokenizer, trainer):
        tokenizer.train_from_iterator(corpus, trainer)
        return tokenizer

    def of_bytes(words, normalizer=None, **options):
        tokenizer = Tokenizer(models.BPE(**options))
        tokenizer.pre_tokenizer = words
        if normalizer:
            tokenizer.normalizer = normalizer
        suffix = {"end_of_word_suffix": options["end_of_word_suffix"]} if "end_of_word_suffix" in options else {}
        return trained(tokenizer, trainers.BpeTrainer(vocab_size=700, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                      special_tokens=["<|endoftext|>"], **suffix))

    def split(pattern, behavior="isolated", invert=False):
        return pre_tokenizers.Split(Regex(pattern), behavior, invert)

    plain = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    in_turn = pre_tokenizers.Sequence
    yield "gpt2", of_bytes(pre_tokenizers.ByteLevel(add_prefix_space=False)), True
    roberta = of_bytes(pre_tokenizers.ByteLevel(add_prefix_space=True))
    roberta.add_special_tokens([AddedToken("<mask>", lstrip=True), "<s>", "</s>"])
    roberta.add_tokens([AddedToken("alone", single_word=True), AddedToken("<r>", rstrip=True, lstrip=True), AddedToken("cats"), AddedToken("cat")])
    yield "roberta", roberta, False
    yield "llama3", of_bytes(in_turn([split(LLAMA3), plain]), ignore_merges=True), True
    yield "qwen2", of_bytes(in_turn([split(QWEN2), plain]), normalizers.NFC()), False
    yield "gpt4", of_bytes(in_turn([split(GPT4), plain])), True
    yield "starcoder", of_bytes(in_turn([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=True)])), False
    yield "bloom", of_bytes(in_turn([split(BLOOM), plain])), True
    yield "deepseek", of_bytes(in_turn([split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(LLAMA3), plain])), True
    clip = of_bytes(in_turn([split(CLIP, "removed", True), plain]), normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
                    end_of_word_suffix="</w>", unk_token="<|endoftext|>")
    yield "clip", clip, False
    yield "digits", of_bytes(in_turn([pre_tokenizers.Punctuation("merged_with_previous"), pre_tokenizers.Digits(False), split(" ", "merged_with_next"), plain])), True

    def of_characters(normalizer, words, fuse):
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse, byte_fallback=True))
        if normalizer:
            tokenizer.normalizer = normalizer
        if words:
            tokenizer.pre_tokenizer = words
        special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
        train = Tokenizer(models.BPE(unk_token="<unk>"))
        train.pre_tokenizer = pre_tokenizers.Metaspace()
        trained(train, trainers.BpeTrainer(vocab_size=800, show_progress=False, special_tokens=special, limit_alphabet=150))
        model = json.loads(train.to_str())["model"]
        tokenizer.model = models.BPE(vocab=model["vocab"], merges=[tuple(each) for each in model["merges"]], unk_token="<unk>", fuse_unk=fuse, byte_fallback=True)
        tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
        return tokenizer

    llama2 = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    yield "llama2", of_characters(llama2, None, True), False
    yield "mistral", of_characters(None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), True), False
    yield "gemma", of_characters(normalizers.Replace(" ", "\u2581"), pre_tokenizers.Split(" ", "merged_with_previous"), False), False

    def unigram(normalizer, words, **options):
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, words
        trainer = trainers.UnigramTrainer(vocab_size=900, show_progress=False, unk_token="<unk>", special_tokens=["<pad>", "</s>", "<unk>"] + [f"<extra_id_{i}>" for i in range(3)])
        tokenizer.train_from_iterator(LINES + [line for line in corpus if line.isascii()], trainer)
        if options:
            model = json.loads(tokenizer.to_str())["model"]
            vocabulary = [tuple(each) for each in model["vocab"]] + [(f"<0x{byte:02X}>", -30.0) for byte in range(256)]
            tokenizer.model = models.Unigram(vocabulary, model["unk_id"], True)
        return tokenizer

    in_words = in_turn([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    yield "albert", unigram(normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Replace(Regex(" {2,}"), " ")]),
                            in_words), False
    for name in ("nmt_nfkc", "nfkc_cf"):
        rules = normalizers.Precompiled(rules_of_sentencepiece(name, [line for line in corpus if line.isascii()], work))
        yield f"t5, {name}", unigram(rules, in_words), False
    yield "xlm", unigram(normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()]), pre_tokenizers.Metaspace(prepend_scheme="always")), False
    yield "bytes for the unknown", unigram(normalizers.NFC(), pre_tokenizers.Metaspace(prepend_scheme="never"), byte_fallback=True), False

    def word_piece(lower, accents=None, words=None):
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=accents)
        tokenizer.pre_tokenizer = words or pre_tokenizers.BertPreTokenizer()
        return trained(tokenizer, trainers.WordPieceTrainer(vocab_size=600, show_progress=False, limit_alphabet=200, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))

    yield "bert uncased", word_piece(True), False
    yield "bert cased", word_piece(False), False
    yield "bert with accents", word_piece(True, False, in_turn([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous")])), False
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    words.pre_tokenizer = in_turn([pre_tokenizers.Whitespace(), pre_tokenizers.CharDelimiterSplit("_")])
    yield "words", trained(words, trainers.WordLevelTrainer(special_tokens=["[UNK]", "[PAD]"], show_progress=False)), False


def check(program, name, tokenizer, holds_bytes, corpus, work):
    file = pathlib.Path(work) / f"{name}.json"
    tokenizer.save(str(file))
    ours = Ours(program, file)
    assert ours.facts["vocabulary"] == tokenizer.get_vocab_size(), (name, ours.facts["vocabulary"], tokenizer.get_vocab_size())
    wrong = 0
    for line in corpus:
        theirs, tokens = tokenizer.encode(line, add_special_tokens=False).ids, ours.encode(line)
        if theirs != tokens:
            wrong += 1
            if wrong <= 3:
                print(f"{name}: {line!r}\n  tokenizers {theirs}\n  accrue     {tokens}")
        elif holds_bytes and ours.decode(tokens) != line.encode():
            wrong += 1
            print(f"{name}: {line!r} becomes {ours.decode(tokens)!r}")
    print(f"{name}: {len(corpus) - wrong} of {len(corpus)} lines equal")
    return wrong


def main():
    program, source = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    python = source / "build/python-tools/bin/python"
    if not python.exists():
        print("skipped: the environment is missing; tests/support/python_tools.py makes it")
        return 77
    if pathlib.Path(sys.prefix) != python.parent.parent:
        os.execv(python, [str(python), *sys.argv])
    texts = [(source / name).read_text() for name in ("README.md", "LICENSE-Apache-2.0.txt", "resources/manual/glossary.md")]
    corpus = LINES + list(random_lines(1500)) + [line for text in texts for line in text.split("\n") if line]
    with tempfile.TemporaryDirectory() as work:
        wrong = sum(check(program, name, tokenizer, holds_bytes, corpus, work) for name, tokenizer, holds_bytes in families(LINES * 3 + corpus, work))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
