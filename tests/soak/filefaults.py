# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults in what is read: files with bytes changed, moved or gone, databases that are not what they seem."""
import gzip
import json
import os
import resource
import shutil
import sqlite3
import unicodedata

from faults import VIRTUAL, design, fault
from workplace import Broken, require, require_answer


def mutated(random, content):
    """The same with some of its bytes changed, moved, doubled or gone."""
    content = bytearray(content)
    for _ in range(random.choice([1, 1, 2, 8, 64])):
        if not content:
            break
        at = random.randrange(len(content))
        length = min(len(content) - at, random.choice([1, 2, 8, 64, 4096]))
        kind = random.randrange(6)
        if kind == 0:
            content[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            del content[at:at + length]
        elif kind == 2:
            content[at:at] = content[at:at + length]
        elif kind == 3:
            content[at:at + length] = random.randbytes(length)
        elif kind == 4:
            other = random.randrange(len(content))
            content[at:at + length] = content[other:other + length]
        else:
            content[at:at + length] = random.choice([b"-1", b"1e308", b"9223372036854775807", b"null", b"\0",
                                                     b"\x1b[2J"])
    return bytes(content)


def inputs(work, random):
    """A right input, and the commands that read it."""
    design(work, random, devices=2)
    kind = random.choice(["design", "trace", "chrome", "gzip", "csv", "table", "model", "views"])
    if kind == "design":
        return "design.json", [["predict", "IT"], ["check", "IT", "--for", "host"],
                               ["render", "IT", "-o", "out.svg", "--force"],
                               ["export", "IT", "--to", "chrome", "-o", "out", "--force"],
                               ["run", "IT", "--backend", "host", *VIRTUAL, "--steps", "1", "-o", "out.db", "--force",
                                "--deadline", "5s"]]
    if kind in ("trace", "views"):
        work.make("run", "design.json", "--backend", "host", *VIRTUAL, "--steps", "3", "-o", "trace.db")
        if kind == "views":
            with sqlite3.connect(work.path("trace.db")) as database:
                table = random.choice(["RECORDS", "STEPS", "TASKS", "META", "MEMORY", "DEVICES"])
                columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
                database.execute(f"ALTER TABLE {table} RENAME TO MINE")
                endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
                database.execute(f"CREATE VIEW {table} AS {endless} SELECT "
                                 f"{', '.join('i AS ' + column for column in columns)} FROM n")
            database.close()
        return "trace.db", [["explain", "IT"], ["compare", "design.json", "IT"], ["query", "IT", "--schema"],
                            ["query", "IT", "SELECT count(*) FROM RECORDS"],
                            ["calibrate", "design.json", "IT", "-o", "out.json", "--force"],
                            ["export", "IT", "--to", "html", "-o", "out", "--force"]]
    if kind in ("chrome", "gzip"):
        work.make("export", "design.json", "--to", "chrome", "-o", "chrome.json")
        name = "chrome.json"
        if kind == "gzip":
            name = "chrome.json.gz"
            with open(work.path("chrome.json"), "rb") as plain, gzip.open(work.path(name), "wb") as packed:
                shutil.copyfileobj(plain, packed)
        return name, [["import", "IT", "-o", "out.db", "--force"]]
    if kind == "csv":
        work.make("new", "1f1b", "--devices", "2", "--microbatches", "4", "-o", "plain.json")
        written = random.choice(["pytorch-csv", "pytorch-comms-csv"])
        work.make("export", "plain.json", "--to", written, "-o", "order.csv")
        return "order.csv", [["import", "IT", "-o", "out.json", "--force"]]
    if kind == "table":
        with open(work.path("layers.csv"), "w", encoding="utf-8") as file:
            file.write("layer,forward,input_grad,weight_grad,saved,parameters,output\n")
            for layer in range(6):
                file.write(f"layer {layer},1ms,2ms,1ms,1MiB,1000,64KiB\n")
        return "layers.csv", [["predict", "1f1b", "--devices", "2", "--microbatches", "4", "--model", "./IT"]]
    with open(work.path("config.json"), "w", encoding="utf-8") as file:
        json.dump({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
                   "num_key_value_heads": 2, "num_hidden_layers": 4, "vocab_size": 256, "max_position_embeddings": 128,
                   "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu"}, file)
    return "config.json", [["predict", "1f1b", "--devices", "2", "--microbatches", "4", "--model", "./IT"]]


def obeyed(character):
    """Whether a terminal may do more with it than show it."""
    return character not in "\n\t" and (
        unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs")
        or unicodedata.bidirectional(character) in ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"))


@fault
def damaged_file(work, random):
    """A hostile file costs a bounded time and memory; the smallest damage that shows a failure is kept."""
    name, candidates = inputs(work, random)
    with open(work.path(name), "rb") as file:
        right = file.read()
    bad = mutated(random, right)
    words = random.choice(candidates)

    def try_with(content):
        damaged = "damaged-" + name
        with open(work.path(damaged), "wb") as file:
            file.write(content)
        for ending in ("-wal", "-shm"):
            if os.path.exists(work.path(damaged + ending)):
                os.unlink(work.path(damaged + ending))
        work.fault("command")
        outcome = work.run(*[word.replace("IT", damaged) for word in words], within=30,
                           limits={resource.RLIMIT_AS: 6 << 30})
        require_answer(outcome)
        require(not any(map(obeyed, outcome.out + outcome.err)), "an escape code reached the terminal")

    try:
        try_with(bad)
    except Broken as broken:
        raise Broken(f"{broken} (smallest: {minimised(bad, right, try_with)} bytes differ or are gone)") from broken


def minimised(bad, right, try_with, tries=40):
    """Puts as many stretches right again as the failure survives; leaves the smallest damage in the folder."""
    if len(bad) == len(right):
        wrong = [i for i in range(len(bad)) if bad[i] != right[i]]
        width = len(wrong)
        while width >= 1 and tries > 0:
            for at in range(0, len(wrong), width):
                candidate = bytearray(bad)
                for i in wrong[at:at + width]:
                    candidate[i] = right[i]
                tries -= 1
                try:
                    try_with(bytes(candidate))
                except Broken:
                    bad = bytes(candidate)
                    wrong = wrong[:at] + wrong[at + width:]
                    break
                if tries <= 0:
                    break
            else:
                width //= 2
        try:
            try_with(bad)
        except Broken:
            pass
        return len(wrong)
    return abs(len(bad) - len(right))
