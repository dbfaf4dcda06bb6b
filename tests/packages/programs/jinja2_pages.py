"""Templates of Jinja2: inheritance, macros, filters, sandbox; rendered pages gathered."""

from __future__ import annotations

import hashlib

from jinja2 import DictLoader, Environment, StrictUndefined, UndefinedError
from jinja2.sandbox import SandboxedEnvironment, SecurityError
from mpi4py import MPI

comm = MPI.COMM_WORLD
environment = Environment(
    loader=DictLoader(
        {
            "base": "<h1>{% block title %}none{% endblock %}</h1>{% block body %}{% endblock %}",
            "macros": "{% macro cell(x) %}<td>{{ '%.3f' % x }}</td>{% endmacro %}",
            "table": """{% extends "base" %}{% from "macros" import cell %}
{%- block title %}rank {{ rank }} of {{ size }}{% endblock %}
{%- block body %}{% for row in rows|batch(4, 0) -%}
<tr>{% for x in row %}{{ cell(x) }}{% endfor %}</tr>
{% endfor %}{{ text }}{% endblock %}""",
        }
    ),
    autoescape=True,
    undefined=StrictUndefined,
)
environment.filters["root"] = lambda x, n=2: x ** (1 / n)
environment.globals["size"] = comm.size
page = environment.get_template("table").render(
    rank=comm.rank, rows=[k / (comm.rank + 1) for k in range(10)], text="<&>"
)
print(comm.rank, len(page), page.splitlines()[0])
pages = comm.allgather(page)
print(comm.rank, [hashlib.md5(one.encode()).hexdigest()[:8] for one in pages])
expression = environment.compile_expression("values|sum|root(3)|round(4)")
print(comm.rank, expression(values=comm.allgather(comm.rank * 7.0 + 1)))
print(comm.rank, environment.from_string(
    "{% set n = namespace(t=0) %}{% for i in range(r + 3) if i is odd %}{% set n.t = n.t + i %}"
    "{{ loop.index }}:{{ loop.cycle('a', 'b') }} {% else %}none{% endfor %}{{ n.t }}"
).render(r=comm.rank))  # fmt: skip
try:
    environment.from_string("{{ missing.thing }}").render()
except UndefinedError as error:
    print(comm.rank, error)
try:
    SandboxedEnvironment().from_string("{{ ().__class__.__bases__[0].__subclasses__() }}").render()
except SecurityError as error:
    print(comm.rank, error)
