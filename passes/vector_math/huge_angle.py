"""Reduce huge angles exactly: multiply by the bits of 1/(2 pi) that matter for each exponent.

M. Payne and R. Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18, 1983.
The words of the constant are chosen by a barrel shifter of selects: no table in memory.
"""

from __future__ import annotations

import math

from metadef.passes.vector_math.lanes import Lanes, absolute, fma

#: 1/(2 pi) in words of 32 bits after one zero word, most significant first (1312 bits)
WORDS = (
    0x00000000,
    0x28BE60DB,
    0x9391054A,
    0x7F09D5F4,
    0x7D4D3770,
    0x36D8A566,
    0x4F10E410,
    0x7F9458EA,
    0xF7AEF158,
    0x6DC91B8E,
    0x909374B8,
    0x01924BBA,
    0x82746487,
    0x3F877AC7,
    0x2C4A69CF,
    0xBA208D7D,
    0x4BAED121,
    0x3A671C09,
    0xAD17DF90,
    0x4E64758E,
    0x60D4CE7D,
    0x272117E2,
    0xEF7E4A0E,
    0xC7FE25FF,
    0xF7816603,
    0xFBCBC462,
    0xD6829B47,
    0xDB4D9FB3,
    0xC9F2C26D,
    0xD3D18FD9,
    0xA797FA8B,
    0x5D49EEB1,
    0xFAF97C5E,
    0xCF41CE7D,
    0xE294A4BA,
    0x9AFED7EC,
    0x47E35742,
    0x1580CC11,
    0xBF1EDAEA,
    0xFC33EF08,
    0x26BD0D87,
    0x6A78E458,
)
_WORD = 0xFFFFFFFF
#: words of the constant that enter the product
_WINDOW = {32: 4, 64: 6}


def reduce_huge(x: Lanes, half_turn: bool) -> tuple[Lanes, Lanes]:
    """Return r in [-pi/2, pi/2] and an integer whose low bit says to negate sin(r).

    r is x less a multiple of pi, or x + pi/2 less one with `half_turn`. Finite |x| >= 2^-9;
    an infinity gives NaN.
    """
    width = x.width
    a = absolute(x)
    bits = a.bits()
    shift = (bits >> x.mantissa_bits) - (x.exponent_bias + x.mantissa_bits - 32)
    mantissa = (bits & ((1 << x.mantissa_bits) - 1)) | (1 << x.mantissa_bits)
    words = _turns(mantissa.to_int(64), shift.to_int(64), width)
    high = (words[0] << 32) | words[1]
    low = (words[2] << 32) | words[3] if len(words) > 3 else words[2] << 32
    if half_turn:
        high = high + (1 << 62)
    parity = (high + (1 << 62)).shift_right_logical(63)
    half_turns = (high << 1) | low.shift_right_logical(63)
    r = half_turns.to_float(64) * (math.pi * 2.0**-64)
    if width == 64:
        rest = (low << 1).shift_right_logical(1).to_float(64)
        r = fma(rest, math.pi * 2.0**-127, r)
    r = r.to_float(width)
    if not half_turn:
        r = (x < 0.0).select(-r, r)
    return (a < math.inf).select(r, math.nan), parity.to_int(width)


def _turns(mantissa: Lanes, shift: Lanes, width: int) -> list[Lanes]:
    """Return the fraction of mantissa * 2^(shift - 32) / (2 pi) as words, the largest first."""
    count = _WINDOW[width]
    window = _window(mantissa, shift, count + 1, 3 if width == 32 else 5)
    offset = shift & 31
    aligned = [
        (((a << 32) | b) << offset).shift_right_logical(32)
        for a, b in zip(window, window[1:], strict=False)
    ]
    columns = [mantissa.splat(0)] * (count + 1)
    limbs = (mantissa & _WORD, mantissa.shift_right_logical(32))[: width // 32]
    for place, limb in enumerate(limbs):
        for i, word in enumerate(aligned):
            product = limb * word
            halves = (product.shift_right_logical(32), product & _WORD)
            for at, half in enumerate(halves, i - place - 1):
                if at >= 0:
                    columns[at] = columns[at] + half
    words = []
    carry = mantissa.splat(0)
    for column in reversed(columns[:count]):
        total = column + carry
        words.append(total & _WORD)
        carry = total.shift_right_logical(32)
    return words[::-1][:4] if width == 64 else words[::-1][:3]


def _window(like: Lanes, shift: Lanes, count: int, levels: int) -> list[Lanes]:
    """Return words shift / 32, ... of the constant: halve the candidates by one bit at a time."""
    index = shift >> 5
    words = [like.splat(w) for w in WORDS[: count + 2**levels - 1]]
    for level in reversed(range(levels)):
        step = 1 << level
        take = ((index >> level) & 1).equals(1)
        words = [take.select(words[i + step], words[i]) for i in range(len(words) - step)]
    return words
