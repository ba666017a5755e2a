"""How a report looks: one column on a phone, two on a desk, ink on paper; in light and in dark as its reader's system is.

Colors are variables: text stands out from its ground by at least 4.5 to 1 in both. Only page.py imports it.
"""

LIGHT = {
    "ground": "#ffffff", "sheet": "#f5f6f8", "ink": "#1b1f24", "muted": "#57606a", "line": "#d5dae0", "accent": "#0a5c9e",
    "s1": "#0a66a8", "s2": "#b04a00", "s3": "#00795a", "s4": "#8a3d86", "s5": "#b3235a", "s6": "#756400", "s7": "#6b7580",
}  # fmt: skip
DARK = {
    "ground": "#14171b", "sheet": "#1d2228", "ink": "#e8eaed", "muted": "#a8b1bb", "line": "#39424c", "accent": "#7cc0f5",
    "s1": "#62b0f0", "s2": "#f0a050", "s3": "#4fcfa6", "s4": "#d694d2", "s5": "#f58fae", "s6": "#cfbb4a", "s7": "#9aa5b1",
}  # fmt: skip


def _variables(colors: dict[str, str]) -> str:
    return " ".join(f"--{name}: {color};" for name, color in colors.items())


SERIES = "\n".join(
    f".s{n}.line, .s{n}.bar, .s{n}.mark, .s{n}.dashed, .s{n}.ring {{ stroke: var(--s{n}); }}\n"
    f".s{n}.dot, .s{n}.soft, .s{n}.faint, .s{n}.said {{ fill: var(--s{n}); }}"
    for n in range(1, 8)
)

STYLE = f"""
:root {{ color-scheme: light dark; {_variables(LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}
* {{ box-sizing: border-box; }}
html {{ -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }}
body {{ margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
header, main, footer {{ max-width: 68rem; margin: 0 auto; padding: 0 1rem; overflow-wrap: anywhere; }}
header {{ padding-top: 1.6rem; }}
h1 {{ font-size: 1.7rem; line-height: 1.2; margin: 0 0 .2rem; }}
h2 {{ font-size: 1.25rem; margin: 0 0 .5rem; }}
p {{ margin: 0 0 .7rem; max-width: 46rem; }}
a {{ color: var(--accent); }}
.under {{ color: var(--muted); margin-bottom: 1rem; }}
.lead {{ font-size: 1.1rem; }}
.skip {{ position: absolute; left: -999px; }}
.skip:focus {{ left: 1rem; top: .5rem; background: var(--ground); padding: .4rem .7rem; }}
:focus-visible {{ outline: 2px solid var(--accent); outline-offset: 2px; }}
.doubts {{ border-left: 4px solid var(--s2); background: var(--sheet); padding: .7rem 1rem .7rem 1.1rem;
  margin: 1rem 0; max-width: 48rem; }}
.doubts h2 {{ font-size: 1.05rem; margin-bottom: .3rem; }}
.doubts ul {{ margin: 0; padding-left: 1.1rem; }}
.tiles {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .6rem;
  margin: 1rem 0; max-width: 48rem; }}
.tiles div {{ background: var(--sheet); border-radius: 8px; padding: .55rem .8rem; }}
.tiles dt {{ color: var(--muted); font-size: .85rem; }}
.tiles dd {{ margin: 0; font-size: 1.3rem; font-weight: 650; line-height: 1.3; }}
.tiles small {{ display: block; font-size: .8rem; font-weight: 400; color: var(--muted); }}
nav ul {{ display: flex; flex-wrap: wrap; gap: .3rem 1rem; list-style: none; padding: 0; margin: 1rem 0 0; font-size: .95rem; }}
section {{ border-top: 1px solid var(--line); padding: 1.4rem 0 1rem; margin-top: 1rem; }}
.parts {{ display: grid; gap: .5rem 2.5rem; grid-template-columns: minmax(0, 1fr); }}
@media (min-width: 60rem) {{ .parts.drawn {{ grid-template-columns: minmax(0, 30rem) minmax(0, 1fr); }} }}
figure {{ margin: 0 0 .8rem; }}
svg {{ display: block; width: 100%; max-width: 30rem; height: auto;
  font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }}
.scroll {{ overflow-x: auto; margin: 0 0 .9rem; }}
table {{ border-collapse: collapse; font-size: .92rem; }}
caption {{ text-align: left; font-weight: 600; padding-bottom: .25rem; }}
summary + .scroll caption {{ position: absolute; left: -999px; }}
th, td {{ text-align: left; padding: .28rem .9rem .28rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: normal; }}
.long {{ overflow-wrap: anywhere; min-width: 9rem; }}
thead th {{ color: var(--muted); font-weight: 500; }}
tbody th {{ font-weight: 500; }}
.number {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
@media (max-width: 40rem) {{ table {{ font-size: .84rem; }} th, td {{ padding-right: .4rem; }}
  td {{ min-width: 4.6rem; }} td.number {{ min-width: 0; }} }}
details {{ margin: 0 0 .9rem; }}
summary {{ cursor: pointer; color: var(--accent); padding: .25rem 0; }}
pre {{ background: var(--sheet); border-radius: 8px; padding: .8rem 1rem; overflow-x: auto; font-size: .9rem;
  max-width: 46rem; }}
footer {{ color: var(--muted); font-size: .9rem; padding-bottom: 2rem; }}
.ink {{ fill: var(--ink); }} .muted {{ fill: var(--muted); }}
.strong, .said {{ font-weight: 650; }} .small {{ font-size: 11px; }}
.middle {{ text-anchor: middle; }} .end {{ text-anchor: end; }}
.grid {{ stroke: var(--line); stroke-width: 1; }} .axis {{ stroke: var(--muted); stroke-width: 1; }}
.line {{ fill: none; stroke-width: 2; stroke-linejoin: round; }} .dashed {{ fill: none; stroke-width: 1.5;
  stroke-dasharray: 5 4; }}
.bar {{ stroke-width: 2; }} .mark {{ stroke-width: 1.2; stroke-dasharray: 3 3; }}
.ring {{ fill: var(--ground); stroke-width: 1.8; }}
.soft {{ opacity: .55; }} .faint {{ opacity: .5; }} .cell {{ fill: var(--sheet); }}
{SERIES}
@media print {{
  :root {{ color-scheme: light; {_variables(LIGHT)} }}
  body {{ font-size: 10.5pt; }}
  nav, .skip {{ display: none; }}
  header, main, footer {{ max-width: none; padding: 0; }}
  section {{ padding: .8rem 0 .4rem; }}
  h2 {{ break-after: avoid; }}
  figure, tr, .tiles, .doubts, pre {{ break-inside: avoid; }}
  svg {{ max-width: 24rem; print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  .scroll {{ overflow: visible; }}
  pre {{ white-space: pre-wrap; }}
  details::details-content {{ content-visibility: visible; display: block; }}
}}
"""
