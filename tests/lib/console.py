# SPDX-License-Identifier: BSD-3-Clause
"""Documents whose commands are run: fenced blocks of Markdown, and what stands in them.

A block ```console has commands, which begin with "$ " (and go on in lines that begin with "> "),
and below each its output, standard error included. A line "..." stands for any number of lines,
"..." inside a line for any characters. A block ```LANGUAGE NAME is the file NAME, written before
what comes after it is run. Other blocks are read by people alone.

    page = Console(folder, env)
    problems = page.play(text)      # page.ran commands were run
"""
import os
import re
import subprocess

BLOCK = re.compile(r"^```([\w-]*)(?: (\S+))?\n(.*?)^```$", re.M | re.S)


def sections(text, level=2):
    """[(title, text)] of the sections of a page, without what is before the first."""
    parts = re.split(rf"^{'#' * level} (.+)\n", text, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def blocks(text):
    """[(language, name, content)], name None where the block has none."""
    return [(m[1], m[2], m[3]) for m in BLOCK.finditer(text)]


def commands(block):
    """[(command, [expected lines])] of one ```console block."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (found[-1][0] + "\n" + line[2:], [])
        else:
            found[-1][1].append(line)
    return found


def pattern(lines):
    """A regular expression for expected lines."""
    parts = []
    for line in lines:
        if line == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(re.escape(part) for part in line.rstrip().split("..."))
                         + r"[ \t]*\n")
    return "".join(parts)


class Console:
    """Runs a page's commands in a folder, one shell each, and compares what they print.

    replace: [(written, real)], for addresses that a page shows and that are others in a test."""

    def __init__(self, folder, env, replace=(), timeout=60):
        self.folder, self.env, self.replace, self.timeout = folder, env, list(replace), timeout
        self.ran = 0

    def play(self, text):
        """Run all blocks of text in order; what differed, as text for people."""
        problems = []
        for language, name, content in blocks(text):
            if language == "console":
                for command, expected in commands(content):
                    problems += self.one(command, expected)
            elif name:
                self.write(name, content)
        return problems

    def real(self, text):
        for written, real in self.replace:
            text = text.replace(written, real)
        return text

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.real(content))

    def one(self, command, expected):
        self.ran += 1
        run = subprocess.run(["sh", "-c", self.real(command)], cwd=self.folder, env=self.env,
                             text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=self.timeout)
        printed = run.stdout
        for written, real in self.replace:
            printed = printed.replace(real, written)
        if re.fullmatch(pattern(expected), printed):
            return []
        return [f"$ {command}\nexpected:\n" + "\n".join(expected) + f"\nprinted:\n{printed}"]


def environment(binary, **more):
    """What commands of a page are run with: the program first on PATH, one language, one zone."""
    return dict(os.environ, TZ="UTC", LC_ALL="C.UTF-8", PYTHONWARNINGS="ignore",
                PATH=f"{os.path.dirname(os.path.abspath(binary))}:/usr/bin:" + os.environ["PATH"],
                **more)
