"""Profiles as one HTML file that needs nothing else: the roofline plots and the kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from .profile import KernelProfile, Profile
from .roofline_plot import colour, roofline_plot

_STYLE = """
:root { --ink: #1d2430; --faint: #667; --line: #d9dde5; --page: #fff; --arithmetic: #2563b8;
  --cache: #2a8f6f; --memory: #c9741a; --unknown: #8a8f99; --wait: #c9cdd6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ef; --faint: #9aa3b2; --line: #333a46;
  --page: #14181f; --arithmetic: #6ba3f0; --cache: #4fc39c; --memory: #eba44f; --wait: #4a5160; } }
body { font: 14px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  max-width: 1200px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.4em } h2 { font-size: 1.1em; margin-top: 2em }
svg { width: 100%; max-width: 860px; height: auto; display: block }
svg text { font-size: 12px; fill: var(--ink) }
.grid { stroke: var(--line); stroke-width: 1 } .roof { stroke: var(--faint); stroke-width: 1.5 }
circle { fill-opacity: .45; stroke-width: 1.5 }
circle:hover { fill-opacity: .8 }
.arithmetic { fill: var(--arithmetic); stroke: var(--arithmetic) }
.cache { fill: var(--cache); stroke: var(--cache) }
.memory { fill: var(--memory); stroke: var(--memory) }
.unknown { fill: var(--unknown); stroke: var(--unknown) }
.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .2em .6em; border-bottom: 1px solid var(--line);
  vertical-align: top; white-space: nowrap }
th:first-child, td:first-child, .words { text-align: left }
.words { white-space: normal; color: var(--faint); font-size: .9em }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 50%; margin: 0 .3em 0 1em }
.bar { display: flex; height: .7em; width: 120px; margin: .25em 0 }
.busy { background: var(--arithmetic) } .wait { background: var(--wait) }
.faint { color: var(--faint) }
"""


def roofline_page(profiles: Sequence[Profile], model: str) -> str:
    """Return the text of the HTML file."""
    keys = "".join(
        f'<span class="key" style="background: var(--{name})"></span>{text}'
        for name, text in (
            ("arithmetic", "bound by arithmetic"),
            ("cache", "by a cache"),
            ("memory", "by memory"),
            ("unknown", "not known"),
        )
    )
    sections = "\n".join(line for profile in profiles for line in _section(profile))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(model)}: profile</title><style>{_STYLE}</style></head><body>
<h1>{escape(model)}</h1>
<p class="faint">A circle is a kernel, its area the time that it takes, its place what it reaches;
lines are what the device was measured to reach. {keys}</p>
{sections}
</body></html>
"""


def _section(profile: Profile) -> Iterator[str]:
    yield f"<h2>{profile.threads} thread(s): {profile.total_ns / 1e6:.3f} ms</h2>"
    yield f"<p>{escape(summary(profile))}</p>"
    yield roofline_plot(profile)
    titles = ["kernel", "runs", "ms", "share", "GFLOP/s", "GB/s", "of limit", "bound"]
    if profile.threads > 1:
        titles.append("threads: busy, waiting")
    head = "".join(f"<th>{title}</th>" for title in titles)
    head += '<th class="words">ops</th><th class="words">from</th>'
    yield f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>'
    most = max((max(_thread_totals(k), default=0.0) for k in profile.kernels), default=0.0)
    yield from (_row(profile, kernel, most) for kernel in profile.kernels)
    yield "</tbody></table></div>"


def _row(profile: Profile, kernel: KernelProfile, most: float) -> str:
    cells = [
        escape(kernel.name) + (" (torch)" if kernel.kind == "torch" else ""),
        str(kernel.runs),
        f"{kernel.ns / 1e6:.3f}",
        f"{kernel.ns / profile.total_ns:.1%}",
        f"{kernel.flops_per_second / 1e9:.1f}" if kernel.flops else "",
        f"{kernel.bytes_per_second / 1e9:.1f}" if kernel.bytes else "",
        f"{kernel.of_limit:.0%}" if kernel.bound else "",
        f'<span class="key" style="background: var(--{colour(kernel)})"></span>{kernel.bound}',
    ]
    if profile.threads > 1:
        cells.append("".join(_bar(*pair, most) for pair in _pairs(kernel)))
    words = [" ".join(kernel.ops), ", ".join(kernel.places)]
    return (
        "<tr>"
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "".join(f'<td class="words">{escape(text)}</td>' for text in words)
        + "</tr>"
    )


def _bar(busy: float, wait: float, most: float) -> str:
    parts = (("busy", busy / most), ("wait", wait / most)) if most else ()
    spans = "".join(f'<span class="{n}" style="width: {p:.1%}"></span>' for n, p in parts)
    title = f"{busy / 1e3:.1f} us busy, {wait / 1e3:.1f} us waiting"
    return f'<div class="bar" title="{title}">{spans}</div>'


def _pairs(kernel: KernelProfile) -> list[tuple[float, float]]:
    return list(zip(kernel.thread_ns, kernel.wait_ns, strict=True))


def _thread_totals(kernel: KernelProfile) -> list[float]:
    return [busy + wait for busy, wait in _pairs(kernel)]


def summary(profile: Profile) -> str:
    """Return in a line where the time of a call is spent, and what limits it was compared with."""
    outside = max(0.0, profile.total_ns - profile.kernel_ns)
    text = (
        f"a call takes {profile.total_ns / 1e6:.3f} ms ({profile.untimed_ns / 1e6:.3f} without the "
        f"clock), of which {outside / 1e6:.3f} in Python and starting threads; "
        f"{len(profile.dispatches)} runs of {len(profile.kernels)} kernels"
    )
    limits = profile.limits
    if limits is None:
        return text
    reached = [
        f"{element} {rate / 1e9:.0f} GFLOP/s"
        for element in ("f32", "f64")
        if (rate := limits.flops_of(element, profile.threads))
    ]
    reached += [
        f"{level} {rate / 1e9:.0f} GB/s"
        for level in limits.levels(profile.threads)
        if (rate := limits.bandwidth_of(level, profile.threads))
    ]
    return f"{text}. {profile.device}, measured {limits.date}: {', '.join(reached)}"
