"""The measured figures of a page: `performance` and `peers/run` write them between
`<!-- figures NAME -->` and `<!-- end -->`.
"""

import datetime
import os
import re
import subprocess
import sys
import textwrap

ROOT = os.path.abspath(f"{os.path.dirname(os.path.abspath(__file__))}/../..")


def spread(figure, unit=1, digits=None):
    """A median with the minimum and the maximum."""
    def number(value):
        value /= unit
        places = digits if digits is not None else max(0, 3 - len(str(int(abs(value)))))
        return f"{value:,.{places}f}"
    return f"{number(figure['median'])} ({number(figure['min'])}..{number(figure['max'])})"


def table(headings, rows):
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def machine():
    """The machine, the compiler, the commit, the day and the load."""
    def said(*words):
        return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True,
                              cwd=ROOT).stdout
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    commit = said("git", "rev-parse", "--short=8", "HEAD").strip()
    today = datetime.date.today()
    return textwrap.fill(
        f"{os.cpu_count()} x {model}, Linux {os.uname().release}, Rust "
        f"{said('rustc', '--version').split()[1]}, commit {commit}, {today.day} {today:%B %Y}. The "
        f"load was {os.getloadavg()[0]:.1f} at the beginning.", 100)


def place(path, name, text):
    """Replaces the figures of a section of a page."""
    with open(path) as file:
        page = file.read()
    part = re.compile(rf"(<!-- figures {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not part.search(page):
        sys.exit(f"{path} has no '<!-- figures {name} -->'")
    with open(path, "w") as file:
        file.write(part.sub(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page))
