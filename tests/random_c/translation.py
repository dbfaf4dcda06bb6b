"""The text in C of random programs, whose steps are functions of `steps.h`."""

from __future__ import annotations

import json
from typing import Any

ELEMENTS = {"i2": "I2", "i4": "I4", "u8": "U8", "f8": "F8"}
OPERATORS = {"MINLOC": 10, "MAXLOC": 11, "own": 12}
HEAD = """\
/* Random programs: each calls functions of steps.h with the numbers that were drawn. */
#include "steps.h"
"""


def element_of(spec: Any) -> str | None:
    """The one predefined datatype that a description is made of; None: several."""
    if isinstance(spec, str):
        return spec
    inner = spec[-1]
    found = {element_of(part) for part in inner} if spec[0] == "struct" else {element_of(inner)}
    return found.pop() if len(found) == 1 else None


def _list(values: list[Any]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"


class Unit:
    """The functions of a file in C: datatypes and programs."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.types = 0

    def datatype(self, spec: Any) -> str:
        """Write a function that makes the committed datatype of a description; its name."""
        name = f"type_{self.types}"
        self.types += 1
        body: list[str] = []
        result = self._build(spec, body, iter(range(1000)))
        self.lines += [
            f"static MPI_Datatype {name}(void)", "{", *(f"    {line}" for line in body),
            f"    MPI_Type_commit(&{result});", f"    return {result};", "}", "",
        ]  # fmt: skip
        return name

    def _build(self, spec: Any, body: list[str], numbers: Any) -> str:
        """Append statements that make a datatype; the name of its variable."""
        if isinstance(spec, str):
            made = f"t{next(numbers)}"
            body.append(f"MPI_Datatype {made};")
            body.append(f"MPI_Type_dup(element({ELEMENTS[spec]}), &{made});")
            return made
        kind, *arguments, inner = spec
        parts = [self._build(part, body, numbers) for part in (
            inner if kind == "struct" else [inner]
        )]  # fmt: skip
        base, number = parts[0], next(numbers)
        made, low, extent = f"t{number}", f"low{number}", f"extent{number}"
        body.append(f"MPI_Datatype {made};")
        body.append(f"MPI_Aint {low}, {extent};")
        body.append(f"MPI_Type_get_extent({base}, &{low}, &{extent});")
        call = self._call(kind, arguments, parts, made, low, extent)
        body += call if isinstance(call, list) else [call]
        body += [f"MPI_Type_free(&{part});" for part in parts]
        return made

    def _call(
        self, kind: str, arguments: list[Any], parts: list[str], made: str, low: str, extent: str
    ) -> str | list[str]:
        base = parts[0]
        if kind == "contiguous":
            return f"MPI_Type_contiguous({arguments[0]}, {base}, &{made});"
        if kind == "vector":
            count, block, gap = arguments
            return f"MPI_Type_vector({count}, {block}, {block + gap}, {base}, &{made});"
        if kind == "hvector":
            count, block, gap = arguments
            stride = f"{block + gap} * {extent}"
            return f"MPI_Type_create_hvector({count}, {block}, {stride}, {base}, &{made});"
        if kind in ("indexed", "hindexed"):
            lengths, gaps = arguments
            starts, at = [], 0
            for length, gap in zip(lengths, gaps, strict=True):
                starts.append(at + gap)
                at += gap + length
            listed = f"{len(lengths)}, (int[]){_list(lengths)}"
            if kind == "indexed":
                places = f"(int[]){_list(starts)}"
                return f"MPI_Type_indexed({listed}, {places}, {base}, &{made});"
            places = f"(MPI_Aint[]){_list([f'{start} * {extent}' for start in starts])}"
            return f"MPI_Type_create_hindexed({listed}, {places}, {base}, &{made});"
        if kind == "indexed_block":
            length, gaps = arguments
            starts = [sum(gaps[: i + 1]) + i * length for i in range(len(gaps))]
            return (
                f"MPI_Type_create_indexed_block({len(starts)}, {length}, (int[]){_list(starts)}, "
                f"{base}, &{made});"
            )
        if kind == "struct":
            (lengths,) = arguments
            body = [f"MPI_Aint at_{made}[{len(parts)}], next_{made} = 0;"]
            for i, (part, length) in enumerate(zip(parts, lengths, strict=True)):
                # The next multiple of 16 keeps elements aligned and blocks apart.
                body += [
                    f"at_{made}[{i}] = next_{made};",
                    f"MPI_Type_get_extent({part}, &{low}, &{extent});",
                    f"next_{made} = (next_{made} + ({low} > 0 ? {low} : 0) + {length} * {extent} "
                    "+ 31) / 16 * 16;",
                ]
            return [
                *body,
                f"MPI_Datatype plain_{made};",
                f"MPI_Type_create_struct({len(parts)}, (int[]){_list(lengths)}, at_{made}, "
                f"(MPI_Datatype[]){_list(parts)}, &plain_{made});",
                # A lower bound of a part above its data would let elements overlap.
                f"MPI_Type_get_extent(plain_{made}, &{low}, &{extent});",
                f"{low} = {low} < 0 ? {low} : 0;",
                f"MPI_Type_create_resized(plain_{made}, {low}, next_{made} - {low}, &{made});",
                f"MPI_Type_free(&plain_{made});",
            ]
        if kind == "subarray":
            sizes, lengths, starts, fortran = arguments
            order = "MPI_ORDER_FORTRAN" if fortran else "MPI_ORDER_C"
            listed = ", ".join(f"(int[]){_list(each)}" for each in (sizes, lengths, starts))
            return f"MPI_Type_create_subarray({len(sizes)}, {listed}, {order}, {base}, &{made});"
        assert kind == "resized", kind
        lower, more = arguments
        return [
            f"MPI_Type_get_true_extent({base}, &{low}, &{extent});",
            f"MPI_Type_create_resized({base}, {lower}, {low} + {extent} + {more}, &{made});",
        ]

    def step(self, step: dict[str, Any]) -> str:
        """The initial values of a step."""
        operator = step.get("operator", 0)
        counts = step["counts"]
        flat = element_of(step["type"]) if step.get("flat") else None
        fields = {
            "what": json.dumps(step["do"]), "kind": json.dumps(step["kind"]),
            "form": json.dumps(step["form"]), "a": step["a"], "b": step["b"],
            "count": step["count"], "salt": step["salt"], "in_place": int(step["in_place"]),
            "any": int(step.get("any", False)), "operator": OPERATORS.get(operator, operator),
            "structs": int("struct" in json.dumps(step.get("type"))),
            "element": ELEMENTS[flat] if flat else -1, "counts": _list(counts),
            "number_of_counts": len(counts), "dtype": ELEMENTS[step["dtype"]],
        }  # fmt: skip
        for field in ("name", "send", "wait", "way", "access", "epoch"):
            if field in step:
                fields[field] = json.dumps(step[field])
        if "recv" in step:
            fields["receive"] = json.dumps(step["recv"])
        if "type" in step:
            fields["type"] = self.datatype(step["type"])
        return ", ".join(f".{name} = {value}" for name, value in fields.items())

    def program(self, number: int, program: dict[str, Any]) -> None:
        """Write the function of a program, and those of its datatypes."""
        body = [f"MPI_Comm comms[{1 + len(program['comms'])}] = {{MPI_COMM_WORLD}};"]
        for made, spec in enumerate(program["comms"], 1):
            parent = f"comms[{spec['parent'] % made}]"
            body += [
                f'begin_step({made - 1}, "{spec["kind"]}");',
                f"comms[{made}] = MPI_COMM_NULL;",
                f"if ({parent} != MPI_COMM_NULL) {{",
                f'    comms[{made}] = communicator({parent}, "{spec["kind"]}", {spec["a"]}, '
                f"{spec['b']});",
                f"    describe(comms[{made}], {parent});",
                "}",
            ]
        total = 1 + len(program["comms"])
        for at, step in enumerate(program["steps"], total - 1):
            comm = f"comms[{step['comm'] % total}]"
            body += [
                f'begin_step({at}, "{step["do"]}");',
                f"if ({comm} != MPI_COMM_NULL)",
                f"    {step['do']}({comm}, &(struct step){{{self.step(step)}}});",
            ]
        for made in range(total - 1, 0, -1):
            body += [f"if (comms[{made}] != MPI_COMM_NULL)", f"    MPI_Comm_free(&comms[{made}]);"]
        self.lines += [
            f"static void program_{number}(void)", "{", *(f"    {line}" for line in body), "}", "",
        ]  # fmt: skip


def translated(programs: list[dict[str, Any]]) -> str:
    """A file in C with all of these programs."""
    unit = Unit()
    for number, program in enumerate(programs):
        unit.program(number, program)
    names = ", ".join(f"program_{number}" for number in range(len(programs)))
    unit.lines += [
        f"program_function *const PROGRAMS[] = {{{names}}};",
        f"const int NUMBER_OF_PROGRAMS = {len(programs)};",
    ]
    return HEAD + "\n" + "\n".join(unit.lines) + "\n"
