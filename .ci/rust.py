"""Reads Rust for the scripts of this folder: comments, literals, and code that only tests have."""

import re

# Comments, and literals whose text may look like code.
NO_CODE = re.compile(
    r"""(?P<line>//[^\n]*)
      | (?P<block>/\*)
      | (?P<raw>b?r(?P<hash>\#*)".*?"(?P=hash))
      | (?P<text>b?"(?:[^"\\]|\\.)*")
      | (?P<char>b?'(?:[^'\\\n]|\\(?:x..|u\{[^}]*\}|.))')""",
    re.VERBOSE | re.DOTALL,
)
ITEM = re.compile(
    r"(pub|fn|mod|impl|struct|use|const|static|enum|union|type|trait|unsafe|extern|let|macro_rules"
    r"|async)\b"
)
MODULE = re.compile(r"(?:#\[[^\n]*\]\s*)*(?:pub\s*(?:\([^)]*\))?\s*)?mod\s+(\w+)")


def without_comments(text):
    """Rust or C without its comments, and with nothing but `"` where a literal has text.

    >>> without_comments('a /* b /* c */ d */ e // f')
    'a  e '
    >>> without_comments("let x = '{'; // {")
    'let x = ""; '
    """
    kept, at = [], 0
    while match := NO_CODE.search(text, at):
        kept.append(text[at : match.start()])
        at = match.end()
        if match["block"]:
            depth = 1
            while depth and (edge := re.compile(r"/\*|\*/").search(text, at)):
                depth += 1 if edge[0] == "/*" else -1
                at = edge.end()
            if depth:
                at = len(text)
            kept.append("\n" * text.count("\n", match.start(), at))
        elif not match["line"]:
            # A literal: one mark in each line that is not blank.
            lines = match[0].split("\n")
            middle = ['"' if line.strip() else "" for line in lines[1:]]
            kept.append("\n".join(['"' if middle else '""', *middle]))
    kept.append(text[at:])
    return "".join(kept)


def needs_test(condition):
    """Whether a `cfg` holds in builds for tests or fuzz targets alone.

    >>> [needs_test(text) for text in ("test", "all(unix, test)", "any(test, unix)", "not(test)")]
    [True, True, False, False]
    >>> needs_test("any(test, fuzzing)")
    True
    """
    condition = condition.strip()
    match = re.fullmatch(r"(all|any)\s*\((.*)\)", condition, re.DOTALL)
    if not match:
        return condition in ("test", "fuzzing")
    parts, depth = [""], 0
    for sign in match[2]:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    found = [needs_test(part) for part in parts if part.strip()]
    return any(found) if match[1] == "all" else bool(found) and all(found)


def closing(code, at):
    """Behind the bracket that closes the one at a place."""
    depth = 0
    for place in range(at, len(code)):
        depth += (code[place] in "([{") - (code[place] in ")]}")
        if depth == 0:
            return place + 1
    return len(code)


def item_end(code, at):
    """Behind the item, field, arm or statement that begins at a place."""
    while code[at : at + 1] == "#":
        at = closing(code, code.index("[", at))
        at += len(code[at:]) - len(code[at:].lstrip())
    is_item = ITEM.match(code, at)
    ends_at_brace = is_item and is_item[0] not in ("use", "const", "static", "let", "type")
    if re.match(r"(pub\s*(\([^)]*\))?\s*)?const\s+(unsafe\s+)?fn\b", code[at:]):
        ends_at_brace = True
    if re.match(r"pub\s*(\([^)]*\))?\s*(use|static|type|const\s+(?!fn|unsafe))\b", code[at:]):
        ends_at_brace = False
    while at < len(code):
        sign = code[at]
        if sign in "([{":
            at = closing(code, at)
            if sign == "{" and ends_at_brace:
                return at
        elif sign in ")]}":
            return at
        else:
            at += 1
            if sign == ";" or (sign == "," and not is_item):
                return at
    return at


def test_parts(code):
    """Ranges of code that only tests have, and the modules that such ranges declare."""
    ranges, modules, at = [], [], 0
    for match in re.finditer(r"#(!?)\s*\[", code):
        if match.start() < at:
            continue
        end = closing(code, match.end() - 1)
        inside = code[match.end() : end - 1].strip()
        condition = re.fullmatch(r"cfg\s*\((.*)\)", inside, re.DOTALL)
        if not (condition and needs_test(condition[1])) and inside not in ("test", "proptest"):
            continue
        if match[1]:
            return [(0, len(code))], modules
        start = match.start()
        # With the attributes above it.
        while above := re.search(r"#\s*\[[^\n]*\]\s*$", code[:start]):
            start = above.start()
        at = end + len(code[end:]) - len(code[end:].lstrip())
        named = MODULE.match(code[at:])
        if named:
            modules.append(named[1])
        at = item_end(code, at)
        ranges.append((start, at))
    return ranges, modules


def without(code, ranges):
    """Code without some ranges of it."""
    for start, end in reversed(ranges):
        code = code[:start] + code[end:]
    return code
