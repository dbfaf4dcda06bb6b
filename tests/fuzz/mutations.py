"""Wrong bytes for files, and wrong words for options."""

from __future__ import annotations

import random
import re

DIGITS = "9" * 5000
NUMBERS = [
    "0", "-0", "-1", "1", "3", "1.5", "nan", "inf", "-inf", "1e999", "1e-999", "0x10", "1_0", "٣",
    DIGITS, f"-{DIGITS}", f"0.{DIGITS}", f"{DIGITS}Gf", "1e400s", "4294967296", "2147483648",
    "9223372036854775808", "18446744073709551616", "1e308", "+5", "5 ", " 5", "1,5", "½", "",
]  # fmt: skip
WORDS = [
    "", " ", "x", "none", "all", "auto", "\x1b[31m", "ok.py", "nope", ".", "/", "/dev/null", "~",
    "a=b", "=", "a=", "=b", ":", "a:b", "a:", ":b", ",", "a,b", "*", "%t", "%s", "{}", "[0-3]",
    "[", "]", "(", "é", "\U0001f600", "\udcff", "-", "--", "-x", "null", "true", "rank=1@2s",
    "o1,s", "bcast=binomial_tree", "smpi/os:0", "pct:3", "a" * 6000, "../..", "'", '"', "\\",
    "a\nb",
    "\t",
    *NUMBERS,
]  # fmt: skip
TOKENS = [
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\r", b"[" * 3000, b"{" * 3000, b"&a", b"*a",
    b"<<: ", b"- ", b": ", b"null", b"true", b"<!DOCTYPE", b"<!--", b"]]>", b"&lt;", b"&x;", b'"',
    b"'", b"%", b"#", b",", b";", b"=", b"\x85", b"\xe2\x80\xa8", b"!!python/object:os.system ",
    b'{"a":' * 2000, b"0-99999999", b"1-0", *(one.encode() for one in NUMBERS),
]  # fmt: skip
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")


def mutated(data: bytes, chance: random.Random, rounds: int = 3) -> bytes:
    """Some bytes with one to `rounds` mistakes."""
    for _ in range(chance.randint(1, rounds)):
        kind = chance.randrange(12)
        at = chance.randrange(len(data) + 1)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            data = data[:at] + chance.choice(TOKENS) + data[at:]
        elif kind == 2:
            data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
        elif kind == 3:
            data = data[:at] + data[at + chance.randrange(1, 20) :]
        elif kind == 4:
            end = min(len(data), at + chance.randrange(1, 200))
            data = data[:end] + data[at:end] * chance.choice((1, 3, 200)) + data[end:]
        elif kind in (5, 6, 7):
            found = list(_NUMBER.finditer(data))
            if found:
                one = chance.choice(found)
                data = data[: one.start()] + chance.choice(NUMBERS).encode() + data[one.end() :]
        elif kind == 8:
            lines = data.split(b"\n")
            chance.shuffle(lines)
            data = b"\n".join(lines)
        elif kind == 9:
            lines = data.split(b"\n")
            del lines[chance.randrange(len(lines))]
            data = b"\n".join(lines)
        elif kind == 10:
            words = data.split(b" ")
            words[chance.randrange(len(words))] = chance.choice(WORDS).encode(
                errors="surrogatepass"
            )
            data = b" ".join(words)
        else:
            words = data.split(b" ")
            one, other = chance.randrange(len(words)), chance.randrange(len(words))
            words[one], words[other] = words[other], words[one]
            data = b" ".join(words)
    return data


def word(chance: random.Random) -> str:
    """A word for an option, such as the value of a number or a name."""
    found = chance.choice(WORDS)
    if chance.random() < 0.2:
        found += chance.choice(WORDS)[:50]
    return found.replace("\0", "")
