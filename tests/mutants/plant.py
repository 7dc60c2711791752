#!/usr/bin/env python3
"""Writes a copy of a source file with mistakes in it, of which the environment brings at most one to life.

usage: plant.py SOURCE MISTAKES OUT

MISTAKES has one after the other: a line with its name, the lines of an expression that is in SOURCE exactly once, after
"- ", and the lines of the one to plant, after "+ ". Both must have the same type. Lines with # are remarks.
"""
import sys


def read(path):
    """(name, expression, mistake) in the order of the file."""
    found = []
    for block in open(path).read().split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        part = {mark: "\n".join(line[2:] for line in lines if line.startswith(mark)) for mark in ("- ", "+ ")}
        names = [line for line in lines if line[:2] not in part]
        if not lines:
            continue
        if len(names) != 1 or not all(part.values()):
            sys.exit(f"{path}: expected a name, lines with - and lines with +, found\n{block}")
        found.append((names[0], part["- "], part["+ "]))
    return found


def plant(source, mistakes):
    """The source, every expression that has mistakes turned into a choice between it and them."""
    chosen = {}
    for name, expression, mistake in mistakes:
        if source.count(expression) != 1:
            sys.exit(f"{name}: found {source.count(expression)} times, expected once\n{expression}")
        chosen.setdefault(expression, []).append((name, mistake))
    for expression, own in chosen.items():
        if source.count(expression) != 1:
            sys.exit(f"{own[0][0]}: within another one's expression, expected a place of its own\n{expression}")
        choice = "".join(f'PHASOR_PLANTED("{name}") ? ({mistake}) : ' for name, mistake in own)
        source = source.replace(expression, f"({choice}({expression}))")
    return source


if __name__ == "__main__":
    path, mistakes, out = sys.argv[1:]
    with open(out, "w") as file:
        file.write(f'#include "tests/mutants/planted.h"\n#line 1 "{path}"\n' + plant(open(path).read(), read(mistakes)))
